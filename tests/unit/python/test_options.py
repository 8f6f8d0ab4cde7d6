"""What is said of a job in Python, and what the server is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from ojs_nats import App, RateLimit, Retry, Unique, Worker
from ojs_nats._durations import milliseconds
from ojs_nats._options import wire
from ojs_nats._requests import template
from ojs_nats.jobs import JobRequest
from ojs_nats.options import Options, Rate
from support.tables import each


@pytest.mark.parametrize(
    ("written", "expected"),
    [("30s", 30_000), ("1h30m", 5_400_000), ("250ms", 250), ("1.5s", 1_500), ("2d", 172_800_000), (2, 2_000), (0.25, 250)],
)
def test_durations(written: Any, expected: int) -> None:
    assert milliseconds(written) == expected
    assert milliseconds(timedelta(milliseconds=expected)) == expected


@each("written", ["", "30", "s", "30 s", "-1s", "1y", -1, float("inf"), float("nan"), timedelta(-1)])
def test_what_is_no_duration(written: Any) -> None:
    with pytest.raises(ValueError, match="duration"):
        milliseconds(written)


@pytest.mark.parametrize(("delay", "told"), [("20d", "+PT1728000S"), (1.5, "+PT1.500S"), ("50ms", "+PT0.050S")])
def test_long_and_short_delays(delay: Any, told: str) -> None:
    assert wire(Options(delay=delay)) == {"delay_until": told}


def test_options_as_the_server_reads_them() -> None:
    when = datetime(2026, 11, 23, 12, tzinfo=UTC)
    options = Options(
        queue="email",
        priority=5,
        retry=Retry(5, initial_interval="2s", on_exhaustion="dead_letter", non_retryable_errors=["ValueError"]),
        timeout="30s",
        unique=Unique(keys=["type"], period="1m"),
        scheduled_at=when,
        expires_at=when,
        tags=["a"],
        total_timeout="1h",
        result_ttl="2d",
        rate_limit=RateLimit("api", concurrency=2, rate=Rate(5, "1m")),
        version=2,
        meta={"a": 1},
    )
    assert wire(options) == {
        "queue": "email",
        "priority": 5,
        "total_timeout_ms": 3_600_000,
        "result_ttl": 172_800,
        "rate_limit": {"key": "api", "on_limit": "wait", "concurrency": 2, "rate": {"limit": 5, "period": 60.0}},
        "version": 2,
        "retry": {
            "max_attempts": 5,
            "initial_interval_ms": 2_000,
            "backoff_coefficient": 2.0,
            "max_interval_ms": 300_000,
            "jitter": True,
            "non_retryable_errors": ["ValueError"],
            "on_exhaustion": "dead_letter",
        },
        "timeout_ms": 30_000,
        "unique": {"key": ["type"], "on_conflict": "reject", "period": "PT60S"},
        "delay_until": "2026-11-23T12:00:00+00:00",
        "expires_at": "2026-11-23T12:00:00+00:00",
        "tags": ["a"],
        "meta": {"a": 1},
    }
    assert wire(Options(delay="90s")) == {"delay_until": "+PT90S"}
    assert wire(Options()) == {}


def test_what_no_server_would_take_is_told_where_it_is_written() -> None:
    app = App("http://127.0.0.1:1")

    def nothing() -> None: ...

    with pytest.raises(ValueError, match="time zone"):
        app.job("a", scheduled_at=datetime(2026, 11, 23))(nothing)  # noqa: DTZ001
    with pytest.raises(ValueError, match="duration"):
        app.job("a", timeout="soon")(nothing)
    app.job("a")(nothing)
    with pytest.raises(ValueError, match="a has a handler already"):
        app.job("a")(nothing)
    with pytest.raises(ValueError, match="http://, https://, nats:// or tls://"):
        App("127.0.0.1:8080")


@each("name", ["Tenant.0", "tenant.0", "a.", ".a", "a b", "", "a" * 256, "mail\n", "email.send@2", 5])
def test_a_job_type_that_no_server_takes_is_refused_where_it_is_written(name: Any) -> None:
    app = App("http://127.0.0.1:1")
    with pytest.raises(ValueError, match=r"a job type is one or more words with dots between them, such as email.send"):
        app.job(name)(nothing)
    assert not app.definitions


@each(
    ("options", "said"),
    [
        ({"queue": "My Queue"}, "a queue's name has lower-case letters, digits, - and ., .* not 'My Queue'"),
        ({"queue": "a" * 256}, "a queue's name"),
        ({"queue": "é"}, "a queue's name"),
        ({"tags": ["a" * 256]}, "one of tags is a text of 1 to 255 printable characters"),
        ({"tags": ["a\n"]}, "one of tags"),
        ({"tags": "abc"}, "tags are a list of texts, not 'abc'"),
        ({"tags": ["a"] * 101}, "tags are up to 100, not 101"),
        ({"priority": 101}, "a priority is a whole number from -100 to 100, not 101"),
        ({"priority": float("nan")}, "a priority"),
        ({"unique": Unique(keys=["arg"])}, r"\(keys\) are some of type, queue, args, meta"),  # type: ignore[list-item]
        ({"unique": Unique(keys=[])}, r"\(keys\)"),
        ({"unique": Unique(states=["done"])}, "states are some of scheduled, available"),
        ({"rate_limit": RateLimit("a b")}, "a rate limit's key"),
        ({"retry": Retry(-1)}, "attempts is a whole number from 0 to 10,000, not -1"),
        (
            {"retry": Retry(backoff_coefficient=float("nan"))},
            "backoff_coefficient is a number from 1.0 to 1,000,000.0, not nan",
        ),
        ({"retry": Retry(initial_interval=0)}, "initial_interval is more than 0 and up to ten years"),
        ({"retry": Retry(non_retryable_errors="ValueError")}, "names of errors in non_retryable_errors are a list"),
        ({"timeout": 0}, "timeout is more than 0"),
        ({"total_timeout": "4000d"}, "total_timeout is more than 0 and up to ten years"),
        ({"meta": {"a": float("inf")}}, r"meta\['a'\] is inf, which JSON can't hold"),
    ],
)
def test_an_option_that_no_server_takes_is_refused_where_it_is_written(options: Any, said: str) -> None:
    app = App("http://127.0.0.1:1")
    with pytest.raises(ValueError, match=said):
        app.job("a", **options)(nothing)
    plain = app.job("a")(nothing)
    with pytest.raises(ValueError, match=said):
        plain.options(**options)


async def test_a_worker_is_held_to_what_a_server_takes() -> None:
    app = App("http://127.0.0.1:1")
    app.job("a")(nothing)
    with pytest.raises(ValueError, match=r"a queue's name .*'My Queue'"):
        Worker(app, queues=["My Queue"])
    with pytest.raises(ValueError, match="queues are a list of names, not 'default'"):
        Worker(app, queues="default")
    with pytest.raises(ValueError, match=r"fetch_timeout: .* from 0.0 to 30.0, not 86400.0"):
        Worker(app, fetch_timeout="1d")
    with pytest.raises(ValueError, match=r"heartbeat_interval: .* from 0.001 to"):
        Worker(app, heartbeat_interval=0)
    assert len(Worker(app, queues=[f"q{number}" for number in range(120)]).queues) == 120
    many = App("http://127.0.0.1:1")
    for number in range(1_001):
        many.job(f"t{number}")(nothing)
    with pytest.raises(ValueError, match="up to 1,000 job types, not 1,001"):
        Worker(many)


@pytest.mark.parametrize(
    "url", ["http://", "http://[::1", "http://host:99999", "http://a b", "http://host?x=1", "https://host/#a", "http://host:0"]
)
def test_an_address_that_names_no_server_is_refused_where_it_is_written(url: str) -> None:
    with pytest.raises(ValueError, match="a server's address is like http://host:8080"):
        App(url)


@pytest.mark.parametrize("url", ["http://host", "https://host:8443/ojs-server/", "http://[::1]:8080", "http://user:word@host"])
def test_an_address_may_have_a_path_and_a_user(url: str) -> None:
    assert App(url).url == url


def nothing() -> None: ...


@each(
    ("offset", "sent"),
    [
        (timedelta(0), "2026-11-28T12:00:00+00:00"),
        (timedelta(hours=5, minutes=30), "2026-11-28T12:00:00+05:30"),
        (timedelta(minutes=19, seconds=32), "2026-11-28T11:40:28+00:00"),  # Amsterdam's until 1937
    ],
)
def test_a_moment_is_sent_with_its_offset_or_in_utc_where_that_has_seconds(offset: timedelta, sent: str) -> None:
    when = datetime(2026, 11, 28, 12, tzinfo=timezone(offset))
    assert template(JobRequest("a.job", (), {"scheduled_at": when}))["options"]["delay_until"] == sent
