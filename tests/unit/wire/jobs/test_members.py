"""The table of a job's members agrees with the record, the answers, the requests and the tombstone."""

from __future__ import annotations

from collections import Counter
from typing import Any

from msgspec import Raw

from ojs_api.jobs import Job as JobAnswer
from ojs_api.jobs import JobDetail
from ojs_engine.api.envelope import ENVELOPE
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.job import Job
from ojs_engine.domain.members import FOUND_BY, INNER, LABELLED, MEMBERS, OF_SERVER, OPTIONS, Found, shown_in
from ojs_engine.domain.transitions.manual import tombstone
from ojs_engine.wire.jobs.enqueue import parse_enqueue
from ojs_engine.wire.members import encode

SENT = {member.name for member in MEMBERS if member.by == "client"}
OF_RECORD = {name: [row for row in MEMBERS if name in (row.name, row.field)] for name in Job.__struct_fields__}


def test_every_name_has_one_row() -> None:
    assert [name for name, rows in Counter(row.name for row in (*MEMBERS, *INNER)).items() if rows > 1] == []


def test_every_field_of_the_record_is_classified() -> None:
    inner = {row.name for row in INNER}
    unclassified = [name for name, rows in OF_RECORD.items() if not rows and name not in inner]
    assert unclassified == [], "give each a row in ojs_engine.domain.members"
    assert inner <= set(Job.__struct_fields__)
    assert {row.field for row in MEMBERS} - {None} <= set(Job.__struct_fields__)


def test_every_member_of_an_answer_is_classified_by_the_answers_that_show_it() -> None:
    assert set(JobAnswer.__struct_fields__) == shown_in("always", "change", "fetch")
    assert set(JobDetail.__struct_fields__) - set(JobAnswer.__struct_fields__) == shown_in("detail")


def test_what_clients_may_send_is_what_the_description_of_a_push_has() -> None:
    described = ENVELOPE.schema["properties"]
    assert set(described) - {"options"} == SENT
    assert set(described["options"]["properties"]) == OPTIONS


def test_a_push_keeps_nothing_that_the_server_sets() -> None:
    sent = {"type": "a", "args": [], "x_own": 1} | dict.fromkeys(OF_SERVER, "mine")
    job = parse_enqueue(encode(sent), 0, DEFAULT_LIMITS)
    assert job.extra == {"x_own": Raw(b"1")}


def test_a_tombstone_keeps_what_guards_the_id_and_nothing_that_a_job_carries() -> None:
    whole: dict[str, Any] = {name: object() for name in Job.__struct_fields__}
    left = tombstone(Job(**whole))
    kept = {name for name in whole if getattr(left, name) is whole[name]}
    assert kept >= {"id", "type", "queue", "state", "generation", "transitions", "unique_key", "lock"}
    assert kept.isdisjoint(row.field or row.name for row in MEMBERS if row.carried and row.shown != "fetch")
    assert left.deleted
    assert left.args == Raw(b"[]")


def test_lists_and_bulk_operations_find_jobs_by_the_same_texts() -> None:
    named = {by.name for by in FOUND_BY}
    assert set(Found.__struct_fields__) == named
    assert {by.field for by in FOUND_BY if by.field} <= set(Job.__struct_fields__)


def test_each_label_of_the_index_has_a_letter_of_its_own() -> None:
    letters = [by.letter for by in LABELLED]
    assert len({"m", *letters}) == len(letters) + 1
