from __future__ import annotations

import pytest

from ojs_api.bulk import WhichJobs
from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import State
from ojs_engine.domain.members import FOUND_BY
from ojs_features.bulk.requests import parse_confirmed, parse_selection
from support.tables import each

NOW = 1_800_000_000_000
LIMITS = PayloadLimits()


@each(
    ("body", "field"),
    [
        (b"", "confirm"),
        (b'{"filter":{}}', "confirm"),
        (b'{"filter":{},"confirm":false}', "confirm"),
        (b'{"filter":{"since":"soon"},"confirm":true}', "filter.since"),
    ],
)
def test_a_bulk_action_needs_a_filter_and_a_confirmation(body: bytes, field: str) -> None:
    with pytest.raises(OjsError) as refused:
        parse_confirmed(body, "retry", NOW, LIMITS)
    assert refused.value.details["field"] == field


@each(
    ("body", "field"),
    [
        (b"{}", "job_ids"),
        (b'{"job_ids":["x"]}', "job_ids[0]"),
        (b'{"job_ids":["01900000-0000-7000-8000-000000000000"],"filter":{"queue":"a"}}', "job_ids"),
        (b'{"filter":{"queue":"a","enqueued_before":"noon"}}', "filter.enqueued_before"),
    ],
)
def test_a_selection_that_says_nothing_or_two_things_is_refused_by_name(body: bytes, field: str) -> None:
    with pytest.raises(OjsError) as refused:
        parse_selection(body, "cancel", NOW, LIMITS)
    assert (refused.value.code, refused.value.details["field"]) == ("invalid_request", field)


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
        parse_selection(body, "delete", NOW, LIMITS)
    assert caught.value.details["field"] == "confirm"
    confirmed = body[:-1] + b',"confirm":true}'
    assert parse_selection(confirmed, "delete", NOW, LIMITS).filter is not None


def test_jobs_can_be_selected_by_all_that_lists_find_them_by() -> None:
    assert {by.name for by in FOUND_BY} <= {*WhichJobs.__struct_fields__}


@pytest.mark.parametrize("member", [b'"type":"a.b"', b'"queue":"q"', b'"priority":5', b'"meta":{"tenant":"acme"}'])
def test_a_filter_that_names_what_jobs_it_is_about_needs_none(member: bytes) -> None:
    assert parse_selection(b'{"filter":{%s}}' % member, "cancel", NOW, LIMITS).filter is not None


def test_a_bulk_cancellation_may_give_a_reason_and_nothing_else_has_one() -> None:
    body = b'{"filter":{"queue":"q"},"confirm":true,"reason":"deploy"}'
    assert parse_selection(body, "cancel", NOW, LIMITS).reason == "deploy"
    assert parse_confirmed(body, "cancel", NOW, LIMITS).reason == "deploy"
    with pytest.raises(OjsError) as refused:
        parse_selection(body, "delete", NOW, LIMITS)
    assert refused.value.details["field"] == "reason"
