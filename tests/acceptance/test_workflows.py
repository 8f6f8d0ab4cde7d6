"""Workflows over HTTP, with the whole system as its users run it."""

from __future__ import annotations

import json
from typing import Any

import nats

from support.system import System
from support.waiting import until

BASE = "/ojs/v1"


def job(name: str, **options: Any) -> dict[str, Any]:
    return {"type": name, "args": [], "options": {"queue": "wf", **options}}


def work(system: System, *, fail: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Fetch what there is and finish it; a job's result is its type."""
    jobs: list[dict[str, Any]] = system.fetch("wf", count=50, worker_id="w", wait_ms=200)
    for one in jobs:
        if one["type"] in fail:
            error = {"code": "no", "message": f"{one['type']} failed", "retryable": False}
            system.request("POST", f"{BASE}/workers/nack", {"job_id": one["id"], "worker_id": "w", "error": error})
        else:
            system.request("POST", f"{BASE}/workers/ack", {"job_id": one["id"], "worker_id": "w", "result": one["type"]})
    return jobs


def run(system: System, workflow_id: str, *, fail: tuple[str, ...] = ()) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Work until a workflow has ended; what it reads as, and the jobs in the order in which they were fetched."""
    done: list[dict[str, Any]] = []

    def ended() -> dict[str, Any] | None:
        done.extend(work(system, fail=fail))
        found: dict[str, Any] = system.request("GET", f"{BASE}/workflows/{workflow_id}").body["workflow"]
        return found if found["state"] != "running" else None

    found = until(ended)
    assert found is not None
    return found, done


def create(system: System, definition: dict[str, Any]) -> dict[str, Any]:
    answer = system.request("POST", f"{BASE}/workflows", definition)
    assert answer.status == 201, answer
    created: dict[str, Any] = answer.body["workflow"]
    assert answer.headers["Location"] == f"{BASE}/workflows/{created['id']}"
    return created


def events(system: System, wanted: int) -> list[dict[str, Any]]:
    def complete() -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] = system.request("GET", f"{BASE}/events?types=workflow.*&limit=1000").body["events"]
        return found if len(found) >= wanted else None

    found = until(complete)
    assert found is not None
    return found


def test_a_nested_workflow_reads_as_it_went(system: System) -> None:
    definition = {
        "type": "chain",
        "name": "etl",
        "steps": [job("extract"), {"type": "group", "name": "fan", "jobs": [job("x"), job("y")]}, job("load")],
    }
    created = create(system, definition)
    assert created["state"] == "running"
    assert [(step["id"], step["type"], step["state"]) for step in created["steps"]] == [
        ("0", "extract", "pending"),
        ("1", "group", "waiting"),
        ("2", "load", "waiting"),
    ]
    found, done = run(system, created["id"])
    assert [one["type"] for one in done] == ["extract", "x", "y", "load"]
    assert done[0]["parent_results"] == []
    assert done[1]["parent_results"] == done[2]["parent_results"] == ["extract"]
    assert done[3]["parent_results"] == ["extract", ["x", "y"]]
    assert [one["parent_results_by_index"] for one in done] == [
        {},
        {"0": "extract"},
        {"0": "extract"},
        {"0": "extract", "1": {"0": "x", "1": "y"}},
    ]
    assert [(one["workflow_id"], one["workflow_step"]) for one in (done[0], done[3])] == [
        (created["id"], 0),
        (created["id"], 2),
    ]
    assert (found["state"], found["steps_completed"], found["metadata"]["job_count"]) == ("completed", 3, 4)
    fan = found["steps"][1]
    assert (fan["state"], fan["name"], [step["state"] for step in fan["steps"]]) == ("completed", "fan", ["completed"] * 2)
    assert found["steps"][2]["result"] == "load"
    kinds = [event["type"] for event in events(system, 8)]
    steps = [*["workflow.job_completed"] * 2, *["workflow.step_completed"] * 3]
    assert sorted(kinds[:-1]) == sorted(["workflow.created", "workflow.started", *steps])
    assert kinds[-1] == "workflow.completed", "it is stored after all that it follows from"


def test_a_python_sdk_batch_calls_back_what_its_jobs_came_to(system: System) -> None:
    steps = [{"id": f"step-{n}", **job(f"j{n}"), "depends_on": []} for n in range(2)]
    for name in ("on_complete", "on_success", "on_failure"):
        callback = job(name.replace("_", "-"), callback_type=name)
        steps.append({"id": name, **callback, "depends_on": ["step-0", "step-1"]})
    created = create(system, {"name": "b", "steps": steps})
    assert (created["type"], created["jobs_total"]) == ("batch", 2)
    found, done = run(system, created["id"], fail=("j1",))
    assert [one["type"] for one in done[2:]] == ["on-complete", "on-failure"]
    assert done[2]["parent_results"] == ["j0", None]
    assert done[2]["parent_results_by_index"] == {"0": "j0", "1": None}
    states = {name: step["state"] for name, step in found["callbacks"].items()}
    assert states == {"on_complete": "completed", "on_success": "cancelled", "on_failure": "completed"}
    assert (found["state"], found["metadata"]["failed_count"]) == ("completed", 1)
    assert (found["errors"][0]["code"], found["errors"][0]["step_id"]) == ("no", "step-1")


async def test_what_nats_has_no_room_for_twice_is_told_once(system: System) -> None:
    result = "r" * 1_048_000
    created = create(
        system, {"type": "batch", "jobs": [job(f"j{n}") for n in range(4)], "callbacks": {"on_success": job("all")}}
    )
    for one in system.fetch("wf", count=4, worker_id="w"):
        system.call("POST", "/workers/ack", {"job_id": one["id"], "worker_id": "w", "result": result})
    wanted = {"queues": ["wf"], "worker_id": "w", "wait_ms": 10_000}
    link = await nats.connect(system.nats_url)
    answer = await link.request("ojs.api.fetchJobs.wf", json.dumps(wanted).encode(), timeout=60)
    await link.close()
    [over_nats] = json.loads(answer.data)["jobs"]
    assert (over_nats["workflow_id"], over_nats["parent_results"]) == (created["id"], [result] * 4)
    assert "parent_results_by_index" not in over_nats
    error = {"code": "no", "message": "another worker is to have it"}
    system.call("POST", "/workers/nack", {"job_id": over_nats["id"], "worker_id": "w", "error": error, "requeue": True})
    [over_http] = system.fetch("wf", worker_id="w", wait_ms=10_000)
    assert over_http["parent_results_by_index"] == {str(n): result for n in range(4)}


def test_a_failed_dag_is_retried_from_where_it_failed(system: System) -> None:
    steps = [
        {"id": "a", **job("a"), "depends_on": []},
        {"id": "b", **job("b"), "depends_on": ["a"]},
        {"id": "c", **job("c"), "depends_on": ["a"]},
        {"id": "d", **job("d"), "depends_on": ["c", "b"]},
    ]
    created = create(system, {"name": "diamond", "steps": steps})
    found, _ = run(system, created["id"], fail=("b",))
    assert (found["type"], found["state"]) == ("dag", "failed")
    assert {step["id"]: step["state"] for step in found["steps"]} == {
        "a": "completed",
        "b": "failed",
        "c": "completed",
        "d": "cancelled",
    }
    answer = system.request("POST", f"{BASE}/workflows/{created['id']}/retry")
    assert (answer.status, answer.body["workflow"]["state"]) == (200, "running")
    found, done = run(system, created["id"])
    assert [one["type"] for one in done] == ["b", "d"]
    assert done[1]["parent_results"] == ["c", "b"]
    assert done[1]["parent_results_by_index"] == {"1": "b", "2": "c"}
    assert (found["state"], found["retries"]) == ("completed", 1)
    assert system.request("POST", f"{BASE}/workflows/{created['id']}/retry").status == 409


def test_cancelling_answers_in_numbers_and_only_once(system: System) -> None:
    created = create(system, {"type": "chain", "name": "c", "steps": [job("a"), job("b"), job("c")]})
    answer = system.request("DELETE", f"{BASE}/workflows/wf_{created['id']}")
    assert (answer.status, answer.body["workflow"]["state"], answer.body["workflow"]["name"]) == (200, "cancelled", "c")
    assert answer.body["workflow"]["steps_already_completed"] == 0
    assert "cancelled_at" in answer.body["workflow"]
    assert work(system) == []
    again = system.request("POST", f"{BASE}/workflows/{created['id']}/cancel")
    assert (again.status, again.body["error"]["code"]) == (409, "conflict")


def test_large_workflows_are_read_by_pages_and_watched_in_numbers(system: System) -> None:
    created = create(system, {"type": "group", "name": "large", "jobs": [job("n")] * 1_050})
    assert len(created["steps"]) == 1_000
    assert created["steps_pagination"] == {"total": 1_050, "offset": 0, "limit": 1_000, "has_more": True}
    page = system.request("GET", f"{BASE}/workflows/{created['id']}?offset=1040&limit=20").body["workflow"]
    assert [step["index"] for step in page["steps"]] == list(range(1_040, 1_050))
    assert len(work(system)) == 50
    answer = system.request("DELETE", f"{BASE}/workflows/{created['id']}").body["workflow"]
    assert (answer["state"], answer["steps_cancelled"], answer["steps_already_completed"]) == ("cancelled", 1_000, 50)
    assert work(system) == []

    found = system.request("GET", f"{BASE}/workflows/{created['id']}/progress").body["workflow"]
    counts = found["metadata"]
    assert (found["state"], counts["completed_count"], counts["cancelled_count"]) == ("cancelled", 50, 1_000)
    assert found["progress"] == 1.0


def test_workflows_are_listed_by_state_with_the_newest_first(system: System) -> None:
    names = [create(system, {"type": "chain", "name": f"c{n}", "steps": [job("a"), job("b")]})["id"] for n in range(3)]
    system.request("DELETE", f"{BASE}/workflows/{names[1]}")
    page = system.request("GET", f"{BASE}/workflows?limit=2").body
    assert [row["id"] for row in page["workflows"]] == [names[2], names[1]]
    assert (page["pagination"]["total"], page["pagination"]["has_more"]) == (3, True)
    rest = system.request("GET", f"{BASE}/workflows?limit=2&cursor={page['pagination']['next_cursor']}").body
    assert [row["id"] for row in rest["workflows"]] == [names[0]]
    (row,) = system.request("GET", f"{BASE}/workflows?state=cancelled").body["workflows"]
    assert (row["name"], row["type"], row["state"], row["steps_total"], row["steps_completed"]) == (
        "c1",
        "chain",
        "cancelled",
        2,
        0,
    )
    work(system)

    def advanced() -> bool:
        rows = system.request("GET", f"{BASE}/workflows?state=running").body["workflows"]
        return [row["steps_completed"] for row in rows] == [1, 1]

    until(advanced)
    assert system.request("GET", f"{BASE}/workflows?state=odd").status == 400
    system.reset()
    assert system.request("GET", f"{BASE}/workflows").body["pagination"]["total"] == 0
