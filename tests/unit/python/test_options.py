"""What is said of a job in Python, and what the server is told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ojs_nats import App, Rate, RateLimit, Retry, Unique
from ojs_nats._durations import milliseconds
from ojs_nats._options import Options, wire


@pytest.mark.parametrize(
    ("written", "expected"),
    [("30s", 30_000), ("1h30m", 5_400_000), ("250ms", 250), ("1.5s", 1_500), ("2d", 172_800_000), (2, 2_000), (0.25, 250)],
)
def test_durations(written: Any, expected: int) -> None:
    assert milliseconds(written) == expected
    assert milliseconds(timedelta(milliseconds=expected)) == expected


@pytest.mark.parametrize("written", ["", "30", "s", "30 s", "-1s", "1y", -1, float("inf"), float("nan"), timedelta(-1)])
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
        retry=Retry(5, initial="2s", then="dead_letter", not_for=["ValueError"]),
        timeout="30s",
        unique=Unique(by=["type"], period="1m"),
        at=when,
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
        app.job("a", at=datetime(2026, 11, 23))(nothing)  # noqa: DTZ001
    with pytest.raises(ValueError, match="duration"):
        app.job("a", timeout="soon")(nothing)
    app.job("a")(nothing)
    with pytest.raises(ValueError, match="a has a handler already"):
        app.job("a")(nothing)
    with pytest.raises(ValueError, match="http://, https://, nats:// or tls://"):
        App("127.0.0.1:8080")
