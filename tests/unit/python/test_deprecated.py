"""The names of 0.2 warn of those that took their places, and do what these do."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime
from typing import Any

import pytest

import ojs_nats
from ojs_nats import App, Client, Retry, Unique, Worker, _deprecated
from ojs_nats.errors import UnavailableError
from ojs_nats.jobs import JobRequest
from support.tables import each

root: Any = ojs_nats
new_app: Any = App
new_client: Any = Client
retry: Any = Retry
unique: Any = Unique
worker: Any = Worker


@each(("old", "place"), sorted(_deprecated.PLACES.items()))
def test_a_name_of_the_root_is_found_where_it_is_now(old: str, place: str) -> None:
    module, _, name = place.rpartition(".")
    with pytest.warns(DeprecationWarning, match=rf"ojs_nats\.{old} is ojs_nats\.{place} now"):
        found = getattr(root, old)
    assert found is (
        getattr(importlib.import_module(f"ojs_nats.{module}"), name) if module else importlib.import_module(f"ojs_nats.{name}")
    )


def test_the_warning_is_of_the_line_that_has_the_old_name() -> None:
    with pytest.warns(DeprecationWarning, match="NewJob") as warned:
        _ = root.NewJob
    assert [warning.filename for warning in warned] == [__file__]


def test_definitions_have_their_old_methods() -> None:
    app = new_app("http://127.0.0.1:1")

    @app.job("old.add")  # type: ignore[untyped-decorator]
    def add(first: int) -> int:
        return first

    when = datetime(2026, 11, 28, tzinfo=UTC)
    with pytest.warns(DeprecationWarning, match=r"JobDefinition.using is JobDefinition.options now"):
        assert add.using(priority=5).job(1).options == {"priority": 5}
    with pytest.warns(DeprecationWarning, match=r"JobDefinition.s is JobDefinition.job now"):
        assert isinstance(add.s(1), JobRequest)
    with pytest.warns(DeprecationWarning, match=r"JobDefinition.at is JobDefinition.later now"):
        assert add.at(when).job(1).options == {"scheduled_at": when}
    with pytest.warns(DeprecationWarning, match=r"JobDefinition.unique is JobDefinition.options\(unique=\) now"):
        assert add.unique().job(1).options == {"unique": Unique()}
    with pytest.warns(DeprecationWarning, match=r"the option at= is scheduled_at= now"):
        assert add.options(at=when).job(1).options == {"scheduled_at": when}


def test_arguments_have_their_old_names() -> None:
    with pytest.warns(DeprecationWarning, match=r"Retry\((\w+)=\) is Retry"):
        old = retry(attempts=5, initial="1s", coefficient=3.0, not_for=["ValueError"], then="dead_letter")
    assert old == Retry(
        5, initial_interval="1s", backoff_coefficient=3.0, non_retryable_errors=["ValueError"], on_exhaustion="dead_letter"
    )
    with pytest.warns(DeprecationWarning, match=r"Unique\(by=\) is Unique\(keys=\) now"):
        assert unique(by=["type"]) == Unique(keys=["type"])
    with pytest.warns(DeprecationWarning, match=r"App\(patience=\) is App\(retry_for=\) now"):
        app = new_app("http://127.0.0.1:1", patience="0s")
    with pytest.raises(UnavailableError, match="no server answers"):
        app.sync.jobs.get("an-id")
    app.sync.close()
    with pytest.warns(DeprecationWarning, match=r"Client\(patience=\) is Client\(retry_for=\) now"):
        new_client("http://127.0.0.1:1", patience="5s")


def test_a_worker_takes_an_argument_that_does_nothing_any_more() -> None:
    app = new_app("http://127.0.0.1:1")

    @app.job("old.sub")  # type: ignore[untyped-decorator]
    def sub() -> None:
        """Do nothing."""

    with pytest.warns(DeprecationWarning, match=r"Worker\(ahead=\) does nothing now") as warned:
        worker(app, ahead=100)
    assert [warning.filename for warning in warned] == [__file__]


async def test_clients_have_their_old_methods() -> None:
    client: Any = Client("http://127.0.0.1:1")
    for old, new in (("push_many", "push_all"), ("push_bulk", "push_each")):
        with pytest.warns(DeprecationWarning, match=f"Client.{old} is Client.{new} now"):
            assert await getattr(client, old)([]) == []
    for group, old, new in (
        (client, "ended", "jobs.wait"),
        (client.jobs, "reprioritise", "set_priority"),
        (client.workflows, "ended", "wait"),
        (client.workers, "direct", "send_directive"),
    ):
        with pytest.warns(DeprecationWarning, match=f"{type(group).__name__}.{old} is {type(group).__name__}.{new} now"):
            getattr(group, old)("a", "1s").close()


def test_requests_have_their_old_method() -> None:
    request: Any = JobRequest("old.add", (1,))
    with pytest.warns(DeprecationWarning, match=r"JobRequest.using is JobRequest.with_options now"):
        assert request.using(priority=5).options == {"priority": 5}


def test_what_never_was_a_name_is_none() -> None:
    with pytest.raises(AttributeError, match="module 'ojs_nats' has no attribute 'Aap'"):
        _ = root.Aap
