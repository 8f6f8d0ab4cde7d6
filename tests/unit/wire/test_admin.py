from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from ojs_nats.errors import OjsError
from ojs_nats.job import Entry, Job, JobError, Retry, State
from ojs_nats.queries import WorkerRow
from ojs_nats.store import WorkerRecord
from ojs_nats.store.directives import Directive
from ojs_nats.wire.admin import parse_wish, retries_view, worker_view
from ojs_nats.wire.limits import Limits
from ojs_nats.wire.output import encode
from ojs_nats.wire.selection import parse_confirmed

NOW = 1_800_000_000_000
LIMITS = Limits()


def failed(attempt: int) -> JobError:
    return JobError(code="c", type=f"E{attempt}", message="m", attempt=attempt, at=NOW + attempt * 1_000)


def claimed(attempt: int) -> Entry:
    return Entry(n=attempt, op="o", event="claimed", at=NOW + attempt * 1_000 - 400, attempt=attempt)


def test_each_failed_attempt_says_when_it_began_and_the_last_what_follows() -> None:
    job = Job(
        id="j",
        type="a.b",
        args=Raw(b"[]"),
        state=State.RETRYABLE,
        attempt=3,
        created_at=NOW,
        retry=Retry(max_attempts=5),
        errors=(failed(1), failed(2), failed(3)),
        transitions=(claimed(2), claimed(3)),
        next_attempt_at=NOW + 9_000,
    )
    view = retries_view(job)
    assert [(one["attempt"], one["state"], one["type"]) for one in view["retries"]] == [
        (1, "failed", "E1"),
        (2, "failed", "E2"),
        (3, "retryable", "E3"),
    ]
    first, second, third = view["retries"]
    assert "started_at" not in first, "its transition is not logged any more"
    assert (second["started_at"], second["failed_at"]) == ("2027-01-15T08:00:01.600Z", "2027-01-15T08:00:02.000Z")
    assert third["next_retry_at"] == "2027-01-15T08:00:09.000Z"
    assert "next_retry_at" not in second
    assert (view["attempt"], view["max_attempts"]) == (3, 5)


def test_a_worker_that_fetches_without_its_name_still_says_what_it_has() -> None:
    record = WorkerRecord(id="w", active_jobs=4, labels=Raw(b'{"zone":"a"}'), seen_at=NOW)
    view = msgspec.json.decode(encode(worker_view(WorkerRow(record=record), None)))
    assert (view["active_jobs"], view["labels"], view["directive"]) == (4, {"zone": "a"}, "none")
    assert worker_view(WorkerRow(record=record, held=2), None)["active_jobs"] == 2


def test_a_stale_worker_is_shown_as_such_with_what_it_was_told() -> None:
    row = WorkerRow(record=WorkerRecord(id="w", state="quiet", seen_at=NOW), stale=True)
    view = worker_view(row, Directive("terminate", NOW))
    assert (view["state"], view["directive"], view["directive_at"]) == ("stale", "terminate", "2027-01-15T08:00:00.000Z")


@pytest.mark.parametrize("body", [b"", b"{}", b'{"directive":"QUIET"}', b'{"directive":null}'])
def test_an_unknown_directive_is_refused(body: bytes) -> None:
    with pytest.raises(OjsError) as refused:
        parse_wish(body)
    assert refused.value.details["field"] == "directive"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "confirm"),
        (b'{"filter":{}}', "confirm"),
        (b'{"filter":{},"confirm":false}', "confirm"),
        (b'{"confirm":true}', "filter"),
        (b'{"filter":{"colour":"red"},"confirm":true}', "filter.colour"),
        (b'{"filter":{"state":7},"confirm":true}', "filter.state"),
        (b'{"filter":{"priority":1.5},"confirm":true}', "filter.priority"),
        (b'{"filter":{"since":"soon"},"confirm":true}', "filter.since"),
        (b'{"filter":{"state":"dead"},"confirm":true}', "filter.state"),
        (b'{"filter":{"queue":"q"},"limit":1,"confirm":true}', "limit"),
        (b'{"filter":{"queue":"q"},"job_ids":["1"],"confirm":true}', "job_ids"),
    ],
)
def test_a_bulk_action_needs_a_filter_and_a_confirmation(body: bytes, field: str) -> None:
    with pytest.raises(OjsError) as refused:
        parse_confirmed(body, "retry", NOW, LIMITS)
    assert refused.value.details["field"] == field


def test_a_confirmed_filter_is_read() -> None:
    body = b'{"filter":{"queue":"q","state":"discarded","type":"a.b","since":"2027-01-15T08:00:00Z"},"confirm":true}'
    wanted = parse_confirmed(body, "retry", NOW, LIMITS).filter
    assert wanted is not None
    assert (wanted.queue, wanted.states, wanted.type) == ("q", (State.DISCARDED,), "a.b")
    assert (wanted.since, wanted.until) == (NOW, None)
