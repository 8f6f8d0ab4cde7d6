"""Every member of every request of the contract, wrong in every way, before the handlers themselves."""

from __future__ import annotations

from functools import cache
from typing import Any, cast

import pytest

from ojs_api.operations import Operation
from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.store.store import Store
from ojs_engine.wire.workers.requests import parse_heartbeat, parse_nack
from ojs_features.all import FEATURES
from ojs_gateway.context import Context
from ojs_gateway.http.endpoint import Handler
from ojs_gateway.routes import bound
from ojs_runtime.settings import Settings
from support.call import Request
from support.contract import BODIES, BY_HAND, OTHER_NAMES, PLACES, REPORTS, Wrong, operations, refusing, wrong_requests
from support.fake_store import FakeStore

PYTHONS = ("{'", "['", "None", "True", "False", "dict", "NoneType", "got int", "got str", "Expected", "\\x", "Any", "Raw")
"""Words of Python that no refusal has."""


@cache
def handlers() -> dict[str, Handler]:
    context = Context(cast("Store", FakeStore()), DEFAULT_LIMITS, Settings(test_mode=True), FEATURES)
    return {endpoint.name: endpoint.handler for _, endpoint in bound(context)}


def placed(operation: Operation) -> tuple[str, ...]:
    return tuple(value for name, value in PLACES.items() if f"{{{name}}}" in operation.path)


def test_each_request_of_the_contract_has_an_example() -> None:
    assert BODIES.keys() | BY_HAND == {each.name for each in operations() if each.body is not None}


async def refusal(wrong: Wrong) -> OjsError | None:
    """What the handler says of a request; None if it takes it."""
    try:
        await handlers()[wrong.operation.name](Request(wrong.body, placed(wrong.operation)))
    except OjsError as error:
        return error
    except AttributeError:  # it was taken: the store would have it, and the fake one doesn't keep everything
        return None
    return None


@pytest.mark.parametrize("operation", list(refusing()), ids=lambda operation: operation.name)
async def test_a_wrong_member_is_refused_by_its_name(operation: Operation) -> None:
    told = [(wrong, await refusal(wrong)) for wrong in wrong_requests(operation)]
    assert [f"{wrong.body[:80]!r}: {error and error.message}" for wrong, error in told if not names(error, wrong.member)] == []


READERS: dict[str, Any] = {"nackJob": parse_nack, "workerHeartbeat": parse_heartbeat}
PLAINLY_MEANT = {"job_id", "error", "state"}
"""Texts for which a number stands, however many digits it has."""


@pytest.mark.parametrize("operation", [each for each in operations() if each.name in REPORTS], ids=lambda each: each.name)
def test_a_wrong_member_of_a_report_is_named_by_a_warning_or_a_refusal(operation: Operation) -> None:
    for wrong in wrong_requests(operation):
        try:
            told = [warning.field for warning in READERS[operation.name](wrong.body, DEFAULT_LIMITS).warnings]
        except OjsError as error:
            told = [error.details.get("field", "job_id")]
        named = (wrong.member, OTHER_NAMES.get(wrong.member, wrong.member))
        is_long = wrong.member in PLAINLY_MEANT and b"0" * 400 in wrong.body
        assert is_long or any(field.startswith(named) for field in told), wrong.body[:200]


def names(error: OjsError | None, member: str) -> bool:
    """Whether a refusal is the client's matter, names the member in its details and its words, and says what to do."""
    if error is None or not 400 <= error.info.status < 500:
        return False
    field = error.details.get("field", "")
    plain = len(error.message) < 500 and not any(words in error.message for words in PYTHONS)
    return field.startswith((member, OTHER_NAMES.get(member, member))) and field in error.message and plain and bool(error.hint)
