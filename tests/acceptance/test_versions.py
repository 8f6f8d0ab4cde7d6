"""Versions of job types over HTTP, and workers that say what they can run (ojs-job-versioning)."""

from __future__ import annotations

from typing import Any

import pytest

from support.system import System, send
from support.waiting import until

OLD = [{"type": "invoice.generate", "versions": ">=1.0 <2.0"}]
NEW = [{"type": "invoice.generate", "versions": ">=1.0 <3.0"}, {"type": "email.send"}]


def push(system: System, queue: str, job_type: str = "invoice.generate", **members: Any) -> Any:
    body = {"type": job_type, "args": [], "options": {"queue": queue}} | members
    return system.call("POST", "/jobs", body, 201)["job"]


def fetch(system: System, queue: str, worker: str, **more: Any) -> list[str]:
    body = {"queues": [queue], "worker_id": worker, "count": 10, "wait_ms": 0} | more
    return [job["id"] for job in system.call("POST", "/workers/fetch", body)["jobs"]]


def test_a_version_comes_back_as_it_was_sent(system: System) -> None:
    for sent, job_type, version in (
        ({"version": 2}, "a.b", 2),
        ({"version": "2.1"}, "a.b", "2.1"),
        ({}, "a.b@3.0", "3.0"),
        ({"version": 4}, "a.b@3.0", 4),
    ):
        job = push(system, "v.back", job_type, **sent)
        assert (job["type"], job["version"]) == ("a.b", version)
        assert system.job(job["id"])["version"] == version
    assert "version" not in push(system, "v.back", "a.b")


@pytest.mark.parametrize("how", ["register", "heartbeat"])
def test_workers_of_two_releases_share_a_queue(system: System, how: str) -> None:
    queue = f"v.{how}"
    for worker, handlers in (("old", OLD), ("new", NEW)):
        system.call("POST", f"/workers/{how}", {"worker_id": f"{worker}.{how}", "queues": [queue], "handlers": handlers})
    first, second = push(system, queue, version="1.4"), push(system, queue, version="2.0")
    plain, mail = push(system, queue), push(system, queue, "email.send")
    assert fetch(system, queue, f"old.{how}") == [first["id"], plain["id"]]
    assert fetch(system, queue, f"old.{how}") == []
    assert system.job(second["id"])["state"] == "available"
    assert sorted(fetch(system, queue, f"new.{how}")) == sorted([second["id"], mail["id"]])
    shown = system.call("GET", f"/admin/workers/old.{how}")
    assert shown["handlers"] == OLD


def test_a_worker_whose_handlers_were_forgotten_gets_nothing_until_it_registers_again(system: System) -> None:
    said = {"worker_id": "forgotten", "handlers": OLD}
    ask = {"queues": ["v.forgotten"], "worker_id": "forgotten", "wait_ms": 0, "handlers_declared": True}
    push(system, "v.forgotten", "email.send")
    mine = push(system, "v.forgotten", version="1.4")
    error = system.call("POST", "/workers/fetch", ask, 404)["error"]
    assert error["details"] == {"resource_type": "worker", "resource_id": "forgotten"}
    system.call("POST", "/workers/register", said)
    assert fetch(system, "v.forgotten", "forgotten", handlers_declared=True) == [mine["id"]]
    system.call("POST", "/workers/deregister", {"worker_id": "forgotten"})
    system.call("POST", "/workers/heartbeat", {"worker_id": "forgotten"})  # it is there again, and knows nothing of that
    system.call("POST", "/workers/fetch", ask, 404)
    error = system.call("POST", "/workers/fetch", {name: ask[name] for name in ask if name != "worker_id"}, 400)["error"]
    assert error["details"]["field"] == "handlers_declared"


def test_what_was_declared_holds_until_the_worker_says_otherwise(system: System) -> None:
    system.call("POST", "/workers/register", {"worker_id": "moody", "handlers": OLD})
    job = push(system, "v.moody", version="9.0")
    system.call("POST", "/workers/heartbeat", {"worker_id": "moody"})
    warned = system.call("POST", "/workers/heartbeat", {"worker_id": "moody", "handlers": [{"type": "x", "versions": "new"}]})
    assert [warning["field"] for warning in warned["warnings"]] == ["handlers[0].versions"]
    assert fetch(system, "v.moody", "moody") == []
    system.call("POST", "/workers/heartbeat", {"worker_id": "moody", "handlers": []})
    assert fetch(system, "v.moody", "moody") == [job["id"]]


def test_a_fetch_may_say_so_itself(system: System) -> None:
    job = push(system, "v.self", version="2.0")
    assert fetch(system, "v.self", "w", handlers=OLD) == []
    assert fetch(system, "v.self", "w", handlers=NEW) == [job["id"]]


def test_a_retried_job_and_one_whose_worker_died_wait_for_their_version_again(system: System) -> None:
    job = push(system, "v.again", version="2.0", retry={"max_attempts": 5, "initial_interval": "PT0.1S", "jitter": False})
    assert fetch(system, "v.again", "new", handlers=NEW) == [job["id"]]
    system.call("POST", "/workers/nack", {"job_id": job["id"], "worker_id": "new", "error": {"message": "no"}})
    until(lambda: system.job(job["id"])["state"] == "available")
    assert fetch(system, "v.again", "old", handlers=OLD) == []
    assert fetch(system, "v.again", "new", handlers=NEW, visibility_timeout_ms=1_000) == [job["id"]]
    until(lambda: system.job(job["id"])["state"] == "available")
    assert fetch(system, "v.again", "old", handlers=OLD) == []
    assert fetch(system, "v.again", "new", handlers=NEW) == [job["id"]]


def test_members_of_batches_and_workflows_keep_their_versions(system: System) -> None:
    jobs: list[dict[str, Any]] = [{"type": "a.b@2.0", "args": []}, {"type": "a.b", "args": [], "version": 3}]
    assert [job["version"] for job in system.call("POST", "/jobs/batch", {"jobs": jobs}, 201)["jobs"]] == ["2.0", 3]
    steps = [{**job, "options": {"queue": "v.flow"}} for job in jobs]
    system.call("POST", "/workflows", {"type": "chain", "name": "c", "steps": steps}, 201)
    assert fetch(system, "v.flow", "old", handlers=[{"type": "a.b", "versions": "1.0"}]) == []
    for version in ("2.0", 3):
        [job] = system.fetch("v.flow", wait_ms=5_000, handlers=[{"type": "a.b", "versions": ">=2.0"}])
        assert job["version"] == version
        system.call("POST", "/workers/ack", {"job_id": job["id"]})


def test_what_is_no_version_is_refused_by_its_name(system: System) -> None:
    refused: list[tuple[str, Any, str]] = [
        ("/jobs", {"type": "a.b", "args": [], "version": "newest"}, "version"),
        ("/jobs", {"type": "a.b@newest", "args": []}, "type"),
        ("/workers/register", {"worker_id": "bad", "handlers": [{"type": "A"}]}, "handlers[0].type"),
        ("/workers/register", {"worker_id": "bad", "handlers": [{"type": "a", "versions": "^1"}]}, "handlers[0].versions"),
        ("/workers/fetch", {"queues": ["v"], "handlers": [{"type": "a", "versions": 1}]}, "handlers[0].versions"),
    ]
    for path, body, field in refused:
        answer = send("POST", f"{system.url}/ojs/v1{path}", body)
        assert answer.status == 400
        assert answer.body["error"]["details"]["field"] == field
    assert send("GET", f"{system.url}/ojs/v1/admin/workers/bad").status == 404
