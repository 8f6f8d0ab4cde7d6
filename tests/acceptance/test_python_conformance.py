"""The conformance document's test handlers (§5.4) as a worker, and its cases that expect one (§6)."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from support.python_worker import WorkerProcess, installed
from support.system import Api, System
from support.waiting import until

QUICKLY = {"initial_interval": "PT0.1S", "jitter": False}


class Suite(Api):
    """A server, and a worker with the suite's handlers."""

    def __init__(self, system: System, folder: Path) -> None:
        self._system = system
        self._folder = folder
        self.workers = [WorkerProcess.started(folder, "conformance", url=system.url)]

    @property
    def url(self) -> str:
        return self._system.url

    def ended(self, job_id: str, state: str, seconds: float = 60) -> Any:
        def is_so() -> Any:
            job = self.job(job_id)
            return job if job["state"] == state else None

        return until(is_so, seconds)

    def states(self, job_id: str) -> list[tuple[str, str]]:
        """What the job went through: state and time."""
        history = self.call("GET", f"/admin/jobs/{job_id}/trace")["snapshots"]
        return [(step["state"], step["at"]) for step in history]

    def another_worker(self, *arguments: str) -> None:
        label = f"worker-{len(self.workers)}"
        worker = WorkerProcess.started(self._folder, "conformance", *arguments, url=self.url, label=label)
        self.workers.append(worker)


@pytest.fixture
def suite(system: System, tmp_path: Path) -> Iterator[Suite]:
    installed("conformance", tmp_path)
    suite = Suite(system, tmp_path)
    yield suite
    for worker in suite.workers:
        worker.end()


def test_execute_job_to_completion(suite: Suite) -> None:  # L0-004
    job = suite.ended(suite.push("test.echo", "hello", "world")["id"], "completed")
    assert job["result"] == ["hello", "world"]
    assert datetime.fromisoformat(job["completed_at"]) >= datetime.fromisoformat(job["started_at"])


def test_results_that_are_asked_for(suite: Suite) -> None:
    assert suite.ended(suite.push("test.produce", {"a": [1, None]})["id"], "completed")["result"] == {"a": [1, None]}
    assert suite.ended(suite.push("test.noop")["id"], "completed").get("result") is None
    assert suite.ended(suite.push("test.slow", 300)["id"], "completed")["attempt"] == 1


@pytest.mark.parametrize(("handler", "attempts"), [("test.fail_once", 2), ("test.fail_twice", 3)])
def test_retry_on_failure(suite: Suite, handler: str, attempts: int) -> None:  # L1-001, L1-005
    retry = {"max_attempts": 3, "initial_interval": "PT1S", "backoff_coefficient": 2.0, "jitter": False}
    job_id = suite.push(handler, retry=retry)["id"]
    assert suite.ended(job_id, "completed")["attempt"] == attempts
    went = suite.states(job_id)
    assert [state for state, _ in went].count("retryable") == attempts - 1
    failed = [datetime.fromisoformat(at) for state, at in went if state == "retryable"]
    began = [datetime.fromisoformat(at) for state, at in went if state == "active"][1:]
    waited = [(there - left).total_seconds() for left, there in zip(failed, began, strict=True)]
    assert all(seconds >= 2.0**index for index, seconds in enumerate(waited)), waited


def test_dead_letter_on_exhausted_retries(suite: Suite) -> None:  # L1-006
    retry = {"max_attempts": 2, "on_exhaustion": "dead_letter", **QUICKLY}
    job = suite.ended(suite.push("test.fail_always", retry=retry)["id"], "discarded")
    assert job["attempt"] == 2
    assert job["error"]["type"] == "TestFailure"


def test_a_job_that_outlives_its_time_out_is_ended(suite: Suite) -> None:
    job = suite.ended(suite.push("test.timeout", timeout_ms=500, retry={"max_attempts": 1})["id"], "discarded")
    assert "timeout" in job["error"]["type"]


def test_visibility_timeout_requeue(suite: Suite) -> None:  # L1-007, where the worker can't renew it any more
    job_id = suite.push("test.panic", visibility_timeout_ms=2_000, retry={"max_attempts": 2, **QUICKLY})["id"]
    suite.workers[0].process.wait(timeout=60)
    until(lambda: suite.job(job_id)["state"] in {"available", "retryable"}, 60)
    suite.another_worker()
    suite.workers[1].process.wait(timeout=60)
    assert suite.ended(job_id, "discarded", 90)["attempt"] == 2


def test_delayed_job_execution(suite: Suite) -> None:  # L2-001
    job_id = suite.push("test.echo", "later", delay_until="+PT2S")["id"]
    assert suite.job(job_id)["state"] == "scheduled"
    job = suite.ended(job_id, "completed")
    began, asked = datetime.fromisoformat(job["started_at"]), datetime.fromisoformat(job["scheduled_at"])
    assert began >= asked


def test_chain_and_group_workflows(suite: Suite) -> None:  # L3-001, L3-002
    step = {"type": "test.echo", "args": ["a"]}
    chain = suite.call("POST", "/workflows", {"type": "chain", "steps": [step, {"type": "test.echo", "args": ["b"]}]}, 201)
    group = suite.call("POST", "/workflows", {"type": "group", "jobs": [step, step, step]}, 201)
    for workflow in (chain, group):
        workflow_id = workflow["workflow"]["id"]

        def completed(workflow_id: str = workflow_id) -> bool:
            return bool(suite.call("GET", f"/workflows/{workflow_id}")["workflow"]["state"] == "completed")

        until(completed, 60)


def test_priority_ordering(suite: Suite) -> None:  # L4-001
    suite.workers[0].end()
    ids = {priority: suite.push("test.echo", priority, priority=priority)["id"] for priority in (-5, 0, 10)}
    suite.another_worker("--concurrency", "1")
    began = {priority: suite.ended(job_id, "completed")["started_at"] for priority, job_id in ids.items()}
    assert began[10] < began[0] < began[-5]
