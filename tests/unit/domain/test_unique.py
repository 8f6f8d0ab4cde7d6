from __future__ import annotations

import hashlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.transitions.retention import RETENTION_S, retention_s
from ojs_engine.domain.unique import UniquePolicy, kept_s, keyed, parse_policy
from support.examples import costly
from support.tables import each

NOW = 1_770_000_000_000
LIVE = frozenset({State.AVAILABLE, State.ACTIVE, State.SCHEDULED, State.RETRYABLE, State.PENDING})


def raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


TYPE_AND_ARGS = ("type", "version", "args")


def policy(**sent: Any) -> UniquePolicy:
    return parse_policy(sent, "unique", PayloadLimits())


def job(unique: dict[str, Any] | None = None, *, args: Any = (), meta: Any = None, **members: Any) -> Job:
    defaults: dict[str, Any] = {"id": "x", "type": "email.send", "state": State.AVAILABLE, "created_at": NOW}
    sent = NOTHING if unique is None else raw(unique)
    return keyed(Job(**(defaults | members), args=raw(args), meta=raw(meta or {}), unique=sent))


def key(unique: dict[str, Any], **members: Any) -> str:
    found = job(unique, **members).unique_key
    assert found is not None
    return found


def sha(canonical: str) -> str:
    return hashlib.sha256(canonical.encode()).hexdigest()


# Dialects


def test_the_defaults_are_those_of_the_specification() -> None:
    assert policy() == UniquePolicy(dimensions=("type", "version"), states=LIVE, on_conflict="reject", period_ms=None)


@each(
    ("sent", "expected"),
    [
        ({"keys": ["type", "args"]}, UniquePolicy(dimensions=("type", "args"))),
        ({"keys": ["args"], "args_keys": ["id"]}, UniquePolicy(dimensions=("args",), args_keys=("id",))),
        ({"args_keys": ["id"]}, UniquePolicy(dimensions=TYPE_AND_ARGS, args_keys=("id",))),
        ({"keys": ["meta"], "meta_keys": ["tenant"]}, UniquePolicy(dimensions=("meta",), meta_keys=("tenant",))),
        ({"meta_keys": ["tenant"]}, UniquePolicy(dimensions=("type", "version", "meta"), meta_keys=("tenant",))),
        ({"key": ["type", "queue", "args"]}, UniquePolicy(dimensions=("type", "queue", "args"))),
        ({"key": ["user_id"]}, UniquePolicy(dimensions=TYPE_AND_ARGS, args_keys=("user_id",), lenient=True)),
        ({"key": ["args", "user_id"]}, UniquePolicy(dimensions=TYPE_AND_ARGS, args_keys=("args", "user_id"), lenient=True)),
        ({"key": ["id"], "keys": ["queue"]}, UniquePolicy(dimensions=("queue",))),
        ({"key": "order-7", "within": "1h"}, UniquePolicy(literal="order-7", period_ms=3_600_000)),
        ({"period": "PT2S"}, UniquePolicy(period_ms=2_000)),
        ({"period": 2}, UniquePolicy(period_ms=2_000)),
        ({"period_ms": 2_000}, UniquePolicy(period_ms=2_000)),
        ({"onConflict": "replace", "periodMs": 5}, UniquePolicy(on_conflict="replace", period_ms=5)),
        ({"states": ["available", "completed"]}, UniquePolicy(states=frozenset({State.AVAILABLE, State.COMPLETED}))),
        ({"states": None, "keys": None, "period": None}, UniquePolicy()),
    ],
)
def test_every_dialect_means_a_policy(sent: dict[str, Any], expected: UniquePolicy) -> None:
    assert policy(**sent) == expected


def test_an_empty_list_counts_as_left_out() -> None:
    empty: dict[str, Any] = {name: [] for name in ("args_keys", "meta_keys", "states")}
    assert policy(**empty) == policy()
    assert policy(keys=["args"], args_keys=[]) == policy(keys=["args"])
    assert policy(key=[], args_keys=["id"]) == policy(args_keys=["id"])


@pytest.mark.parametrize("name", ["key", "keys"])
def test_an_empty_list_of_keys_alone_takes_type_and_all_args(name: str) -> None:
    assert policy(**{name: []}) == policy(keys=["type", "version", "args"])
    assert key({name: []}, args=[5]) != key({name: []}, args=[6])


def test_versions_of_a_type_are_different_jobs_unless_a_list_of_dimensions_leaves_them_out() -> None:
    selections: list[dict[str, Any]] = [{"args_keys": ["id"]}, {"key": ["id"]}, {"key": "mine"}, {"keys": ["version"]}]
    for sent in ({}, {"keys": []}, *selections):
        keys = [key(sent, args=[{"id": 1}], version=version) for version in (None, "1.0", "2.0", 2)]
        assert len(set(keys)) == 3, sent
        assert keys[2] == keys[3]
    for sent in ({"keys": ["type", "args"]}, {"key": ["type", "args"]}):
        assert len({key(sent, args=[1], version=version) for version in (None, "1.0", 2)}) == 1
    assert policy(key=["version"]).args_keys == ("version",)


@each(
    ("sent", "field"),
    [
        ({"keys": ["argz"]}, "unique.keys[0]"),
        ({"keys": ["Type"]}, "unique.keys[0]"),
        ({"keys": "type"}, "unique.keys"),
        ({"keys": ["meta"]}, "unique.meta_keys"),
        ({"key": ["type", "meta"]}, "unique.meta_keys"),
        ({"keys": ["meta"], "meta_keys": []}, "unique.meta_keys"),
        ({"key": 5}, "unique.key"),
        ({"key": ""}, "unique.key"),
        ({"args_keys": "id"}, "unique.args_keys"),
        ({"period": "soon"}, "unique.period"),
        ({"period": 0}, "unique.period"),
        ({"states": ["gone"]}, "unique.states[0]"),
        ({"on_conflict": "explode"}, "unique.on_conflict"),
        ({"on_conflict": ["reject"]}, "unique.on_conflict"),
        ({"arg_keys": ["id"]}, "unique.arg_keys"),
    ],
)
def test_a_bad_policy_is_refused_by_name(sent: dict[str, Any], field: str) -> None:
    with pytest.raises(OjsError) as caught:
        policy(**sent)
    assert caught.value.code == "invalid_request"
    assert caught.value.details["field"] == field


# The fingerprint


def test_the_fingerprint_is_the_hash_of_canonical_json() -> None:
    assert key({"keys": ["args"], "args_keys": ["user_id"]}, args=[{"user_id": 42, "locale": "en"}]) == sha(
        '{"args":{"user_id":42},"type":"email.send"}'
    )
    assert key({"keys": ["queue", "args"]}, args=[{"b": 1.0, "a": "\u20ac"}, 1e21], queue="q") == sha(
        '{"args":[{"a":"\u20ac","b":1},1e+21],"queue":"q","type":"email.send"}'
    )
    assert key({"keys": ["meta"], "meta_keys": ["t"]}, meta={"t": [1], "trace": 2}) == sha(
        '{"meta":{"t":[1]},"type":"email.send"}'
    )
    assert key({"key": "order-7"}) == sha('{"key":"order-7","type":"email.send"}')


def test_type_is_always_part_of_it_and_the_queue_only_when_named() -> None:
    assert key({"keys": ["args"]}, type="a") != key({"keys": ["args"]}, type="b")
    assert key({"keys": ["args"]}, queue="a") == key({"keys": ["args"]}, queue="b")
    assert key({"keys": ["queue"]}, queue="a") != key({"keys": ["queue"]}, queue="b")


def test_strings_are_compared_in_normal_form_names_included() -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    assert key({"keys": ["args"]}, args=[{composed: composed}]) == key({"keys": ["args"]}, args=[{decomposed: decomposed}])


def test_selected_members_come_from_the_first_object_that_has_them() -> None:
    selected = {"args_keys": ["a", "b"]}
    assert key(selected, args=[{"a": 1, "x": 1}, "text", {"a": 2, "b": 3}]) == key(selected, args=[{"a": 1, "b": 3}])
    assert key(selected, args=[{"a": 1, "b": 3}]) != key(selected, args=[{"a": 1, "b": 4}])


def test_a_selected_member_that_is_not_there_is_refused_but_not_in_the_sdk_dialect() -> None:
    with pytest.raises(OjsError) as caught:
        job({"args_keys": ["user"]}, args=[{"id": 1}])
    assert (caught.value.code, caught.value.details["field"]) == ("invalid_request", "unique.args_keys")
    assert key({"key": ["user", "id"]}, args=[{"id": 1}]) == sha('{"args":{"id":1},"type":"email.send"}')


def test_an_integer_without_an_exact_double_is_refused_rather_than_taken_for_its_neighbour() -> None:
    with pytest.raises(OjsError) as caught:
        job({"keys": ["args"]}, args=[2**53 + 1])
    assert caught.value.code == "invalid_request"
    assert job({"keys": ["type"]}, args=[2**53 + 1]).unique_key


def test_a_job_without_a_policy_has_no_fingerprint() -> None:
    assert job().unique_key is None
    assert keyed(replace(job({"keys": ["type"]}), unique=NOTHING)).unique_key is None


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def shuffled(value: Any) -> Any:
    """The same JSON with members in the opposite order."""
    if isinstance(value, dict):
        return {name: shuffled(item) for name, item in reversed(value.items())}
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@costly
@given(st.lists(json_values, max_size=3))
def test_the_order_of_members_makes_no_difference(args: list[Any]) -> None:
    assert key({"keys": ["args"]}, args=args) == key({"keys": ["args"]}, args=shuffled(args))


# Retention


def test_a_record_stays_while_later_jobs_may_be_its_duplicates() -> None:
    month = {"keys": ["type"], "states": ["completed"], "period": "P30D"}
    assert kept_s(job(month, state=State.COMPLETED)) == 30 * 86_400
    assert retention_s(job(month, state=State.COMPLETED)) == 30 * 86_400
    assert retention_s(job(month, state=State.CANCELLED)) == RETENTION_S[State.CANCELLED]
    short = {"keys": ["type"], "states": ["completed"], "period": "PT1S"}
    assert retention_s(job(short, state=State.COMPLETED)) == RETENTION_S[State.COMPLETED]
    assert kept_s(job(state=State.COMPLETED)) == 0
