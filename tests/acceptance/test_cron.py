"""Cron entries over HTTP, against the running system."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from support.system import System
from support.waiting import until

ENTRY: dict[str, Any] = {"name": "daily-report", "cron": "0 9 * * *", "type": "report.make", "options": {"queue": "reports"}}


@pytest.fixture(autouse=True)
def quiet(system: System) -> Iterator[None]:
    """No entry outlives its test."""
    yield
    system.reset()


def register(system: System, **change: Any) -> dict[str, Any]:
    answer = system.request("POST", "/ojs/v1/cron", ENTRY | change)
    assert answer.status == 201, answer.body
    entry: dict[str, Any] = answer.body["cron"]
    return entry


def test_an_entrys_whole_life(system: System) -> None:
    entry = register(system)
    assert (entry["enabled"], entry["last_run_at"], entry["run_count"]) == (True, None, 0)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT09:00:00\.000Z", entry["next_run_at"])

    again = system.request("POST", "/ojs/v1/cron", entry | {"timezone": "Asia/Tokyo"})
    assert (again.status, again.body["cron"]["timezone"]) == (200, "Asia/Tokyo")
    assert again.body["cron"]["next_run_at"].endswith("T00:00:00.000Z")
    assert system.request("GET", "/ojs/v1/crons/daily-report").body == again.body

    paused = system.request("PATCH", "/ojs/v1/cron/daily-report", {"enabled": False})
    assert (paused.status, paused.body["cron"]["enabled"], paused.body["cron"]["next_run_at"]) == (200, False, None)
    listed = {
        enabled: [cron["name"] for cron in system.request("GET", f"/ojs/v1/cron?enabled={enabled}").body["crons"]]
        for enabled in ("true", "false", "")
    }
    assert listed == {"true": [], "false": ["daily-report"], "": ["daily-report"]}
    assert system.request("POST", "/ojs/v1/cron/daily-report/resume").body["cron"]["enabled"] is True
    assert system.request("POST", "/ojs/v1/cron/daily-report/pause").body["cron"]["enabled"] is False

    run = system.request("POST", "/ojs/v1/cron/daily-report/trigger")
    assert run.status == 201
    job = system.request("GET", run.headers["Location"]).body["job"]
    assert (job["id"], job["type"], job["queue"], job["state"]) == (run.body["job_id"], "report.make", "reports", "available")
    assert job["meta"]["cron_name"] == "daily-report"
    assert system.request("POST", "/ojs/v1/cron/daily-report/trigger").status == 409

    [execution] = system.request("GET", "/ojs/v1/cron/daily-report/history").body["executions"]
    assert (execution["status"], execution["manual"]) == ("triggered", True)
    assert (execution["job_id"], execution["job_state"]) == (run.body["job_id"], "available")

    gone = system.request("DELETE", "/ojs/v1/cron/daily-report")
    assert (gone.status, gone.body["deleted"], gone.body["cron"]["name"]) == (200, True, "daily-report")
    for method, path, body in (
        ("GET", "", None),
        ("PATCH", "", {"enabled": True}),
        ("DELETE", "", None),
        ("POST", "/trigger", None),
        ("POST", "/pause", None),
        ("GET", "/history", None),
    ):
        assert system.request(method, f"/ojs/v1/cron/daily-report{path}", body).status == 404
    assert system.request("GET", "/ojs/v1/cron").body["crons"] == []
    assert system.request("GET", run.headers["Location"]).status == 200, "its jobs stay"


def test_a_run_that_is_refused_because_of_a_full_queue_never_comes(system: System) -> None:
    register(system, overlap_policy="allow")
    system.request("PUT", "/ojs/v1/queues/reports/config", {"max_size": 1})
    trigger = "/ojs/v1/cron/daily-report/trigger"
    first = system.request("POST", trigger)
    assert (first.status, first.headers["X-OJS-Queue-Pressure"]) == (201, "1.00")
    refused = system.request("POST", trigger)
    assert (refused.status, refused.body["error"]["code"], refused.headers["X-OJS-Queue-Depth"]) == (429, "QUEUE_FULL", "1")
    [event] = system.request("GET", "/ojs/v1/events?types=backpressure.rejected").body["events"]
    assert event["data"]["job_type"] == "report.make"
    system.request("DELETE", first.headers["Location"])
    second = system.request("POST", trigger)
    assert second.status == 201
    assert system.request("GET", "/ojs/v1/cron/daily-report").body["cron"]["run_count"] == 2
    listed = system.request("GET", "/ojs/v1/jobs?queue=reports").body["jobs"]
    assert {job["id"] for job in listed} == {first.body["job_id"], second.body["job_id"]}


def test_ticks_become_jobs_that_workers_fetch(system: System) -> None:
    register(system, cron="* * * * * *", args=[{"n": 1}])
    fetch = {"queues": ["reports"], "wait_ms": 5_000}
    [job] = system.request("POST", "/ojs/v1/workers/fetch", fetch).body["jobs"]
    assert (job["type"], job["args"], job["meta"]["cron_name"]) == ("report.make", [{"n": 1}], "daily-report")
    assert job["meta"]["cron_triggered_at"].endswith(".000Z")

    def skipped() -> list[dict[str, Any]]:
        runs = system.request("GET", "/ojs/v1/cron/daily-report/history").body["executions"]
        return [run for run in runs if run["status"] == "skipped"]

    assert until(skipped)[0]["existing_job_id"] == job["id"], "the one that runs is in the way"
    system.request("POST", "/ojs/v1/workers/ack", {"job_id": job["id"]})
    [following] = system.request("POST", "/ojs/v1/workers/fetch", fetch).body["jobs"]
    assert following["id"] > job["id"], "the ids follow the ticks"


def test_a_list_in_pages(system: System) -> None:
    for number in range(5):
        register(system, name=f"entry-{number}")
    names: list[str] = []
    cursor = ""
    while True:
        page = system.request("GET", f"/ojs/v1/cron?limit=2&cursor={cursor}").body
        names += [cron["name"] for cron in page["crons"]]
        if not page["pagination"]["has_more"]:
            break
        cursor = page["pagination"]["next_cursor"]
    assert names == [f"entry-{number}" for number in range(5)]


def test_a_bad_entry_is_refused_by_its_field_and_not_stored(system: System) -> None:
    error = system.call("POST", "/cron", ENTRY | {"timezone": "EST"}, 400)["error"]
    assert (error["code"], error["details"]["field"]) == ("invalid_request", "timezone")
    assert system.call("GET", "/cron")["count"] == 0


def test_the_next_runs_of_an_entry_and_of_an_expression_that_is_only_looked_at(system: System) -> None:
    system.call("POST", "/cron", {"name": "next-runs", "cron": "0 9 * * *", "timezone": "Europe/Zurich", "type": "t.a"}, 201)
    entry = system.call("GET", "/crons/next-runs/next")
    seen = system.call("POST", "/admin/cron/preview", {"cron": "0 9 * * *", "timezone": "Europe/Zurich"})
    assert (entry["name"], entry["timezone"], len(entry["runs"])) == ("next-runs", "Europe/Zurich", 5)
    assert entry["runs"] == seen["runs"][:5]
    assert len(seen["runs"]) == 10
    refused = system.call("POST", "/admin/cron/preview", {"cron": "never"}, 400)
    assert refused["error"]["details"]["field"] == "cron"
    assert (
        system.call("POST", "/admin/cron/preview", {"cron": "@daily", "count": 51}, 400)["error"]["details"]["field"] == "count"
    )
    system.call("DELETE", "/cron/next-runs")


@pytest.mark.slow
def test_an_entry_whose_queue_is_full_is_found_until_there_is_room(system: System) -> None:
    queue = "cron.full"
    system.call("PUT", f"/queues/{queue}/config", {"max_size": 1})
    system.push("fills.it", queue=queue)
    name = f"full-{queue}"
    entry = {"name": name, "cron": "* * * * * *", "type": "a.b", "args": [], "options": {"queue": queue}}
    system.call("POST", "/cron", entry, 201)

    def found() -> list[str]:
        findings = system.call("GET", "/admin/findings")["findings"]
        return [one["message"] for one in findings if one["check"] == "crons" and name in one["message"]]

    [message] = until(found, 120)
    assert message.endswith(f"its queue {queue} is full")
    system.call("PUT", f"/queues/{queue}/config", {"max_size": 100_000})
    until(lambda: not found(), 120)
    system.call("DELETE", f"/cron/{name}")
