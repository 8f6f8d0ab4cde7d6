"""The admin API: totals, queues, and what operators do to jobs."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest

from support.system import System
from support.waiting import until

QUEUE = "ad.a"


def fail(system: System, queue: str = QUEUE, **options: Any) -> str:
    """A job that was pushed, fetched and failed."""
    job_id: str = system.push("a.b", 1, queue=queue, **options)["id"]
    [job] = system.fetch(queue, worker_id="w")
    assert job["id"] == job_id
    system.call("POST", "/workers/nack", {"job_id": job_id, "error": {"message": "no", "type": "E"}})
    return job_id


def discarded(system: System, queue: str = QUEUE) -> str:
    return fail(system, queue, retry={"max_attempts": 1})


def test_totals_are_exact_at_once(system: System) -> None:
    discarded(system)
    system.push("a.b", 1, queue=QUEUE)
    system.push("a.b", 1, queue="ad.b", delay_until="+PT1H")
    system.call("POST", "/workers/heartbeat", {"worker_id": "w"})
    view = system.call("GET", "/admin/stats")
    assert (view["queues"], view["workers"]) == (2, 1)
    counts = {"available": 1, "scheduled": 1, "discarded": 1}
    assert {state: number for state, number in view["jobs"].items() if number} == counts
    assert view["throughput"]["processed_per_minute"] == 0
    assert view["throughput"]["failed_per_minute"] == pytest.approx(0.2, abs=0.01)
    assert isinstance(view["uptime_seconds"], int)


def test_findings_tell_of_a_paused_queue_with_jobs_and_where_to_look(system: System) -> None:
    system.push("a.b", 1, queue=QUEUE)
    system.call("POST", f"/queues/{QUEUE}/pause")

    def told() -> list[dict[str, Any]]:
        answer = system.call("GET", "/admin/findings")
        assert {"nats", "storage", "services", "projector", "records", "webhooks"} <= set(answer["checks"])
        return [one for one in answer["findings"] if one["check"] == "queues"]

    [finding] = until(told)
    assert finding["message"] == f"queue {QUEUE} is paused, and 1 job in it can't start"
    assert (finding["severity"], finding["link"]) == ("warning", f"/queues/{QUEUE}")
    system.call("POST", f"/queues/{QUEUE}/resume")
    until(lambda: not told())


def test_who_asks_for_findings_within_a_second_gets_one_answer(system: System) -> None:
    def asked() -> str:
        return str(system.call("GET", "/admin/findings")["checked_at"])

    first = asked()
    until(lambda: asked() == asked())
    until(lambda: asked() != first)


def test_an_operator_learns_why_a_job_waits_and_lets_it_run_now(system: System) -> None:
    job_id = system.push("a.b", 1, queue=QUEUE, delay_until="+PT1H")["id"]
    [delayed] = system.call("GET", f"/admin/jobs/{job_id}/why")["reasons"]
    assert delayed["code"] == "delayed"
    assert system.call("POST", f"/admin/jobs/{job_id}/run")["job"]["state"] == "available"
    system.call("POST", f"/queues/{QUEUE}/pause")
    system.push("a.b", 1, queue=QUEUE, priority=5)
    told = system.call("GET", f"/admin/jobs/{job_id}/why")
    assert told["state"] == "available"
    assert [reason["code"] for reason in told["reasons"]] == ["queue_paused", "no_worker", "higher_priority", "available"]
    system.call("POST", f"/admin/jobs/{job_id}/run", status=409)
    system.call("POST", f"/queues/{QUEUE}/resume")
    system.fetch(QUEUE, worker_id="w", count=2)
    active = system.call("GET", f"/admin/jobs/{job_id}/why")["reasons"]
    assert [reason["code"] for reason in active] == ["active", "lease"]
    assert "worker w" in active[0]["message"]


def test_a_full_limit_is_told_as_the_reason(system: System) -> None:
    limited = {"key": "ad-tenant", "concurrency": 1}
    system.push("a.b", 1, queue=QUEUE, rate_limit=limited)
    waits = system.push("a.b", 1, queue=QUEUE, rate_limit=limited)["id"]
    assert len(system.fetch(QUEUE, worker_id="w", count=2)) == 1
    told = system.call("GET", f"/admin/jobs/{waits}/why")["reasons"]
    [limit] = [reason["message"] for reason in told if reason["code"] == "limited"]
    assert limit == "Limit ad-tenant leaves no room: 1 of 1 used by its concurrency."


def test_services_are_told_with_their_version(system: System) -> None:
    services = system.call("GET", "/admin/services")["services"]
    assert [one["role"] for one in services] == ["gateway", "scheduler", "reaper", "projector", "coordinator", "webhooks"]
    assert {one["version"] for one in services} == {version("ojs-nats-server")}


def test_queues_are_listed_in_pages_and_controlled(system: System) -> None:
    for name in ("ad.a", "ad.b", "ad.c"):
        system.push("a.b", 1, queue=name)
    view = system.call("GET", "/admin/queues?page=2&per_page=2")
    assert [queue["name"] for queue in view["items"]] == ["ad.c"]
    assert (view["pagination"]["total"], view["pagination"]["page"], view["pagination"]["per_page"]) == (3, 2, 2)
    assert system.call("POST", "/admin/queues/ad.a/pause")["queue"]["paused"] is True
    assert system.call("GET", "/admin/queues/ad.a")["paused"] is True
    assert system.call("POST", "/admin/queues/ad.a/resume")["queue"]["paused"] is False
    system.call("PUT", "/admin/queues/ad.a/config", {"retention": {"completed": "P1D"}})
    detail = system.call("GET", "/admin/queues/ad.a")
    assert (detail["config"]["retention"], detail["counts"]["available"]) == ({"completed": "PT24H"}, 1)


def test_one_job_is_retried_and_cancelled(system: System) -> None:
    dead = discarded(system)
    job = system.call("POST", f"/admin/jobs/{dead}/retry")["job"]
    assert (job["id"], job["state"], job["attempt"]) == (dead, "available", 0)
    assert system.call("POST", f"/admin/jobs/{dead}/cancel", {"reason": "enough"})["job"]["state"] == "cancelled"
    job = system.call("POST", f"/admin/jobs/{dead}/retry")["job"]
    assert (job["state"], job["previous_state"], "cancelled_at" in job) == ("available", "cancelled", False)
    system.call("POST", f"/admin/jobs/{dead}/retry", status=409)
    [job] = system.fetch(QUEUE, worker_id="w")
    system.call("POST", "/workers/ack", {"job_id": job["id"]})
    waiting = fail(system, retry={"initial_interval": "PT1H"})
    assert system.call("POST", f"/admin/jobs/{waiting}/retry")["job"]["previous_state"] == "retryable"


def test_failed_attempts_are_told_with_what_follows(system: System) -> None:
    job_id = fail(system, retry={"initial_interval": "PT1H", "max_attempts": 5})
    view = system.call("GET", f"/jobs/{job_id}/retries")
    [retry] = view["retries"]
    assert (retry["attempt"], retry["state"], retry["type"]) == (1, "retryable", "E")
    assert retry["started_at"] <= retry["failed_at"] < retry["next_retry_at"]
    assert (view["policy"]["max_attempts"], view["policy"]["initial_interval"]) == (5, "PT1H")
    assert system.call("GET", f"/jobs/{system.push('a.b', 1, queue=QUEUE)['id']}/retries")["retries"] == []


def test_many_jobs_are_retried_cancelled_and_deleted_only_when_confirmed(system: System) -> None:
    dead = [discarded(system) for _ in range(3)]
    kept = discarded(system, "ad.b")
    refused: list[dict[str, Any]] = [{"filter": {"state": "discarded"}, "confirm": False}, {"filter": {"queue": QUEUE}}]
    for body in refused:
        for action in ("retry", "cancel", "delete"):
            error = system.call("POST", f"/admin/jobs/bulk/{action}", body, 400)["error"]
            assert error["details"]["field"] == "confirm"
    view = system.call("POST", "/admin/jobs/bulk/retry", {"filter": {"queue": QUEUE, "state": "discarded"}, "confirm": True})
    assert (view["action"], view["matched"], view["succeeded"], view["failed"], view["errors"]) == ("retry", 3, 3, 0, [])
    assert {system.job(job_id)["state"] for job_id in dead} == {"available"}
    none = {"filter": {"queue": QUEUE, "since": "2999-01-01T00:00:00Z"}, "confirm": True}
    assert system.call("POST", "/admin/jobs/bulk/cancel", none)["matched"] == 0
    assert system.call("POST", "/admin/jobs/bulk/cancel", {"filter": {"queue": QUEUE}, "confirm": True})["succeeded"] == 3
    dry = system.call("POST", "/admin/jobs/bulk/delete", {"filter": {"type": "a.*"}, "confirm": True, "dry_run": True})
    done = system.call("POST", "/admin/jobs/bulk/delete", {"filter": {"type": "a.*"}, "confirm": True})
    sample = dry.pop("sample")
    assert dry == done | {"dry_run": True}
    assert {(job["type"], job["state"]) for job in sample} == {("a.b", "cancelled"), ("a.b", "discarded")}
    assert "sample" not in done
    assert (done["action"], done["succeeded"]) == ("delete", 4)
    system.call("GET", f"/jobs/{kept}", status=404)


def test_a_bulk_action_with_a_limit_does_that_many_and_says_where_to_go_on(system: System) -> None:
    jobs = [{"type": "a.b", "args": [], "options": {"queue": QUEUE}}] * 7
    system.call("POST", "/jobs/batch", {"jobs": jobs}, 201)
    body = {"filter": {"queue": QUEUE}, "confirm": True, "limit": 3}
    dry = system.call("POST", "/admin/jobs/bulk/cancel", body | {"dry_run": True})
    assert (dry["succeeded"], dry["remaining"], len(dry["sample"])) == (3, 4, 3)
    done: list[tuple[int, bool, int]] = []
    cursor: str | None = None
    while not done or cursor:
        answer = system.call("POST", "/admin/jobs/bulk/cancel", body | ({"cursor": cursor} if cursor else {}))
        done.append((answer["succeeded"], answer["has_more"], answer["remaining"]))
        cursor = answer.get("next_cursor")
    assert done == [(3, True, 4), (3, True, 1), (1, False, 0)]
    for limit in (0, 1_001, "3"):
        error = system.call("POST", "/admin/jobs/bulk/cancel", body | {"limit": limit}, 400)["error"]
        assert "limit" in error["message"], error


def test_a_bulk_action_says_which_jobs_it_left(system: System) -> None:
    active = system.push("a.b", 1, queue=QUEUE)["id"]
    system.fetch(QUEUE, worker_id="w")
    view = system.call("POST", "/admin/jobs/bulk/delete", {"filter": {"state": "active"}, "confirm": True})
    assert (view["matched"], view["succeeded"], view["failed"]) == (1, 0, 1)
    assert view["errors"][0]["job_id"] == active
    assert "active" in view["errors"][0]["error"]


def test_active_jobs_are_cancelled_in_bulk_only_if_they_are_named(system: System) -> None:
    active = system.push("a.b", 1, queue=QUEUE)["id"]
    system.fetch(QUEUE, worker_id="w")
    assert system.call("POST", "/admin/jobs/bulk/cancel", {"filter": {"queue": QUEUE}, "confirm": True})["matched"] == 0
    named = {"filter": {"queue": QUEUE, "state": "active"}, "confirm": True}
    assert system.call("POST", "/admin/jobs/bulk/cancel", named)["succeeded"] == 1
    beat = system.call("POST", "/workers/heartbeat", {"worker_id": "w", "active_jobs": [active]})
    assert beat["cancelled_jobs"] == [active]
