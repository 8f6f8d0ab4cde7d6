from __future__ import annotations

import msgspec
import pytest
from msgspec import Raw

from ojs_core.base.errors import OjsError
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.domain.job import Entry, Job, JobError, Retry, State
from ojs_core.read.messages import WorkerRow
from ojs_core.store.workers.directives import Directive
from ojs_core.store.workers.presence import WorkerRecord
from ojs_core.wire.admin import parse_wish, retries_view, worker_view
from ojs_core.wire.members import encode
from ojs_core.wire.selection import parse_confirmed, parse_selection

NOW = 1_800_000_000_000
LIMITS = PayloadLimits()


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


BROAD = [
    b'{"filter":{}}',
    b'{"filter":{"state":["discarded"]}}',
    b'{"filter":{"enqueued_after":"1970-01-01T00:00:00Z"}}',
    b'{"filter":{"older_than":"1s"}}',
    b'{"filter":{"since":"1970-01-01T00:00:00Z","until":"2999-01-01T00:00:00Z","state":"available"}}',
]


@pytest.mark.parametrize("body", BROAD)
def test_a_filter_that_may_fit_every_job_needs_a_confirmation(body: bytes) -> None:
    with pytest.raises(OjsError) as caught:
        parse_selection(body, "delete", NOW, LIMITS, confirmed=False)
    assert caught.value.details["field"] == "confirm"
    assert parse_selection(body, "delete", NOW, LIMITS, confirmed=True).filter is not None
    confirmed = body[:-1] + b',"confirm":true}'
    assert parse_selection(confirmed, "delete", NOW, LIMITS, confirmed=False).filter is not None


@pytest.mark.parametrize("member", [b'"type":"a.b"', b'"queue":"q"', b'"priority":5', b'"meta":{"tenant":"acme"}'])
def test_a_filter_that_names_what_jobs_it_is_about_needs_none(member: bytes) -> None:
    assert parse_selection(b'{"filter":{%s}}' % member, "cancel", NOW, LIMITS, confirmed=False).filter is not None
