from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_engine.base.ids import is_job_id, new_job_id
from ojs_engine.base.payload_limits import DEFAULT_LIMITS, PayloadLimits
from ojs_engine.domain.job import Job, Retry, State
from ojs_engine.wire.jobs.enqueue import parse_enqueue
from ojs_engine.wire.jobs.job import job_members, job_view
from ojs_engine.wire.members import encode
from support.tables import each

NOW = 1_770_000_000_000
ID = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


def parse(members: dict[str, Any] | None = None, /, **more: Any) -> Job:
    body = {"type": "email.send", "args": ["a"], **(members or {}), **more}
    return parse_enqueue(encode(body), NOW, DEFAULT_LIMITS)


def refused(body: bytes | dict[str, Any], limits: PayloadLimits = DEFAULT_LIMITS) -> OjsError:
    with pytest.raises(OjsError) as caught:
        parse_enqueue(body if isinstance(body, bytes) else encode(body), NOW, limits)
    return caught.value


def test_the_smallest_job_gets_the_defaults() -> None:
    job = parse()
    assert is_job_id(job.id)
    expected = Job(id=job.id, type="email.send", args=Raw(b'["a"]'), state=State.AVAILABLE)
    assert job == expected


FLAT_AND_OPTION: list[tuple[str, Any, str, Any]] = [
    ("queue", "emails", "queue", "emails"),
    ("priority", -100, "priority", -100),
    ("priority", 100, "priority", 100),
    ("priority", 5.0, "priority", 5),
    ("priority", "HIGH", "priority", 10),
    ("priority", "low", "priority", -10),
    ("tags", ["a", "b"], "tags", ("a", "b")),
    ("timeout_ms", 60_000, "timeout_ms", 60_000),
    ("timeout", 30, "timeout_ms", 30_000),
    ("timeout", 1.5, "timeout_ms", 1_500),
    ("timeout", 0, "timeout_ms", None),
    ("timeout", "PT30S", "timeout_ms", 30_000),
    ("timeout", "30s", "timeout_ms", 30_000),
    ("visibility_timeout", 3, "visibility_timeout_ms", 3_000),
    ("visibility_timeout_ms", 3_000, "visibility_timeout_ms", 3_000),
    ("total_timeout", 3_600, "total_timeout_ms", 3_600_000),
    ("enqueue_ttl", 5, "enqueue_ttl_ms", 5_000),
    ("heartbeat_timeout", 60, "heartbeat_timeout_ms", 60_000),
    ("grace_period", 0, "grace_period_ms", 0),
    ("result_ttl", -1, "result_ttl_s", -1),
    ("result_ttl", 0, "result_ttl_s", 0),
    ("result_size_limit", 10, "result_size_limit", 10),
    ("schema", "urn:x", "schema", "urn:x"),
    ("version", "2.0", "version", "2.0"),
    ("version", 2, "version", 2),
    ("scheduled_at", "+PT2S", "scheduled_at", NOW + 2_000),
    ("scheduled_at", "PT2S", "scheduled_at", NOW + 2_000),
    ("delay_until", "2099-12-31T23:59:59Z", "scheduled_at", 4_102_444_799_000),
    ("expires_at", "2099-12-31T23:59:59+00:00", "expires_at", 4_102_444_799_000),
    ("pending", True, "state", State.PENDING),
    ("pending", False, "state", State.AVAILABLE),
    ("max_attempts", 7, "retry", Retry(max_attempts=7)),
    ("retry", {"max_attempts": 1}, "retry", Retry(max_attempts=1)),
    ("metadata", {"k": 1}, "metadata", Raw(b'{"k":1}')),
    ("meta", {"k": 1}, "meta", Raw(b'{"k":1}')),
    ("unique", {"keys": ["type"]}, "unique", Raw(b'{"keys":["type"]}')),
    ("rate_limit", {"max_per_second": 1}, "rate_limit", Raw(b'{"max_per_second":1}')),
]


@each(("name", "sent", "attribute", "expected"), FLAT_AND_OPTION)
def test_attributes_may_stand_flat_or_in_options(name: str, sent: Any, attribute: str, expected: Any) -> None:
    assert getattr(parse({name: sent}), attribute) == expected
    assert getattr(parse(options={name: sent}), attribute) == expected


def test_options_win_over_flat_members_whatever_the_order() -> None:
    flat: dict[str, Any] = {"queue": "a", "timeout": 30, "priority": 1, "expires_at": "2099-01-01T00:00:00Z", "tags": ["x"]}
    options: dict[str, Any] = {"options": {"queue": "b", "timeout_ms": 5, "priority": 2, "expires_at": "+PT1S", "tags": []}}
    for job in (parse(flat | options), parse(options | flat)):
        assert (job.queue, job.timeout_ms, job.timeout_in_seconds, job.priority) == ("b", 5, False, 2)
        assert (job.expires_at, job.verbatim, job.tags) == (NOW + 1_000, {}, ())


def test_delay_until_wins_over_scheduled_at_whatever_the_order() -> None:
    delay, schedule = "2099-01-01T00:00:00Z", "2098-01-01T00:00:00Z"
    for options in ({"delay_until": delay, "scheduled_at": schedule}, {"scheduled_at": schedule, "delay_until": delay}):
        job = parse(options=options)
        assert job.scheduled_at == 4_070_908_800_000
        assert job.verbatim == {"scheduled_at": delay}
    assert parse(scheduled_at=schedule, options={"delay_until": "+PT1S"}).verbatim == {}


def test_a_whole_retry_policy_wins_over_the_short_max_attempts() -> None:
    job = parse(options={"max_attempts": 9, "retry": {"max_attempts": 2}})
    assert job.retry.max_attempts == 2


def test_a_job_wrapper_is_opened() -> None:
    job = parse_enqueue(encode({"job": {"type": "a", "args": [], "queue": "q"}}), NOW, DEFAULT_LIMITS)
    assert (job.type, job.queue) == ("a", "q")


def test_null_members_are_absent_ones() -> None:
    names = {name for name, _, _, _ in FLAT_AND_OPTION} | {"id", "specversion", "x_custom"}
    nulls = dict.fromkeys(names)
    job = parse(nulls, options=None)
    assert msgspec.structs.replace(job, id=ID) == msgspec.structs.replace(parse(), id=ID)
    options = dict.fromkeys(names - {"id", "specversion"})
    assert msgspec.structs.replace(parse(options=options), id=ID) == msgspec.structs.replace(parse(), id=ID)


def test_timestamps_are_echoed_as_written_and_relative_ones_resolved() -> None:
    job = parse(expires_at="2099-12-31T23:59:59+02:00", scheduled_at="+PT2S")
    view = job_members(job)
    assert view["expires_at"] == "2099-12-31T23:59:59+02:00"
    assert view["scheduled_at"] == "2026-02-02T02:40:02.000Z"


def test_unknown_members_are_kept_and_system_members_ignored() -> None:
    sent: dict[str, object] = {
        "x_custom": {"deep": [1.0, 1e2]},
        "future": None,
        "state": "completed",
        "attempt": 5,
        "created_at": "x",
        "result": 1,
        "dead_letter": True,
        "timeline": [],
        "checkpoint": {"state": 1},
    }
    body = b'{"x_spaced": [1,  2], "type":"a","args":[ ],' + encode(sent)[1:]
    job = parse_enqueue(body, NOW, DEFAULT_LIMITS)
    assert job.extra == {"x_spaced": Raw(b"[1,  2]"), "x_custom": Raw(b'{"deep":[1.0,100.0]}')}
    assert (job.state, job.attempt, job.result) == (State.AVAILABLE, 0, Raw(b""))
    assert parse(options={"x_option": 1}).extra == {"x_option": Raw(b"1")}


def test_args_and_meta_stay_as_they_were_sent() -> None:
    body = b'{"type":"a","args":[ 1.0, 12345678901234567890123, "\\u00e9\xc3\xa9" ],"meta":{"a" : 1,"a":2}}'
    job = parse_enqueue(body, NOW, DEFAULT_LIMITS)
    assert bytes(job.args) == b'[ 1.0, 12345678901234567890123, "\\u00e9\xc3\xa9" ]'
    assert bytes(job.meta) == b'{"a" : 1,"a":2}'


UNSOUND = [
    b"",
    b"  \n",
    b"{",
    b"[]",
    b"null",
    b"1",
    b'"x"',
    b'{"type":"a","args":[}',
    b'{"type":"a","args":[NaN]}',
    b'{"type":"a","args":[1]}x',
    b'{"type":"a","args":["\xff"]}',
    b'{"type":"a","args":[],"x":"\xc3"}',
    b'{"\xff":1}',
    b'{"type":"a","args":["\\ud800"]}',
    b'{"type":"a","args":' + b"[" * 5_000 + b"]" * 5_000 + b"}",
    b'{"type":"a","args":[],"x":' + b'{"a":' * 70 + b"1" + b"}" * 70 + b"}",
]


@each("body", UNSOUND)
def test_what_is_no_sound_json_object_is_an_invalid_payload(body: bytes) -> None:
    assert refused(body).code == "invalid_payload"


def test_nesting_is_counted_exactly() -> None:
    def nested(depth: int) -> bytes:
        return b'{"type":"a","args":' + b"[" * depth + b"]" * depth + b"}"

    limit = DEFAULT_LIMITS.max_depth
    assert parse_enqueue(nested(limit), NOW, DEFAULT_LIMITS).type == "a"
    assert "args" in (error := refused(nested(limit + 1))).message
    assert str(limit) in error.message
    wide = b'{"type":"a","args":[' + b",".join([b"[]"] * 500) + b"]}"
    assert parse_enqueue(wide, NOW, DEFAULT_LIMITS).type == "a"


INVALID: list[tuple[str, Any, str, str]] = [
    ("type", 5, "invalid_request", "type"),
    ("type", None, "invalid_request", "type"),
    ("type", "", "invalid_request", "type"),
    ("type", "Email.Send", "invalid_request", "type"),
    ("type", "email send", "invalid_request", "type"),
    ("type", "1email", "invalid_request", "type"),
    ("type", "email.", "invalid_request", "type"),
    ("type", "email\n", "invalid_request", "type"),
    ("type", "a" * 256, "job_type_too_long", "type"),
    ("args", None, "invalid_request", "args"),
    ("args", {}, "invalid_request", "args"),
    ("args", "x", "invalid_request", "args"),
    ("args", True, "invalid_request", "args"),
    ("id", "", "invalid_request", "id"),
    ("id", 5, "invalid_request", "id"),
    ("id", ID.upper(), "invalid_request", "id"),
    ("id", "550e8400-e29b-41d4-a716-446655440000", "invalid_request", "id"),
    ("specversion", "2.0", "invalid_request", "specversion"),
    ("specversion", "10", "invalid_request", "specversion"),
    ("specversion", "0.9", "invalid_request", "specversion"),
    ("specversion", "1.x", "invalid_request", "specversion"),
    ("specversion", [1], "invalid_request", "specversion"),
    ("schema", "not a uri", "invalid_request", "schema"),
    ("version", "latest", "invalid_request", "version"),
    ("version", -1, "invalid_request", "version"),
    ("version", 1.5, "invalid_request", "version"),
    ("version", True, "invalid_request", "version"),
    ("version", {}, "invalid_request", "version"),
    ("type", "email.send@", "invalid_request", "type"),
    ("type", "email.send@new", "invalid_request", "type"),
    ("type", "@2.0", "invalid_request", "type"),
    ("type", "email.send@1@2", "invalid_request", "type"),
    ("schema", "order", "invalid_request", "schema"),
    ("meta", [], "invalid_request", "meta"),
    ("meta", {"k": "v" * 65_536}, "metadata_too_large", "meta"),
    ("options", [], "invalid_request", "options"),
    ("options", 5, "invalid_request", "options"),
    ("options", {"type": "x"}, "invalid_request", "options.type"),
    ("options", {"args": []}, "invalid_request", "options.args"),
    ("options", {"id": ID}, "invalid_request", "options.id"),
    ("options", {"queue": "Default"}, "invalid_request", "options.queue"),
    ("queue", "my_queue", "invalid_request", "queue"),
    ("queue", "-x", "invalid_request", "queue"),
    ("queue", "a b", "invalid_request", "queue"),
    ("queue", "*", "invalid_request", "queue"),
    ("queue", "a.>", "invalid_request", "queue"),
    ("queue", "", "invalid_request", "queue"),
    ("queue", 1, "invalid_request", "queue"),
    ("queue", "a" * 256, "queue_name_too_long", "queue"),
    ("priority", 101, "invalid_request", "priority"),
    ("priority", -101, "invalid_request", "priority"),
    ("priority", 1.5, "invalid_request", "priority"),
    ("priority", True, "invalid_request", "priority"),
    ("priority", "urgent", "invalid_request", "priority"),
    ("tags", "x", "invalid_request", "tags"),
    ("tags", [1], "invalid_request", "tags[0]"),
    ("tags", ["ok", "bad\x00"], "invalid_request", "tags[1]"),
    ("tags", ["x"] * 101, "invalid_request", "tags"),
    ("pending", "yes", "invalid_request", "pending"),
    ("timeout_ms", 0, "invalid_request", "timeout_ms"),
    ("timeout_ms", -5, "invalid_request", "timeout_ms"),
    ("timeout_ms", "soon", "invalid_request", "timeout_ms"),
    ("timeout_ms", True, "invalid_request", "timeout_ms"),
    ("timeout_ms", 1e300, "invalid_request", "timeout_ms"),
    ("timeout", -1, "invalid_request", "timeout"),
    ("timeout", -1.7e308, "invalid_request", "timeout"),
    ("visibility_timeout_ms", 0, "invalid_request", "visibility_timeout_ms"),
    ("grace_period", -1, "invalid_request", "grace_period"),
    ("scheduled_at", "tomorrow", "invalid_request", "scheduled_at"),
    ("scheduled_at", "2026-01-01T00:00:00", "invalid_request", "scheduled_at"),
    ("scheduled_at", 5, "invalid_request", "scheduled_at"),
    ("delay_until", "tomorrow", "invalid_request", "delay_until"),
    ("expires_at", "2026-13-45T00:00:00Z", "invalid_request", "expires_at"),
    ("expires_at", "+P1Y", "invalid_request", "expires_at"),
    ("result_ttl", -2, "invalid_request", "result_ttl"),
    ("result_size_limit", 0, "invalid_request", "result_size_limit"),
    ("result_size_limit", 2**30, "invalid_request", "result_size_limit"),
    ("schema", 5, "invalid_request", "schema"),
    ("metadata", "x", "invalid_request", "metadata"),
    ("unique", True, "invalid_request", "unique"),
    ("unique", {"keys": ["user"]}, "invalid_request", "unique.keys[0]"),
    ("unique", {"keys": ["meta"]}, "invalid_request", "unique.meta_keys"),
    ("unique", {"args_keys": ["no"]}, "invalid_request", "unique.args_keys"),
    ("unique", {"period": "soon"}, "invalid_request", "unique.period"),
    ("unique", {"states": ["gone"]}, "invalid_request", "unique.states[0]"),
    ("unique", {"on_conflict": "explode"}, "invalid_request", "unique.on_conflict"),
    ("rate_limit", 5, "invalid_request", "rate_limit"),
    ("rate_limit", {"max_per_second": 0}, "invalid_request", "rate_limit.max_per_second"),
    ("max_attempts", -1, "invalid_retry_policy", "max_attempts"),
    ("retry", 5, "invalid_retry_policy", "retry"),
]


@each(("name", "sent", "code", "field"), INVALID)
def test_a_refusal_names_the_field(name: str, sent: Any, code: str, field: str) -> None:
    error = refused({"type": "email.send", "args": [], name: sent})
    assert (error.code, error.details["field"]) == (code, field)
    assert error.message.startswith(field)
    assert error.hint


def test_missing_members_are_named_type_first() -> None:
    assert refused({}).details["field"] == "type"
    assert refused({"type": "a"}).details["field"] == "args"
    assert refused({"args": "x", "priority": 500}).details["field"] == "type"


def test_a_number_beyond_every_range_is_refused_in_any_member() -> None:
    assert refused(b'{"type":"a","args":[1e999]}').details["field"] == "args"
    assert refused(b'{"type":"a","args":[],"x":1e999}').details["field"] == "x"


def test_a_total_timeout_can_not_be_shorter_than_the_timeout() -> None:
    assert refused({"type": "a", "args": [], "timeout": 10, "total_timeout": 9}).details["field"] == "total_timeout"
    assert parse(timeout=10, total_timeout=10).total_timeout_ms == 10_000


def test_the_envelope_limit_is_exact() -> None:
    limits = PayloadLimits(max_envelope_bytes=200)
    body = b'{"type":"a","args":[]}'
    assert parse_enqueue(body.ljust(200), NOW, limits).type == "a"
    error = refused(body.ljust(201), limits)
    assert (error.code, error.info.status) == ("envelope_too_large", 413)
    assert error.details == {"field": "the job", "actual_bytes": 201, "max_bytes": 200}


def test_members_that_nobody_knows_are_bounded() -> None:
    few = {"type": "a", "args": []} | {f"x{index}": 1 for index in range(101)}
    assert "101" in refused(few).message
    assert refused({"type": "a", "args": [], "x": "v" * 65_536}).code == "metadata_too_large"


def test_a_long_value_is_shortened_in_the_message() -> None:
    assert len(refused({"type": "a", "args": [], "priority": "x" * 10_000}).message) < 300


@pytest.mark.parametrize(
    "unique",
    [
        {},
        {
            "keys": ["type", "queue", "args"],
            "args_keys": ["id"],
            "period": "PT1H",
            "states": ["available"],
            "on_conflict": "ignore",
        },
        {"key": ["type", "queue", "args"], "states": ["available", "active", "scheduled"]},
        {"key": ["user_id"], "period_ms": 5_000, "on_conflict": "replace_except_schedule"},
        {"key": "user-5", "within": "1h"},
        {"keys": ["type", "meta"], "meta_keys": ["tenant"]},
    ],
)
def test_uniqueness_is_taken_in_every_dialect_and_echoed(unique: dict[str, Any]) -> None:
    job = parse(args=[{"id": 1}], options={"unique": unique})
    assert msgspec.json.decode(encode(job_view(job)))["unique"] == unique
    assert job.unique_key is not None
    assert "unique_key" not in job_members(job)


def test_new_ids_are_uuids_of_version_7_and_carry_the_time() -> None:
    ids = [new_job_id(NOW + step) for step in range(100)]
    assert all(is_job_id(job_id) for job_id in ids)
    assert ids == sorted(ids)
    assert int(ids[0].replace("-", "")[:12], 16) == NOW


@pytest.mark.parametrize("version", ["1", "1.0", "1.0.0", "1.0.0-rc.1", "1.2", 1, 1.0])
def test_every_version_1_of_the_envelope_is_read(version: Any) -> None:
    draft = parse_enqueue(encode({"type": "a", "args": [], "specversion": version}), NOW, DEFAULT_LIMITS)
    assert job_members(draft)["specversion"] == "1.0"


def test_a_version_may_stand_behind_the_type_and_the_member_wins() -> None:
    drafts = [
        parse_enqueue(encode({"type": "email.send@2.0", "args": []} | more), NOW, DEFAULT_LIMITS)
        for more in ({}, {"version": 3}, {"options": {"version": "4.1"}}, {"version": None})
    ]
    assert [(draft.type, draft.version) for draft in drafts] == [("email.send", v) for v in ("2.0", 3, "4.1", "2.0")]


@pytest.mark.parametrize("name", ["sendEmail", "email.sendWelcome", "a.bC-d_E"])
def test_a_type_may_be_in_camel_case(name: str) -> None:
    assert parse_enqueue(encode({"type": name, "args": []}), NOW, DEFAULT_LIMITS).type == name


@each("name", ["Email.Send", "email.Send", "email send", "1email", "email@send!", "", "a..b", "a."])
def test_a_segment_of_a_type_begins_with_a_lower_case_letter(name: str) -> None:
    with pytest.raises(OjsError) as refused:
        parse_enqueue(encode({"type": name, "args": []}), NOW, DEFAULT_LIMITS)
    assert refused.value.details["field"] == "type"
