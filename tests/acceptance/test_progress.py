"""Progress over HTTP: reports, reads, the stream, events."""

from __future__ import annotations

import json
import threading
import urllib.request
from typing import Any

from support.system import System
from support.waiting import until


def running(system: System, queue: str) -> str:
    """The id of a job that worker w holds."""
    job_id: str = system.push("a.b", queue=queue)["id"]
    fetched = system.fetch(queue, worker_id="w", wait_ms=5_000)
    assert [job["id"] for job in fetched] == [job_id]
    return job_id


class Stream:
    """A stream of server-sent events that is read by a thread until it ends."""

    def __init__(self, url: str, user_agent: str = "test") -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.ended = False
        request = urllib.request.Request(url, headers={"User-Agent": user_agent})
        self._answer = urllib.request.urlopen(request, timeout=60)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        name = ""
        with self._answer:
            for line in self._answer:
                if line.startswith(b"event: "):
                    name = line[7:].strip().decode()
                elif line.startswith(b"data: "):
                    self.events.append((name, json.loads(line[6:])))
                    name = ""
        self.ended = True

    def progress(self) -> list[Any]:
        return [event["progress"] for _, event in list(self.events)]


def test_both_dialects_report_and_everybody_reads_it(system: System) -> None:
    job_id = running(system, "pr.a")
    nothing = system.call("GET", f"/jobs/{job_id}/progress")
    assert (nothing["progress"], nothing["data"], nothing["state"]) == (None, None, "active")
    told = system.call("PUT", f"/jobs/{job_id}/progress", {"progress": 0.25, "message": "a quarter", "data": {"rows": 5}})
    assert (told["progress"], told["accepted"]) == (0.25, True)
    answer = system.request("GET", f"/ojs/v1/jobs/{job_id}/progress")
    assert answer.body["data"] == {"rows": 5}
    assert answer.headers["X-OJS-Progress"] == "0.25"
    assert answer.headers["Cache-Control"] == "no-cache"
    told = system.call("POST", "/workers/progress", {"job_id": job_id, "percentage": 50})
    assert (told["progress"], told["percentage"]) == (0.5, 50.0)
    system.call("POST", "/workers/ack", {"job_id": job_id, "worker_id": "w"})
    assert system.call("GET", f"/jobs/{job_id}/progress")["progress"] == 1.0
    late = system.call("PUT", f"/jobs/{job_id}/progress", {"progress": 0.7})
    assert (late["accepted"], late["progress"]) == (False, 1.0)


def test_a_report_that_is_refused_changes_nothing(system: System) -> None:
    job_id = running(system, "pr.b")
    system.call("PUT", f"/jobs/{job_id}/progress", {"progress": 0.5})
    refused: list[dict[str, Any]] = [
        {},
        {"progress": "x"},
        {"data": {"a": "x" * 5_000}},
        {"progress": 1, "checkpoint": {"a": 1}},
    ]
    for body in refused:
        assert system.request("PUT", f"/ojs/v1/jobs/{job_id}/progress", body).status in {400, 413, 422}
    assert system.call("GET", f"/jobs/{job_id}/progress")["progress"] == 0.5


def test_the_stream_tells_what_stands_each_change_and_the_end(system: System) -> None:
    job_id = running(system, "pr.c")
    system.call("PUT", f"/jobs/{job_id}/progress", {"progress": 0.1})
    stream = Stream(f"{system.url}/ojs/v1/jobs/{job_id}/progress/stream")
    until(lambda: stream.progress() == [0.1])
    for percent in range(20, 100, 10):
        system.call("POST", "/workers/progress", {"job_id": job_id, "percentage": percent})
    until(lambda: stream.progress()[-1] == 0.9)
    system.call("POST", "/workers/ack", {"job_id": job_id, "worker_id": "w"})
    until(lambda: stream.ended)
    name, last = stream.events[-1]
    assert (name, last["progress"], last["state"]) == ("completed", 1.0, "completed")
    assert {name for name, _ in stream.events[:-1]} == {"progress"}
    assert stream.progress() == sorted(stream.progress())


def test_the_stream_of_a_job_that_is_over_tells_so_and_ends(system: System) -> None:
    job_id = running(system, "pr.d")
    system.call("DELETE", f"/jobs/{job_id}")
    stream = Stream(f"{system.url}/ojs/v1/jobs/{job_id}/progress/stream")
    until(lambda: stream.ended)
    assert [(name, event["progress"]) for name, event in stream.events] == [("cancelled", None)]
    nobody = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
    assert system.request("GET", f"/ojs/v1/jobs/{nobody}/progress/stream").status == 404


def test_a_browser_gets_each_event_without_a_name_as_well(system: System) -> None:
    job_id = running(system, "pr.e")
    system.call("PUT", f"/jobs/{job_id}/progress", {"progress": 0.1})
    system.call("POST", "/workers/ack", {"job_id": job_id, "worker_id": "w"})
    stream = Stream(f"{system.url}/ojs/v1/jobs/{job_id}/progress/stream", "Mozilla/5.0")
    until(lambda: stream.ended)
    assert [name for name, _ in stream.events] == ["completed", ""]
