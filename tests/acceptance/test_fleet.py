"""Workers as operators see and direct them."""

from __future__ import annotations

from typing import Any

from support.system import System
from support.waiting import until


def beat(system: System, worker_id: str, **members: Any) -> Any:
    return system.call("POST", "/workers/heartbeat", {"worker_id": worker_id, **members})


def test_workers_are_listed_at_once_with_what_they_hold(system: System) -> None:
    said = {"hostname": "box", "pid": 41, "queues": ["fl.a"], "concurrency": 5, "started_at": "2027-01-01T00:00:00Z"}
    system.call("POST", "/workers/register", {"worker_id": "w1", **said})
    beat(system, "w2", state="quiet")
    system.push("a.b", queue="fl.a")
    system.fetch("fl.a", worker_id="w1")
    view = system.call("GET", "/admin/workers")
    first, second = view["items"]
    assert {name: first[name] for name in said} == said
    assert (first["id"], first["state"], first["directive"], first["active_jobs"]) == ("w1", "running", "none", 1)
    assert first["last_heartbeat_at"] >= "2026"
    assert (second["id"], second["state"], second["active_jobs"]) == ("w2", "quiet", 0)
    assert view["summary"] == {"total": 2, "running": 1, "quiet": 1, "terminate": 0, "stale": 0, "active": 2, "active_jobs": 1}
    assert (view["pagination"]["total"], view["pagination"]["page"]) == (2, 1)
    assert [item["id"] for item in system.call("GET", "/admin/workers?state=quiet")["items"]] == ["w2"]
    assert [item["id"] for item in system.call("GET", "/admin/workers?page=2&per_page=1")["items"]] == ["w2"]
    detail = system.call("GET", "/admin/workers/w1")
    assert {name: value for name, value in detail.items() if name != "jobs"} == first
    system.call("GET", "/admin/workers/nobody", status=404)
    system.call("GET", "/admin/workers?state=asleep", status=400)
    assert system.call("GET", "/metrics")["workers_active"] == 2


def test_a_directive_comes_with_every_heartbeat_until_the_worker_reports_its_state(system: System) -> None:
    def directive() -> str:
        return str(system.call("GET", "/admin/workers/w")["directive"])

    def answers(*states: str) -> list[str]:
        return [beat(system, "w", state=state)["state"] for state in states]

    assert answers("running") == ["running"]
    assert system.call("POST", "/admin/workers/w/quiet")["directive"] == "quiet"
    assert answers("running", "running") == ["quiet", "quiet"]
    assert directive() == "quiet"
    assert answers("quiet") == ["quiet"]
    assert directive() == "none"
    system.call("POST", "/admin/workers/w/directive", {"directive": "resume"})
    assert answers("quiet", "quiet", "running") == ["running", "running", "running"]
    assert answers("quiet", "quiet") == ["quiet", "quiet"], "it went quiet by itself"
    assert answers("running") == ["running"], "and goes on by itself"
    system.call("POST", "/admin/workers/directive", {"directive": "quiet"})
    system.call("POST", "/admin/workers/directive", {"directive": "resume"})
    assert answers("running", "quiet") == ["running", "quiet"], "the last word counts, and is met at once"
    system.call("POST", "/admin/workers/w/directive", {"directive": "running"})
    assert answers("terminate") == ["terminate"], "its own word may be stronger"
    system.call("POST", "/admin/workers/nobody/quiet", status=404)


def test_a_fetch_of_a_quiet_worker_acknowledges_and_brings_nothing(system: System) -> None:
    for _ in range(2):
        system.push("a.b", queue="fl.q")
    fetch = {"queues": ["fl.q"], "worker_id": "w"}
    [held] = system.call("POST", "/workers/fetch", fetch)["jobs"]
    beat(system, "w", state="quiet")
    answer = system.call("POST", "/workers/fetch", fetch | {"acks": [{"job_id": held["id"], "attempt": 1}]})
    assert (answer["jobs"], answer["acks"]["succeeded"]) == ([], 1)
    assert system.job(held["id"])["state"] == "completed"


def test_all_workers_are_directed_at_once_but_not_those_that_come_later(system: System) -> None:
    for name in ("a", "b"):
        beat(system, name)
    assert system.call("POST", "/admin/workers/directive", {"directive": "terminate"})["workers"] == 2
    assert {beat(system, name)["state"] for name in ("a", "b")} == {"terminate"}
    assert beat(system, "c")["state"] == "running"
    system.call("POST", "/workers/register", {"worker_id": "a"})
    assert beat(system, "a")["state"] == "running", "it has begun anew"
    error = system.call("POST", "/admin/workers/directive", {"directive": "dance"}, 400)["error"]
    assert error["details"]["field"] == "directive"


def test_what_a_worker_holds_when_it_deregisters_comes_back_at_once_and_does_not_count(system: System) -> None:
    said = {"worker_id": "leaver", "pid": 7, "started_at": "2027-01-01T00:00:00Z"}
    system.call("POST", "/workers/register", said)
    options = {"queue": "fl.back", "retry": {"max_attempts": 1}}
    pushed = {system.push("a.b", **options)["id"] for _ in range(3)}

    def fetched(worker_id: str) -> set[str]:
        return {job["id"] for job in system.fetch("fl.back", worker_id=worker_id, count=3, wait_ms=0)}

    assert fetched("leaver") == pushed
    system.call("POST", "/workers/deregister", said | {"pid": 6}, 404)
    assert fetched("next") == set()
    system.call("POST", "/workers/deregister", said)
    found: set[str] = set()

    def all_come_back() -> bool:
        found.update(fetched("next"))
        return found == pushed

    until(all_come_back)
    assert {system.job(job_id)["state"] for job_id in pushed} == {"active"}


def test_a_heartbeat_may_say_by_the_marks_of_earlier_answers_that_it_names_all_jobs(system: System) -> None:
    since = until_mark = system.call("POST", "/workers/register", {"worker_id": "names-all"})["mark"]
    for _ in range(2):
        answer = beat(system, "names-all", active_jobs=0, complete={"since": since, "until": until_mark})
        assert "warnings" not in answer
        assert answer["mark"] != until_mark
        until_mark = answer["mark"]
    [warning] = beat(system, "names-all", active_jobs=1, complete={"since": since, "until": until_mark})["warnings"]
    assert warning["field"] == "complete", "it names fewer than it has"


def test_only_workers_that_are_silent_can_be_removed(system: System) -> None:
    beat(system, "w")
    error = system.call("DELETE", "/admin/workers/w", status=409)["error"]
    assert error["details"]["worker_id"] == "w"
    system.call("POST", "/workers/deregister", {"worker_id": "w"})
    assert system.call("GET", "/admin/workers")["items"] == []
    system.call("DELETE", "/admin/workers/w", status=404)


def test_a_worker_that_leaves_gets_no_new_jobs_until_it_goes_on(system: System) -> None:
    for n in range(4):
        system.push("a.b", n, queue="fl.leave")

    def fetched(worker_id: str) -> int:
        return len(system.fetch("fl.leave", worker_id=worker_id, wait_ms=0))

    for state in ("quiet", "drain", "terminate"):
        beat(system, "leaves", state=state)
        assert (fetched("leaves"), fetched(f"stays-{state}")) == (0, 1)
        health = system.call("GET", "/workers/leaves/health", status=503)
        assert (health["state"], health["status"]) == (state, "draining")
    beat(system, "leaves", state="running")
    assert system.call("GET", "/workers/leaves/health")["status"] == "healthy"
    assert fetched("leaves") == 1
    beat(system, "leaves", state="quiet")
    system.call("POST", "/workers/deregister", {"worker_id": "leaves"})
    system.call("GET", "/workers/leaves/health", status=404)
    system.push("a.b", queue="fl.leave")
    assert fetched("leaves") == 1, "a worker that begins anew under the same id"
