"""What stays and what goes, over HTTP: large results, results with a time of their own, dead letters beyond their number."""

from __future__ import annotations

from typing import Any

import pytest

from acceptance.test_lists import dead_letter, fetch
from support.system import System
from support.waiting import until


def completed(system: System, queue: str, result: Any, **options: Any) -> dict[str, Any]:
    """The answer to the ack of a new job."""
    job_id = system.push("test.list", 1, queue=queue, **options)["id"]
    assert fetch(system, queue) == [job_id]
    answer: dict[str, Any] = system.call("POST", "/workers/ack", {"job_id": job_id, "result": result})
    return answer


def test_a_result_of_a_mebibyte_comes_back_as_it_was(system: System) -> None:
    result = {"pages": "ä" + "p" * 1_048_500, "n": [1, 2.5, None]}
    acked = completed(system, "large", result)
    job_id = acked["id"]
    assert acked["job"]["result"] == result
    size = acked["job"]["result_size_bytes"]
    assert size > 1_048_000
    assert system.job(job_id)["result"] == result
    assert system.call("GET", f"/jobs/{job_id}/result?wait=true")["result"] == result
    assert system.call("POST", "/jobs/results", {"ids": [job_id]})["results"][job_id]["result"] == result
    assert system.call("GET", f"/admin/jobs/{job_id}")["result"] == result
    [listed] = system.call("GET", "/jobs?queue=large")["jobs"]
    assert (listed["id"], listed["result_size_bytes"], "result" in listed) == (job_id, size, False)
    purged = system.call("POST", "/queues/large/purge", {"states": ["completed"]})
    assert purged["purged_count"] == 1
    system.call("GET", f"/jobs/{job_id}/result", status=404)


@pytest.mark.parametrize("result", ["small", "l" * 100_000])
def test_a_result_with_a_time_of_its_own_leaves_before_its_job(system: System, result: str) -> None:
    job_id = completed(system, "short", result, result_ttl=1)["id"]

    def gone() -> bool:
        return system.request("GET", f"/ojs/v1/jobs/{job_id}/result").status == 410

    until(gone)
    job = system.job(job_id)
    assert (job["state"], job["result_ttl"], "result" in job) == ("completed", 1, False)
    assert system.call("POST", "/jobs/results", {"ids": [job_id]})["results"][job_id]["result"] is None


def test_a_unique_job_that_exists_is_answered_with_its_result(system: System) -> None:
    unique = {"keys": ["args"], "states": ["completed"], "on_conflict": "ignore"}
    result = "r" * 100_000
    job_id = completed(system, "once", result, unique=unique)["id"]
    body = {"type": "test.list", "args": [1], "options": {"queue": "once", "unique": unique}}
    existing = system.call("POST", "/jobs", body)["job"]
    assert (existing["id"], existing["result"]) == (job_id, result)
    [existing] = system.call("POST", "/jobs/batch", {"jobs": [body]})["jobs"]
    assert (existing["id"], existing["result"]) == (job_id, result)


def test_a_workflow_shows_and_hands_on_large_results(system: System) -> None:
    steps = [{"type": "test.step", "args": [], "options": {"queue": "flow"}} for _ in range(2)]
    workflow = system.call("POST", "/workflows", {"type": "chain", "name": "large", "steps": steps}, 201)["workflow"]
    [first] = fetch(system, "flow")
    result = "r" * 1_000_000
    system.call("POST", "/workers/ack", {"job_id": first, "result": result})

    def second() -> Any:
        return system.fetch("flow", wait_ms=500)

    [job] = until(second)
    assert job["parent_results"] == [result]
    shown = system.call("GET", f"/workflows/{workflow['id']}")["workflow"]["steps"]
    assert shown[0]["result"] == result


def test_a_workflow_shows_as_many_large_results_as_one_answer_has_room_for(system: System) -> None:
    jobs = [{"type": "test.member", "args": [], "options": {"queue": "flow"}} for _ in range(9)]
    workflow = system.call("POST", "/workflows", {"type": "group", "name": "large", "jobs": jobs}, 201)["workflow"]
    ids = fetch(system, "flow", 9)
    for job_id in ids:
        system.call("POST", "/workers/ack", {"job_id": job_id, "result": "r" * 1_000_000})
    steps = system.call("GET", f"/workflows/{workflow['id']}")["workflow"]["steps"]
    referred = [step for step in steps if step["result"] == {"$ref": f"/ojs/v1/jobs/{step['job_id']}/result"}]
    assert (len(steps), len(referred)) == (9, 1)
    assert len(system.request("GET", referred[0]["result"]["$ref"]).body["result"]) == 1_000_000


def test_a_queue_keeps_its_newest_dead_letters(system: System) -> None:
    limits = {"dead_letter": {"retention": {"max_age": "P90D", "max_count": 2}}}
    assert system.call("PUT", "/queues/dead/config", limits)["config"]["dead_letter"] == limits["dead_letter"]
    ids = [dead_letter(system, "dead") for _ in range(4)]
    other = dead_letter(system, "other")

    def pruned() -> bool:
        return bool(system.call("GET", "/dead-letter/stats?queue=dead")["total"] == 2)

    until(pruned)
    assert [job["id"] for job in system.call("GET", "/dead-letter?queue=dead")["jobs"]] == [ids[3], ids[2]]
    system.call("GET", f"/dead-letter/{ids[0]}", status=404)
    events = system.call("GET", "/events?types=dead_letter.pruned")["events"]
    told = {(event["subject"], event["data"]["count"], event["data"]["reason"]) for event in events}
    assert told == {(ids[0], 1, "max_count"), (ids[1], 1, "max_count")}
    stats = system.call("GET", "/dead-letter/stats?queue=dead")["retention"]
    assert (stats["max_age"], stats["max_count"]) == ("P90D", 2)
    common = system.call("GET", "/admin/dead-letter/stats")["retention"]
    assert (common["max_age"], common["max_count"], common["next_prune_at"] > events[0]["time"]) == ("P180D", 10_000, True)
    detail = system.call("GET", f"/dead-letter/{other}")["job"]
    assert detail["leaves_at"] > detail["discarded_at"]
