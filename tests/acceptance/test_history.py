"""History, lineage, attempts and recent failures over HTTP."""

from __future__ import annotations

from typing import Any

from support.system import System

NOBODY = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


def failed(system: System, queue: str, **members: Any) -> str:
    """The id of a job that worker w has failed for good."""
    body = {"type": "mail.send", "args": ["hidden"], "options": {"queue": queue}, **members}
    job_id: str = system.call("POST", "/jobs", body, 201)["job"]["id"]
    system.fetch(queue, worker_id="w", wait_ms=5_000)
    error = {"code": "smtp", "message": f"no {queue}", "action": "DISCARD"}
    system.call("POST", "/workers/nack", {"job_id": job_id, "worker_id": "w", "error": error})
    return job_id


def test_a_failed_job_tells_what_happened_to_it_page_by_page(system: System) -> None:
    job_id = failed(system, "hi.a")
    events: list[dict[str, Any]] = []
    path = f"/jobs/{job_id}/history?limit=3"
    page = system.call("GET", path)
    while True:
        events += page["events"]
        assert (page["total"], page["complete"]) == (6, True)
        if "next_cursor" not in page:
            break
        page = system.call("GET", f"{path}&cursor={page['next_cursor']}")
    assert [event["event_type"] for event in events] == [
        "job.created",
        "job.state_changed",
        "job.attempt_started",
        "job.attempt_failed",
        "job.state_changed",
        "job.discarded",
    ]
    assert events[3]["actor"] == {"type": "worker", "id": "w"}
    assert events[3]["data"]["error"] == "no hi.a"
    assert "hidden" not in str(events)


def test_lineage_is_kept_with_the_job_and_told(system: System) -> None:
    said = {"parent_id": NOBODY, "root_id": NOBODY}
    job = system.call("POST", "/jobs", {"type": "a.b", "args": [], **said}, 201)["job"]
    assert {name: job[name] for name in said} == said
    assert system.call("GET", f"/jobs/{job['id']}/lineage") == {"job_id": job["id"], **said}
    chain = {"type": "chain", "steps": [{"type": "a.b", "args": []}]}
    workflow = system.call("POST", "/workflows", chain, 201)["workflow"]
    [member] = system.fetch("default", count=9, wait_ms=5_000)[1:]
    told = system.call("GET", f"/jobs/{member['id']}/lineage")
    assert (told["workflow_id"], "parent_id" in told) == (workflow["id"], False)


def test_attempts_are_told_one_by_one(system: System) -> None:
    job_id = failed(system, "hi.b")
    [trace] = system.call("GET", f"/debug/jobs/{job_id}/traces")["traces"]
    assert (trace["attempt"], trace["worker_id"], trace["outcome"], trace["state"]) == (1, "w", "failed", "discarded")
    assert system.call("GET", f"/debug/jobs/{job_id}/traces/1")["trace"] == trace


def test_recent_failures_come_latest_first_and_by_queue(system: System) -> None:
    first, second = failed(system, "hi.c"), failed(system, "hi.d")
    page = system.call("GET", "/debug/failures?limit=1")
    assert [one["job_id"] for one in page["failures"]] == [second]
    assert (page["pagination"]["total"], page["pagination"]["has_more"]) == (2, True)
    for place in ("offset=1", f"cursor={page['pagination']['next_cursor']}"):
        rest = system.call("GET", f"/debug/failures?limit=1&{place}")
        assert [one["job_id"] for one in rest["failures"]] == [first]
        assert "next_cursor" not in rest["pagination"]
    [only] = system.call("GET", "/debug/failures?queue=hi.c")["failures"]
    assert (only["job_id"], only["error"]["message"], only["attempt"], only["worker_id"]) == (first, "no hi.c", 1, "w")


def test_a_gateway_tells_of_itself_and_of_a_projector(system: System) -> None:
    status = system.call("GET", "/debug/status")
    assert status["projector"]["index_progress"] == 1.0
    assert status["services"]["processes"]["gateway"] >= 1


def test_a_job_that_is_not_there_is_not_found(system: System) -> None:
    for path in ("/jobs/{}/history", "/jobs/{}/lineage", "/debug/jobs/{}/traces", "/debug/jobs/{}/traces/1"):
        for job_id in (NOBODY, "no-id"):
            error = system.call("GET", path.format(job_id), status=404)["error"]
            assert (error["code"], error["details"]["resource_type"]) == ("not_found", "job")


def test_what_cannot_be_answered_is_refused_by_its_name(system: System) -> None:
    job_id = system.call("POST", "/jobs", {"type": "a.b", "args": []}, 201)["job"]["id"]
    for path, field, remedy in (
        ("/jobs/{}/history?limit=x", "limit", "must be a whole number"),
        ("/jobs/{}/history?offset=9999", "offset", "the limit is 5,000"),
        ("/jobs/{}/history?cursor=4.5.6", "cursor", "must be the next_cursor of a page of this job's history"),
        ("/debug/jobs/{}/traces/zero", "attempt", "must be a whole number from 1"),
        ("/debug/failures?cursor=x", "cursor", "must be the next_cursor of a page of failures"),
        ("/debug/failures?offset=9999", "offset", "the limit is 5,000"),
        ("/debug/failures?queue=No", "queue", "queue"),
    ):
        error = system.call("GET", path.format(job_id), status=400)["error"]
        assert (error["code"], error["details"]["field"]) == ("invalid_request", field)
        assert remedy in error["message"]
    assert system.request("DELETE", f"/ojs/v1/jobs/{job_id}/history").status == 405, "it isn't deleted by itself"
