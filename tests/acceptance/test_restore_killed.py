"""A restore that is killed in its midst: nothing works with half of it, and the same command makes it whole."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any, Final

import pytest

from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.subjects import REST, StoreConfig
from support.forked import OJS_NATS, completed, start
from support.nats import NatsServer
from support.network import DRIBBLE, Network
from support.operator_commands import run
from support.processes import end
from support.system import Processes, environment, send
from support.waiting import eventually, until

CONFIG: Final = StoreConfig()
V1: Final = "/ojs/v1"
JOBS: Final = 60
DONE: Final = 10


def fetch(url: str, count: int) -> list[Any]:
    asked = {"queues": ["default"], "worker_id": "w", "count": count}
    return list(send("POST", f"{url}{V1}/workers/fetch", asked).body["jobs"])


def filled(folder: Path, nats_url: str) -> tuple[set[str], set[str]]:
    """Have a gateway push jobs and finish some; returns the ids of all, and of those that are done."""
    processes = Processes(folder, nats_url)
    try:
        url = str(processes.start("gateway").ready()["url"])
        jobs = [{"type": "kept", "args": ["x" * 2_000]} for _ in range(JOBS)]
        pushed = send("POST", f"{url}{V1}/jobs/batch", {"jobs": jobs}).body["jobs"]
        done = fetch(url, DONE)
        for job in done:
            assert send("POST", f"{url}{V1}/workers/ack", {"job_id": job["id"], "worker_id": "w"}).status == 200
        return {job["id"] for job in pushed}, {job["id"] for job in done}
    finally:
        processes.stop()


async def stored_jobs(nats: Connection) -> int:
    """How many records of jobs there are; none where there is no stream yet."""
    found = await call(nats, f"STREAM.INFO.{CONFIG.records_stream}", {"subjects_filter": CONFIG.record("job", REST)})
    return len(found.get("state", {}).get("subjects") or {})


async def kill_in_its_midst(folder: Path, kept: Path, server: NatsServer) -> None:
    """Restore over a slow network, and kill the command once it has written some of the records."""
    nats = Connection("test")
    await nats.connect(server.url)
    with Network() as network:
        link = network.link(server.port)
        link.become(DRIBBLE)
        command = [*OJS_NATS, "restore", str(kept), "--nats", f"nats://127.0.0.1:{link.port}"]
        with (folder / "killed.log").open("w+b") as file:
            restore = start(command, environment(), (file.fileno(),) * 3)

        async def has_begun() -> bool:
            assert restore.poll() is None, (folder / "killed.log").read_text(encoding="utf-8")
            return await stored_jobs(nats) > 3

        try:
            await eventually(has_begun)
        finally:
            code = await asyncio.to_thread(end, restore, signal.SIGKILL)
        assert code == -signal.SIGKILL
    assert await stored_jobs(nats) < JOBS
    await nats.close()


@pytest.mark.slow
async def test_a_killed_restore_is_begun_anew_while_services_wait_and_nothing_is_lost_or_twice(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    with NatsServer(tmp_path / "first") as first:
        pushed, done = await asyncio.to_thread(filled, tmp_path / "before", first.url)
        await asyncio.to_thread(run, "backup", str(kept), "--nats", first.url)
    with NatsServer(tmp_path / "second") as second:
        await kill_in_its_midst(tmp_path, kept, second)
        processes = Processes(tmp_path / "after", second.url)
        try:
            gateway, services = (processes.start(name, "--connect-timeout", "600") for name in ("gateway", "services"))
            for command in (gateway, services):
                [waiting, *_] = await asyncio.to_thread(until, lambda command=command: command.events("waiting for NATS"))
                assert "is being restored, or a restore of it was interrupted" in waiting["reason"]
                assert "run 'ojs-nats restore' again" in waiting["reason"]
            half = [*OJS_NATS, "backup", str(tmp_path / "half"), "--nats", second.url]
            refused = await asyncio.to_thread(completed, half, environment())
            assert (refused.returncode, "is being restored" in refused.stderr) == (1, True)
            restored = await asyncio.to_thread(run, "restore", str(kept), "--nats", second.url)
            assert (restored["jobs"], restored["waiting"]) == (JOBS, JOBS - DONE)
            url = str((await asyncio.to_thread(gateway.ready))["url"])
            got = await asyncio.to_thread(fetch, url, JOBS)
            while more := await asyncio.to_thread(fetch, url, JOBS):
                got += more
            assert len(got) == JOBS - DONE
            assert {job["id"] for job in got} == pushed - done
        finally:
            await asyncio.to_thread(processes.stop)
