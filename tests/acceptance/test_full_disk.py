"""`ojs-nats dev` on a disk that is full for a while: it says so, and goes on by itself when there is room."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support import disks
from support.disks import fill
from support.system import TOGETHER, System
from support.waiting import until

pytestmark = pytest.mark.slow

SIZE_MIB: Final = 128
RECOVERY_S: Final = 60.0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The data folder of a system, on a disk of its own."""
    folder = tmp_path / "own" / "data"
    try:
        with disks.small_disk(folder, SIZE_MIB):
            yield folder
    except disks.CannotMount as reason:
        pytest.skip(f"no disk can be mounted here: {reason}")


def push(system: System, size: int = 100) -> str | None:
    """The id of a job, None if it was refused."""
    answer = system.request("POST", "/ojs/v1/jobs", {"type": "t", "args": ["x" * size]})
    if answer.status == 201:
        return str(answer.body["job"]["id"])
    assert (answer.status, answer.body["error"]["code"]) in {(503, "storage_full"), (503, "backend_unavailable")}, answer
    assert int(answer.headers["Retry-After"]) > 0
    return None


def drain(system: System) -> list[str]:
    """Fetch and acknowledge whatever there is; the ids."""
    done: list[str] = []
    while True:
        answer = system.request("POST", "/ojs/v1/workers/fetch", {"queues": ["default"], "count": 100, "worker_id": "w"})
        assert answer.status == 200, answer
        if not answer.body["jobs"]:
            return done
        for job in answer.body["jobs"]:
            assert system.request("POST", "/ojs/v1/workers/ack", {"job_id": job["id"], "worker_id": "w"}).status == 200
            done.append(job["id"])


def test_new_jobs_are_refused_before_the_disk_is_full_and_again_taken_when_there_is_room(small_disk: Path) -> None:
    with System.started(small_disk.parent, TOGETHER, with_users=False) as system:
        acknowledged = [push(system)]
        filler = small_disk / "filler"
        with filler.open("wb") as file:  # all but half of the reserve
            free = os.statvfs(small_disk)
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - SIZE_MIB * 2**20 // 16)
        until(lambda: push(system) is None)
        answer = system.request("POST", "/ojs/v1/jobs", {"type": "t", "args": []})
        assert answer.body["error"]["code"] == "storage_full"
        assert "the disk of" in answer.body["error"]["message"]
        ready = system.request("GET", "/readyz")
        assert (ready.status, ready.body["status"], ready.body["storage"]["status"]) == (200, "degraded", "full")
        assert set(acknowledged) <= set(drain(system)), "what is there can be finished"
        filler.unlink()
        until(lambda: push(system) is not None)
        assert system.events("is started again") == []


def test_it_works_again_by_itself_when_a_full_disk_has_room_and_nothing_acknowledged_is_lost(small_disk: Path) -> None:
    with System.started(small_disk.parent, TOGETHER, with_users=False) as system:
        acknowledged = {push(system, 20_000) for _ in range(50)}
        filler = small_disk / "filler"
        fill(filler)

        def unwritable() -> bool:
            if (one := push(system, 20_000)) is not None:
                acknowledged.add(one)
            fill(filler)
            answer = system.request("GET", "/readyz")
            return answer.status == 503 and "no space left on device" in answer.body["backend"]["error"]

        until(unwritable, RECOVERY_S)
        answer = system.request("POST", "/ojs/v1/jobs", {"type": "t", "args": []})
        assert answer.body["error"]["code"] == "storage_full"
        assert "no space left on device" in answer.body["error"]["message"]
        filler.unlink()
        acknowledged.add(until(lambda: push(system), RECOVERY_S))
        until(lambda: system.request("GET", "/readyz").body["status"] == "ok", RECOVERY_S)
        [restart] = system.events("is started again")
        assert restart["child"] == "nats-server"
        done = drain(system)
        assert len(done) == len(set(done))
        assert acknowledged - {None} <= set(done)
        until(lambda: system.request("GET", "/ojs/v1/jobs").status == 200, RECOVERY_S)
