"""Statistics over HTTP: now, lately, over time and as a stream."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from datetime import datetime
from typing import Any

import aiohttp
import pytest

from support.system import System

QUEUE = "st.a"
UI = {"User-Agent": "Mozilla/5.0"}
OJS = "application/openjobspec+json"
CLI = {"User-Agent": "Go-http-client/1.1", "Accept": OJS, "Content-Type": OJS}


def done(system: System, number: int, queue: str = QUEUE, *, fail: bool = False) -> None:
    """Jobs that were pushed, fetched and ended."""
    for _ in range(number):
        options = {"queue": queue, "retry": {"max_attempts": 1}}
        job_id = system.push("a.b", 1, **options)["id"]
        system.fetch(queue)
        if fail:
            system.call("POST", "/workers/nack", {"job_id": job_id, "error": {"message": "no", "type": "E"}})
        else:
            system.call("POST", "/workers/ack", {"job_id": job_id})


def summed(points: list[dict[str, Any]], *names: str) -> list[int]:
    return [sum(point[name] for point in points) for name in names]


def test_history_is_exact_at_once_by_queue_and_in_all(system: System) -> None:
    done(system, 3)
    done(system, 1, fail=True)
    done(system, 2, "st.b")
    names = ("enqueued", "started", "processed", "failed", "failed_attempts", "retried", "cancelled", "expired")
    view = system.call("GET", "/admin/stats/history")
    assert view["period"] == "5m"
    assert summed(view["data"], *names) == [6, 6, 5, 1, 1, 0, 0, 0]
    assert len(view["data"]) in {12, 13}, "an hour, points without activity included"
    times = [datetime.fromisoformat(point["timestamp"]).timestamp() for point in view["data"]]
    assert {later - earlier for earlier, later in itertools.pairwise(times)} == {300}
    for period in ("1m", "1h", "1d"):
        for path in (f"/admin/stats/history?queue={QUEUE}&", f"/queues/{QUEUE}/stats/history?"):
            view = system.call("GET", f"{path}period={period}&from=2d")
            assert (view["queue"], summed(view["data"], *names)) == (QUEUE, [4, 4, 3, 1, 1, 0, 0, 0])
    busy = [point for point in view["data"] if point["started"]]
    assert busy[0]["wait_ms"]["p99"] == busy[0]["latency_p99_ms"] <= 5_000
    assert set(busy[0]["run_ms"]) == {"p50", "p90", "p95", "p99", "max"}


def test_history_of_what_was_before_is_empty(system: System) -> None:
    done(system, 1)
    view = system.call("GET", "/admin/stats/history?period=1m&since=30m&until=10m")
    assert summed(view["data"], "enqueued") == [0]
    assert len(view["data"]) == 21
    assert len(system.call("GET", "/admin/stats/history?period=1m&since=2000-01-01T00:00:00Z")["data"]) in {1440, 1441}


def test_a_history_that_can_not_be_is_refused(system: System) -> None:
    refused = [("period=7m", "period"), ("since=yesterday", "since"), ("to=x", "to"), ("since=2999-01-01T00:00:00Z", "since")]
    for query, field in refused:
        error = system.call("GET", f"/admin/stats/history?{query}", status=400)["error"]
        assert error["details"]["field"] == field


def test_rates_times_and_the_oldest_job_are_told_everywhere(system: System) -> None:
    done(system, 4)
    done(system, 1, fail=True)
    system.push("a.b", queue=QUEUE)
    [listed] = system.call("GET", "/admin/queues")["items"]
    assert (listed["backlog"][0], listed["backlog"][-1], len(listed["backlog"])) == (0, 1, 21)
    for view in (
        listed,
        system.call("GET", f"/admin/queues/{QUEUE}"),
        system.call("GET", f"/queues/{QUEUE}/stats")["stats"],
        system.call("GET", "/admin/stats"),
        system.call("GET", f"/admin/stats?queue={QUEUE}"),
    ):
        assert view["throughput"]["enqueued_per_minute"] == pytest.approx(6 / 5, abs=0.01)
        assert view["throughput"]["processed_per_minute"] == pytest.approx(4 / 5, abs=0.01)
        assert view["throughput"]["failed_per_minute"] == pytest.approx(1 / 5, abs=0.01)
        assert 0 <= view["latency_ms"]["p50"] <= view["latency_ms"]["p99"] < 5_000
        assert set(view["run_ms"]) == {"p50", "p90", "p95", "p99", "max"}
        age = time.time() - datetime.fromisoformat(view["oldest_available_at"]).timestamp()
        assert -1 < age < 60
    stats = system.call("GET", f"/queues/{QUEUE}/stats")["stats"]
    assert {name: window["processed"] for name, window in stats["windows"].items()} == {"5m": 4, "1h": 4, "1d": 4}
    assert system.call("GET", "/admin/stats")["windows"]["1d"]["failed"] == 1
    assert (stats["completed_last_hour"], stats["failed_last_hour"]) == (4, 1)
    system.fetch(QUEUE)
    assert "oldest_available_at" not in system.call("GET", f"/admin/queues/{QUEUE}")


async def test_the_official_command_line_gets_objects(system: System, http: aiohttp.ClientSession) -> None:
    done(system, 5)
    system.call("POST", "/queues/st.b/pause")
    system.push("a.b", queue="st.b")
    system.call("POST", "/workers/heartbeat", {"worker_id": "w"})
    async with http.get("/ojs/v1/admin/stats", headers=CLI) as answer:
        view = json.loads(await answer.read())
    assert view["queues"] == {"total": 2, "active": 1, "paused": 1}
    assert (view["workers"]["total"], view["workers"]["running"], view["workers"]["stale"]) == (1, 1, 0)
    assert (view["throughput"]["completed_per_min"], view["throughput"]["failed_per_min"]) == (1, 0)
    assert isinstance(view["throughput"]["completed_per_min"], int)
    async with http.get("/ojs/v1/admin/stats/history?period=1h&since=24h", headers=CLI) as answer:
        points = json.loads(await answer.read())["data_points"]
    assert summed(points, "enqueued", "completed", "failed") == [6, 5, 0]
    assert all(isinstance(point["avg_latency_ms"], float) for point in points)
    view = system.call("GET", "/admin/stats")
    assert (view["queues"], view["workers"]) == (2, 1), "others get numbers"


# The stream


async def read_event(stream: aiohttp.StreamReader) -> tuple[str, Any]:
    name = ""
    while True:
        line = (await asyncio.wait_for(stream.readline(), 10)).decode().rstrip("\n")
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            return name, json.loads(line.removeprefix("data: "))


async def test_the_stream_tells_every_watcher_again_and_again(system: System, http: aiohttp.ClientSession) -> None:
    done(system, 3)
    done(system, 1, fail=True)
    system.call("POST", "/workers/heartbeat", {"worker_id": "w", "active_jobs": []})
    path = "/ojs/v1/admin/stats/stream"
    async with http.get(path) as one, http.get(path, headers=UI) as other:
        assert one.headers["Content-Type"] == other.headers["Content-Type"] == "text/event-stream"
        name, metrics = await read_event(other.content)
        assert name == "metrics"
        assert metrics["queues"] == [{"queue": QUEUE, "available": 0, "active": 0, "scheduled": 0, "retryable": 0}]
        assert metrics["throughput"]["processed_per_second"] == pytest.approx(3 / 300, abs=0.001)
        assert metrics["error_rate"] == 25.0
        assert (metrics["workers"]["total"], metrics["workers"]["active"][0]["id"]) == (1, "w")
        for stream in (one, other):
            name, stats = await read_event(stream.content)
            assert (name, stats["jobs"]["completed"], stats["windows"]["5m"]["failed"]) == ("stats", 3, 1)
        await asyncio.to_thread(done, system, 1)

        async def later() -> int:
            while True:
                name, found = await read_event(one.content)
                if name == "stats" and found["jobs"]["completed"] == 4:
                    return 4

        assert await asyncio.wait_for(later(), 60) == 4
    async with http.get(path) as again:
        assert (await read_event(again.content))[0] == "stats"
