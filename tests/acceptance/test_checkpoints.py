"""Checkpoints over HTTP: saved by one attempt, handed to the next."""

from __future__ import annotations

from typing import Any

import pytest

from support.system import System, send
from support.waiting import until


def running(system: System, queue: str, lease_ms: int = 60_000, **options: Any) -> str:
    """The id of a job that worker w holds."""
    job_id: str = system.push("a.b", queue=queue, **options)["id"]
    [job] = system.fetch(queue, worker_id="w", wait_ms=5_000, visibility_timeout_ms=lease_ms)
    assert job["id"] == job_id
    assert "checkpoint" not in job
    return job_id


def test_a_worker_that_is_gone_leaves_its_checkpoint_to_the_next(system: System) -> None:
    job_id = running(system, "cp.a", lease_ms=1_000)
    for step in (1, 2):
        body = {"state": {"step": step}, "step_index": step, "metadata": {"log": "x"}, "worker_id": "w", "attempt": 1}
        saved = system.call("PUT", f"/jobs/{job_id}/checkpoint", body)
        assert (saved["sequence"], saved["checkpoint"]["sequence"]) == (step, step)
    fetched: list[dict[str, Any]] = []

    def is_fetched_again() -> bool:
        fetched.extend(system.fetch("cp.a", worker_id="v", wait_ms=1_000, visibility_timeout_ms=60_000))
        return bool(fetched)

    until(is_fetched_again)
    [job] = fetched
    assert (job["id"], job["attempt"]) == (job_id, 2)
    found = job["checkpoint"]
    assert (found["state"], found["sequence"], found["step_index"], found["metadata"]) == ({"step": 2}, 2, 2, {"log": "x"})
    late = system.request("PUT", f"/ojs/v1/jobs/{job_id}/checkpoint", {"state": 9, "worker_id": "w", "attempt": 1})
    assert late.status == 409
    assert system.call("GET", f"/jobs/{job_id}/checkpoint")["state"] == {"step": 2}


@pytest.mark.parametrize("prefix", ["/checkpoints", "/ojs/v1/checkpoints"])
def test_the_paths_of_the_sdks_with_their_doubled_prefix_are_there(system: System, prefix: str) -> None:
    job_id = running(system, "cp.b")
    place = f"{system.url}/ojs/v1{prefix}/{job_id}"
    assert send("GET", f"{place}/resume").body["has_checkpoint"] is False
    body = {"state": {"a": 1}, "step_index": 1, "metadata": {"_replay_log": "[]"}}
    assert send("POST", place, body).status == 200
    found = send("GET", f"{place}/resume").body
    assert found["has_checkpoint"] is True
    assert found["checkpoint"]["metadata"] == {"_replay_log": "[]"}
    assert send("DELETE", place).body["existed"] is True
    assert send("DELETE", place).body["existed"] is False
    assert send("GET", f"{place}/resume").body["has_checkpoint"] is False


def test_a_checkpoint_of_a_megabyte_is_kept_and_a_larger_one_refused(system: System) -> None:
    job_id = running(system, "cp.c")
    system.call("PUT", f"/jobs/{job_id}/checkpoint", {"state": "x" * 1_048_574})
    system.call("PUT", f"/jobs/{job_id}/checkpoint", {"state": "y" * 1_048_575}, 413)
    assert system.call("GET", f"/jobs/{job_id}/checkpoint")["state"] == "x" * 1_048_574
