"""Members that a request names twice: rare requests that change much are refused, those of each job are read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_api.queues import DeleteQueue, PurgeQueue
from ojs_engine.base.errors import OjsError
from ojs_engine.base.fields import check_once
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.wire.jobs.enqueue import parse_enqueue
from ojs_engine.wire.queues.requests import parse_config
from ojs_engine.wire.requests import request_of
from ojs_features.bulk.requests import parse_confirmed, parse_selection
from ojs_features.limits.answers import parse_override
from ojs_features.maintenance.answers import parse_maintenance
from ojs_features.pools.bodies import parse_pool
from support.tables import each

NOW = 1_790_000_000_000


def _confirmed(body: bytes) -> object:
    return parse_confirmed(body, "delete", NOW, DEFAULT_LIMITS)


def _selection(body: bytes) -> object:
    return parse_selection(body, "cancel", NOW, DEFAULT_LIMITS)


RARE: list[tuple[Callable[[bytes], object], bytes, str]] = [
    (_confirmed, b'{"filter":{"queue":"a","queue":"b"}}', "queue"),
    (_confirmed, b'{"confirm":false,"confirm":true}', "confirm"),
    (_selection, b'{"job_ids":["x"],"job_ids":["y"]}', "job_ids"),
    (lambda body: parse_config(body, DEFAULT_LIMITS), b'{"max_size": 1, "max_size": 9}', "max_size"),
    (lambda body: parse_config(body, DEFAULT_LIMITS), b'{"max_size": 1, "m\\u0061x_size": 9}', "max_size"),
    (lambda body: request_of(body, DeleteQueue), b'{"strategy":"discard","strategy":"move"}', "strategy"),
    (lambda body: request_of(body, PurgeQueue), b'{"confirm":true,"confirm":false}', "confirm"),
    (lambda body: parse_maintenance(body, NOW, DEFAULT_LIMITS), b'{"enabled":true,"enabled":false}', "enabled"),
    (lambda body: parse_pool(body, "p", DEFAULT_LIMITS), b'{"queues":["a"],"queues":["b"]}', "queues"),
    (lambda body: parse_override(body, NOW, DEFAULT_LIMITS), b'{"concurrency":1,"concurrency":9}', "concurrency"),
]


@each(("parse", "body", "field"), RARE, ids=[f"{at}-{field}" for at, (*_, field) in enumerate(RARE)])
def test_a_rare_request_that_says_two_things_is_refused_naming_the_member(
    parse: Callable[[bytes], object], body: bytes, field: str
) -> None:
    with pytest.raises(OjsError) as raised:
        parse(body)
    assert (raised.value.code, raised.value.details["field"]) == ("invalid_request", field)
    assert "twice" in raised.value.message


def test_of_a_job_the_last_counts() -> None:
    job = parse_enqueue(b'{"type":"a.b","type":"c.d","args":[]}', NOW, DEFAULT_LIMITS)
    assert job.type == "c.d"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


@given(st.binary(max_size=30) | JSON.map(lambda value: repr(value).encode()))
def test_what_is_no_json_is_left_to_whoever_reads_it(body: bytes) -> None:
    assert check_once(body) is body


@pytest.mark.parametrize("body", [b"[" * 100_000, b"1" + b"0" * 5_000, b"1e400", b'"\xff"', b""])
def test_neither_depth_nor_digits_hold_it_up(body: bytes) -> None:
    assert check_once(body) is body
