"""A system in strict mode: what it refuses of ojs-security §8 that others keep (docs/strict.md)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.system import System
from support.waiting import until


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with System.started(
        tmp_path_factory.mktemp("strict"), "--together", "--strict", "--allowed-types", "mail.*,tick"
    ) as system:
        yield system


def refused(system: System, path: str, body: object, status: int) -> dict[str, Any]:
    error: dict[str, Any] = system.call("POST", path, body, status)["error"]
    return error


def test_a_type_needs_to_be_in_the_list_or_to_have_a_schema(strict: System) -> None:
    strict.push("mail.send")
    sms = {"type": "sms.send", "args": []}
    error = refused(strict, "/jobs", sms, 422)
    assert (error["code"], error["details"]["type"], error["retryable"]) == ("job_type_not_registered", "sms.send", False)
    assert error["ojs_code"] == "OJS-1001"
    strict.call("PUT", "/admin/schemas/sms.send/1", {"schema": {"type": "array"}}, 201)
    until(lambda: strict.request("POST", "/ojs/v1/jobs", sms).status == 201)


@pytest.mark.parametrize("place", ["top", "options"])
def test_attributes_that_nobody_defines_are_refused_with_their_names(strict: System, place: str) -> None:
    job: dict[str, Any] = {"type": "mail.send", "args": [], "options": {"queue": "q"}}
    (job if place == "top" else job["options"])["colour"] = "red"
    error = refused(strict, "/jobs", job, 422)
    assert (error["code"], error["details"]["attributes"]) == ("unknown_attributes", ["colour"])


def test_members_of_a_policy_that_nobody_defines_are_refused_by_every_way_to_a_new_job(strict: System) -> None:
    good, bad = ({"type": "mail.send", "args": [], "options": {"retry": {name: 1}}} for name in ("x_own", "evil"))
    strict.call("POST", "/jobs", good, 201)
    cron = {"name": "policies", "cron": "0 0 1 1 *"}
    for path, body in (
        ("/jobs", bad),
        ("/jobs/batch", {"jobs": [good, bad]}),
        ("/cron", {**cron, **bad}),
        ("/cron", {**cron, "job_template": bad}),
    ):
        error = refused(strict, path, body, 422)
        assert (error["code"], error["details"]["attributes"]) == ("unknown_attributes", ["options.retry.evil"]), path
    for workflow, place in (
        ({"type": "chain", "steps": [good, bad]}, "$.steps[1]"),
        ({"type": "batch", "jobs": [good], "callbacks": {"on_complete": bad}}, "$.callbacks.on_complete"),
    ):
        error = refused(strict, "/workflows", workflow, 400)
        assert (error["code"], error["details"]["field"]) == ("invalid_workflow", f"{place}.options.retry.evil")
    items = strict.request("POST", "/ojs/v1/jobs/bulk", {"jobs": [good, bad]}).body["items"]
    assert [item.get("error", {}).get("code") for item in items] == [None, "unknown_attributes"]


@pytest.mark.parametrize(("meta", "field"), [({"a b": 1}, "meta"), ({"note": "x\r\nSet-Cookie: y"}, "meta.note")])
def test_metadata_that_could_split_a_header_is_refused(strict: System, meta: object, field: str) -> None:
    error = refused(strict, "/jobs", {"type": "mail.send", "args": [], "meta": meta}, 400)
    assert (error["canonical_code"], error["details"]["field"]) == ("INVALID_METADATA", field)
    assert "Set-Cookie" not in error["message"]


def test_it_holds_for_every_way_to_a_new_job(strict: System) -> None:
    good, bad = {"type": "mail.send", "args": []}, {"type": "other", "args": []}
    assert refused(strict, "/jobs/batch", {"jobs": [good, bad]}, 422)["details"]["index"] == 1
    assert refused(strict, "/workflows", {"type": "chain", "steps": [good, bad]}, 422)["details"]["field"] == "$.steps[1]"
    assert refused(strict, "/cron", {"name": "c", "cron": "0 0 * * *", "type": "other", "args": []}, 422)
    bulk = strict.request("POST", "/ojs/v1/jobs/bulk", {"jobs": [good, bad]})
    assert bulk.status == 207
    assert [item.get("error", {}).get("code") for item in bulk.body["items"]] == [None, "job_type_not_registered"]


def test_the_override_of_a_dead_letter_is_held_to_it(strict: System) -> None:
    retry = {"max_attempts": 1, "on_exhaustion": "dead_letter"}
    pushed = strict.call("POST", "/jobs", {"type": "mail.dead", "args": [], "options": {"queue": "dead", "retry": retry}}, 201)
    job_id = pushed["job"]["id"]
    fetched = strict.fetch("dead", worker_id="w", wait_ms=5_000)
    assert [job["id"] for job in fetched] == [job_id]
    strict.call("POST", "/workers/nack", {"job_id": job_id, "worker_id": "w", "error": {"code": "x", "message": "y"}})
    error = refused(strict, f"/dead-letter/{job_id}/retry", {"override": {"retry": {"evil": 1}}}, 422)
    assert error["code"] == "unknown_attributes"
    error = refused(strict, f"/dead-letter/{job_id}/retry", {"override": {"meta": {"a b": 1}}}, 400)
    assert error["details"]["field"] == "override.meta"
    strict.call("POST", f"/dead-letter/{job_id}/retry", {"override": {"meta": {"a.b": 1}}})


def test_without_it_all_of_this_is_kept_as_the_core_specification_has_it(system: System) -> None:
    job = {"type": "other", "args": [], "colour": "red", "meta": {"a b": "x\ny"}}
    kept = system.call("POST", "/jobs", job, 201)["job"]
    assert (kept["colour"], kept["meta"]) == ("red", {"a b": "x\ny"})
