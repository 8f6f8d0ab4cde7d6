"""What nobody may send, and what somebody has stored all the same: it breaks nothing of others (docs/adr/028)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ojs_engine.base.ids import new_job_id
from support.system import System
from support.waiting import until


def push(system: System, **members: Any) -> Any:
    return system.request("POST", "/ojs/v1/jobs", {"type": "t", "args": []} | members)


def old_job(job_id: str, **members: Any) -> bytes:
    """A record as versions wrote it that did not bound moments."""
    job = {"id": job_id, "type": "poison", "args": [], "state": "available", "queue": "q2", "token": "op", "created_at": 1}
    entry = {"n": 1, "op": "op", "event": "pushed", "at": 1, "after": "available"}
    return json.dumps(job | {"transitions": [entry]} | members).encode()


@pytest.mark.parametrize("name", ["scheduled_at", "expires_at"])
def test_a_moment_that_can_not_be_written_is_refused_everywhere(system: System, name: str) -> None:
    far = "9999-12-31T23:59:59-12:00"
    job = {"type": "t", "args": [], "options": {name: far}}
    asked: list[tuple[str, Any]] = [
        ("/ojs/v1/jobs", job),
        ("/ojs/v1/jobs/batch", {"jobs": [job]}),
        ("/ojs/v1/cron", {"name": "c", "cron": "@daily", "type": "t", "args": [], "options": {name: far}}),
        ("/ojs/v1/workflows", {"type": "chain", "steps": [job, job]}),
    ]
    for path, body in asked:
        answer = system.request("POST", path, body)
        assert answer.status == 400, (path, answer)
        assert answer.body["error"]["code"] in {"invalid_request", "invalid_workflow"}
        assert name in answer.body["error"]["message"]
    bulk = system.request("POST", "/ojs/v1/jobs/bulk", {"jobs": [{"type": "good", "args": []}, job]})
    assert bulk.status < 500, bulk
    for path in ("/ojs/v1/jobs", "/ojs/v1/admin/jobs", "/ojs/v1/jobs?state=scheduled"):
        assert system.request("GET", path).status == 200


def test_jobs_beside_one_that_can_not_be_read_are_delivered_listed_and_told_of(system: System) -> None:
    good = [push(system, options={"queue": "q2"}).body["job"]["id"] for _ in range(3)]
    broken, larger = new_job_id(1_800_000_000_000), new_job_id(1_800_000_000_000)
    system.put_record(f"job.{broken}", old_job(broken, expires_at=10**18))
    system.put_record(f"job.{larger}", old_job(larger, expires_at=2**70))
    good += [push(system, options={"queue": "q2"}).body["job"]["id"] for _ in range(3)]

    fetched = system.request("POST", "/ojs/v1/workers/fetch", {"queues": ["q2"], "count": 10})
    assert [(job["id"], job["attempt"]) for job in fetched.body["jobs"]] == [(job_id, 1) for job_id in good]
    for path in ("/ojs/v1/jobs", "/ojs/v1/admin/jobs", "/ojs/v1/queues", "/ojs/v1/admin/stats"):
        assert system.request("GET", path).status == 200, path
    assert {job["id"] for job in system.request("GET", "/ojs/v1/jobs?queue=q2").body["jobs"]} == set(good)

    def told() -> bool:
        events = system.request("GET", "/ojs/v1/events?types=job.started&limit=100").body["events"]
        return set(good) <= {event["subject"] for event in events}

    until(told, 60.0)
    refused = system.request("GET", f"/ojs/v1/jobs/{broken}")
    assert (refused.status, refused.body["error"]["code"]) == (500, "unreadable_record")
    assert not refused.body["error"]["retryable"]


def test_an_operator_finds_and_removes_what_can_not_be_read(system: System) -> None:
    broken = new_job_id(1_800_000_000_000)
    system.put_record(f"job.{broken}", b"{")
    system.put_record("queue.torn", b"[]")
    listed = system.request("GET", "/ojs/v1/admin/unreadable").body
    assert {(one["kind"], one["key"]) for one in listed["items"]} == {("job", broken), ("queue", "torn")}
    assert system.request("GET", "/ojs/v1/admin/unreadable?kind=queue").body["pagination"]["total"] == 1
    for kind, key in (("job", broken), ("queue", "torn")):
        assert system.request("DELETE", f"/ojs/v1/admin/unreadable/{kind}/{key}").status == 200
        assert system.request("DELETE", f"/ojs/v1/admin/unreadable/{kind}/{key}").status == 404
    assert system.request("GET", "/ojs/v1/admin/unreadable").body["items"] == []
    assert push(system, id=broken).status == 201
    kept = system.request("DELETE", f"/ojs/v1/admin/unreadable/job/{broken}")
    assert (kept.status, kept.body["error"]["code"]) == (409, "conflict")
