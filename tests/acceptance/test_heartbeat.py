"""What a worker is told by its heartbeats about jobs that others have changed meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.system import Processes, System, send
from support.waiting import until

LEASE_MS = 600_000


def held(system: System, **options: Any) -> str:
    """A job that worker `w` holds for ten minutes."""
    job_id = system.push("t", **({"queue": "held", "retry": {"initial_interval": "PT1H"}} | options))["id"]
    assert [job["id"] for job in system.fetch("held", worker_id="w", visibility_timeout_ms=LEASE_MS)] == [job_id]
    return str(job_id)


def beat(system: System, *job_ids: str) -> Any:
    body = {"worker_id": "w", "active_jobs": job_ids, "visibility_timeout_ms": LEASE_MS}
    return system.request("POST", "/ojs/v1/workers/heartbeat", body).body


def test_a_cancellation_through_another_gateway_is_told_at_once_and_apart_from_other_jobs(
    system: System, tmp_path: Path
) -> None:
    kept, cancelled = held(system), held(system)
    assert sorted(beat(system, kept, cancelled)["jobs_extended"]) == sorted([kept, cancelled])
    others = Processes(tmp_path / "others", system.nats_url)
    try:
        other_url = others.start("gateway").ready()["url"]
        assert send("DELETE", f"{other_url}/ojs/v1/jobs/{cancelled}").status == 200
    finally:
        others.stop()
    told = beat(system, kept, cancelled, "0190a0a0-0000-7000-8000-000000000000")
    assert told["jobs_extended"] == [kept]
    assert told["cancelled_jobs"] == [cancelled]


def test_a_job_that_ran_too_long_is_not_held_any_more(system: System) -> None:
    job_id = held(system, timeout_ms=300)

    def timed_out() -> bool:
        return bool(system.job(job_id)["state"] == "retryable")

    until(timed_out)
    assert beat(system, job_id)["jobs_extended"] == []
