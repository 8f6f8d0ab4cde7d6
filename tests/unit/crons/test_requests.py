from __future__ import annotations

import json
from typing import Any, get_args

import msgspec
import pytest
from msgspec import Struct

from ojs_api import words
from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.transitions import Moment
from ojs_engine.wire.members import Extended, encode
from ojs_engine.wire.pages import Page, parse_page
from ojs_features.crons.answers import cron_answer, cron_history, cron_page
from ojs_features.crons.changes import register, switch
from ojs_features.crons.record import Cron
from ojs_features.crons.requests import cron_name, parse_patch, parse_registration, parse_switch
from support.tables import each

NOW = 1_800_000_000_000
FLAT: dict[str, Any] = {"name": "daily.report-1", "cron": "0 9 * * *", "type": "report.make"}
NESTED: dict[str, Any] = {"name": "daily.report-1", "expression": "0 9 * * *", "job_template": {"type": "report.make"}}


def registered(body: dict[str, Any]) -> Cron:
    return register(None, parse_registration(json.dumps(body).encode(), PayloadLimits()), Moment(NOW, "op1")).record


def view(body: dict[str, Any]) -> dict[str, Any]:
    return read(cron_answer(registered(body)))


def read(answer: Struct | Extended[Any]) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(encode(answer))
    return shown


@pytest.mark.parametrize("body", [FLAT, NESTED], ids=["flat", "template"])
def test_both_dialects_say_the_same(body: dict[str, Any]) -> None:
    assert view(body) == {
        "name": "daily.report-1",
        "expression": "0 9 * * *",
        "timezone": "UTC",
        "job_template": {"type": "report.make", "args": [], "options": {}, "meta": {}},
        "overlap_policy": "skip",
        "enabled": True,
        "last_run_at": None,
        "next_run_at": "2027-01-15T09:00:00.000Z",
        "run_count": 0,
        "created_at": "2027-01-15T08:00:00.000Z",
        "updated_at": "2027-01-15T08:00:00.000Z",
    }


def test_everything_that_may_be_said() -> None:
    options = {"queue": "reports", "timeout": 300, "priority": 5, "retry": {"max_attempts": 7}, "tags": ["a"], "meta": {"x": 1}}
    asked = {
        **FLAT,
        "args": [{"a": 1}],
        "timezone": "America/New_York",
        "options": options,
        "meta": {"x": 2, "y": 3},
        "overlap_policy": "enqueue",
        "enabled": False,
        "description": "about it",
    }
    cron = registered(asked)
    draft = cron.draft
    assert (draft.queue, draft.timeout_ms, draft.priority, draft.retry.max_attempts, draft.tags) == (
        "reports",
        300_000,
        5,
        7,
        ("a",),
    )
    assert msgspec.json.decode(draft.meta) == {"x": 1, "y": 3}, "both are merged"
    shown = read(cron_answer(cron))
    assert shown["job_template"]["options"] == options
    assert (shown["overlap_policy"], shown["description"]) == ("enqueue", "about it")
    assert (shown["enabled"], shown["next_run_at"]) == (False, None)


def test_the_answer_can_be_sent_back() -> None:
    flat = {"priority": 3, "x_own": [1], "unique": None}
    first = view({**FLAT, **flat, "options": {"queue": "q", "meta": {"a": 1}}, "meta": {"b": 2}, "timezone": "Asia/Tokyo"})
    assert first["job_template"]["options"] == {"priority": 3, "x_own": [1], "queue": "q", "meta": {"a": 1}}
    assert view(first) == first


def test_members_of_the_server_are_ignored() -> None:
    assert view({**FLAT, "run_count": 9, "last_run_at": "never", "created_at": 1, "next_run_at": [], "status": 4}) == view(FLAT)


def test_an_alias_comes_back_as_it_was_sent() -> None:
    assert view({**FLAT, "cron": "@daily"})["expression"] == "@daily"


def test_flat_attributes_of_the_job_count_too() -> None:
    assert registered({**FLAT, "queue": "q", "visibility_timeout": 5}).draft.visibility_timeout_ms == 5_000


def test_relative_times_are_kept_relative() -> None:
    draft = registered({**FLAT, "options": {"delay_until": "+PT5S", "expires_at": "2030-01-01T00:00:00Z"}}).draft
    assert (draft.scheduled_at, draft.verbatim) == (5_000, {"expires_at": "2030-01-01T00:00:00Z"})


@each(
    ("change", "field", "words"),
    [
        ({"name": None}, "name", "name is required"),
        ({"name": ""}, "name", "that matches"),
        ({"name": "Daily"}, "name", "that matches"),
        ({"name": "-daily"}, "name", "that matches"),
        ({"name": "a_b"}, "name", "that matches"),
        ({"name": "a" * 256}, "name", "at most 255"),
        ({"name": 5}, "name", "that matches"),
        ({"cron": None}, "cron", "cron is required"),
        ({"cron": ""}, "cron", "it is empty"),
        ({"cron": 5}, "cron", "must be a cron expression as text, not 5"),
        ({"cron": "99 25 32 13 8"}, "cron", "minute 99 is not from 0 to 59"),
        ({"expression": "1 9 * * *"}, "cron", "cron and expression are the same"),
        ({"timezone": "EST"}, "timezone", 'timezone "EST" is not the name'),
        ({"timezone": "+05:00"}, "timezone", "offsets"),
        ({"timezone": 5}, "timezone", "must be the name of an IANA time zone, not 5"),
        ({"overlap_policy": "queue"}, "overlap_policy", f"one of {', '.join(get_args(words.Overlap))}"),
        ({"overlap_policy": ["skip"]}, "overlap_policy", "one of"),
        ({"enabled": "yes"}, "enabled", "true or false"),
        ({"enabled": 1}, "enabled", "true or false"),
        ({"description": 5}, "description", "text"),
        ({"description": "x" * 1_001}, "description", "at most 1000"),
        ({"type": None}, "type", "type is required"),
        ({"type": "Bad Type"}, "type", "type must match"),
        ({"args": {"a": 1}}, "args", "must be a JSON array"),
        ({"options": 5}, "options", "must be an object"),
        ({"options": {"queue": "A B"}}, "options.queue", "must match"),
        ({"options": {"meta": 5}}, "meta", "must be an object"),
        ({"meta": []}, "meta", "must be an object"),
        ({"job_template": {"id": "01946180-1a2b-7c3d-8e4f-5a6b7c8d9e0f"}}, "job_template.id", "an id of its own"),
        ({"job_template": []}, "job_template", "must be an object"),
    ],
)
def test_what_is_wrong_is_named(change: dict[str, Any], field: str, words: str) -> None:
    with pytest.raises(OjsError) as caught:
        registered({**FLAT, **change})
    assert (caught.value.info.status, caught.value.code, caught.value.details["field"]) == (400, "invalid_request", field)
    assert words in caught.value.message


def test_the_job_is_checked_like_a_pushed_one() -> None:
    with pytest.raises(OjsError) as caught:
        registered({**FLAT, "options": {"retry": {"max_attempts": -1}}})
    assert caught.value.info.status == 422
    with pytest.raises(OjsError) as large:
        parse_registration(json.dumps({**FLAT, "args": ["x" * 2_000]}).encode(), PayloadLimits(max_envelope_bytes=1_024))
    assert large.value.code == "envelope_too_large"


@pytest.mark.parametrize("body", [b"", b"[]", b"nonsense", b'{"name"'])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(OjsError) as caught:
        parse_registration(body, PayloadLimits())
    assert caught.value.code == "invalid_payload"


def test_a_patch_of_enabled_alone_switches() -> None:
    assert parse_switch(b'{"enabled": true}') is True
    assert parse_switch(b'{"enabled": false}') is False
    assert parse_switch(b'{"enabled": true, "cron": "@daily"}') is None
    with pytest.raises(OjsError, match="true or false"):
        parse_switch(b'{"enabled":1}')


def test_a_patch_changes_what_it_names_and_leaves_the_rest() -> None:
    cron = registered({**FLAT, "meta": {"k": 1}, "options": {"queue": "a", "priority": 3}, "description": "d"})
    sent = {"expression": "@daily", "job_template": {"type": "b.c", "options": {"queue": "b"}}}
    wanted = parse_patch(json.dumps(sent).encode(), cron, PayloadLimits())
    assert (wanted.name, wanted.expression, wanted.timezone) == (cron.name, "@daily", cron.timezone)
    assert (wanted.draft.type, wanted.draft.queue, wanted.draft.priority) == ("b.c", "b", 3)
    assert (wanted.draft.args, wanted.draft.meta, wanted.description) == (cron.draft.args, cron.draft.meta, "d")
    flat = parse_patch(b'{"cron": "@hourly", "args": [7], "description": null}', cron, PayloadLimits())
    assert (flat.expression, bytes(flat.draft.args), flat.description, flat.draft.queue) == ("@hourly", b"[7]", None, "a")


def test_a_patch_leaves_what_was_sent_beside_the_options() -> None:
    asked = {"queue": "a", "tags": ["t"], "max_attempts": 7, "timeout": 30, "unique": {"keys": ["type"]}, "x_own": [1]}
    cron = registered({**FLAT, **asked, "delay_until": "+PT5S", "options": {"priority": 3}})
    again = parse_patch(b'{"cron": "@daily"}', cron, PayloadLimits()).draft
    assert msgspec.structs.replace(again, id=cron.draft.id) == cron.draft
    assert parse_patch(b'{"options": {"queue": "b", "timeout_ms": 5}}', cron, PayloadLimits()).draft.queue == "b"
    moved = parse_patch(b'{"queue": "b", "timeout_ms": 5}', cron, PayloadLimits()).draft
    assert (moved.queue, moved.timeout_ms, moved.tags) == ("b", 5, ("t",))
    assert parse_patch(b'{"tags": null}', cron, PayloadLimits()).draft.tags == ()


def test_a_patch_of_what_stands_in_the_options_may_stand_beside_them() -> None:
    cron = registered({**FLAT, "options": {"queue": "a", "priority": 3, "meta": {"k": 1}}})
    changed = parse_patch(b'{"queue": "b", "meta": {"k": 2}}', cron, PayloadLimits()).draft
    assert (changed.queue, changed.priority, msgspec.json.decode(changed.meta)) == ("b", 3, {"k": 2})


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"queue": "A B"}', "queue"),
        (b"{}", "enabled"),
        (b'{"enabled": null}', "enabled"),
        (b'{"name": "other", "cron": "@daily"}', "name"),
        (b'{"expression": "no"}', "expression"),
        (b'{"job_template": {"type": "Not A Type"}}', "type"),
    ],
)
def test_a_bad_patch_is_refused_by_name(body: bytes, field: str) -> None:
    with pytest.raises(OjsError) as caught:
        parse_patch(body, registered(FLAT), PayloadLimits())
    assert caught.value.details["field"] == field


@pytest.mark.parametrize("text", ["", "A", "a b", "a/b", "x" * 256, "a_b"])
def test_what_can_be_no_name_is_not_found(text: str) -> None:
    with pytest.raises(OjsError) as caught:
        cron_name(text)
    assert caught.value.code == "not_found"


def test_lists_go_on_after_their_cursor() -> None:
    crons = [registered({**FLAT, "name": f"n{number:02}"}) for number in range(5)]
    first = read(cron_page(crons, parse_page({"limit": "2"})))
    assert [cron["name"] for cron in first["crons"]] == ["n00", "n01"]
    assert (first["count"], first["pagination"]["total"], first["pagination"]["has_more"]) == (2, 5, True)
    second = read(cron_page(crons[1:], Page(2, first["pagination"]["next_cursor"])))
    assert [cron["name"] for cron in second["crons"]] == ["n02", "n03"], "also if one before it has gone"
    last = read(cron_page(crons, Page(2, "n03")))
    assert ([cron["name"] for cron in last["crons"]], last["pagination"]["has_more"]) == (["n04"], False)
    page = read(cron_page(crons, parse_page({"page": "3", "per_page": "2"})))
    assert ([cron["name"] for cron in page["crons"]], page["pagination"]["page"]) == (["n04"], 3)
    assert cron_page([], Page()).crons == []


def test_the_history_is_newest_first() -> None:
    cron = registered({**FLAT, "cron": "* * * * *"})
    assert cron_history(cron, {}, 50).executions == []
    paused = switch(cron, False, Moment(NOW + 60_000, "op2"))
    assert paused is not None
    assert read(cron_history(paused.record, {}, 50)) == {
        "name": "daily.report-1",
        "executions": [
            {
                "number": 1,
                "status": "skipped",
                "scheduled_at": "2027-01-15T08:01:00.000Z",
                "manual": False,
                "skipped_at": "2027-01-15T08:01:00.000Z",
                "reason": "disabled",
            }
        ],
        "run_count": 0,
    }
