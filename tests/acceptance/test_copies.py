"""From one copy of everything to three, in place: `ojs-nats setup --replicas 3` while the system works."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from support.cluster import NatsCluster
from support.forked import OJS_NATS, completed
from support.nats import NatsServer
from support.system import Processes, environment, send
from support.waiting import eventually, until

V1 = "/ojs/v1"
JOBS = 30
PAUSE_S = 0.02
"""Between two pushes: some at any time are enough."""
PATIENCE_S = 180.0
"""Copies are waited for as long as they come nearer."""


def set_up(folder: Path, nats_url: str, replicas: int) -> subprocess.CompletedProcess[str]:
    command = [*OJS_NATS, "setup", "--nats", nats_url, "--replicas", str(replicas)]
    return completed(command, environment(), folder=folder, seconds=PATIENCE_S)


def push(url: str, number: int) -> int:
    return send("POST", f"{url}{V1}/jobs", {"type": "copied", "args": [number]}).status


def finish_all(url: str, wanted: int) -> Counter[int]:
    """Fetch and acknowledge until so many jobs are done; returns how often each ran."""
    ran: Counter[int] = Counter()

    def acked(job_id: str) -> bool:
        """As a worker acknowledges: again if the election of a leader takes longer than the gateway waits."""
        answer = send("POST", f"{url}{V1}/workers/ack", {"job_id": job_id, "worker_id": "w"})
        assert answer.status in {200, 503}, answer
        return answer.status == 200

    def done() -> bool:
        fetched = send("POST", f"{url}{V1}/workers/fetch", {"queues": ["default"], "worker_id": "w", "count": 50})
        for job in (fetched.body or {}).get("jobs", ()) if fetched.status == 200 else ():
            ran[job["args"][0]] += 1
            until(partial(acked, str(job["id"])))
        return len(ran) == wanted

    until(done)
    return ran


def test_more_copies_than_servers_are_refused_in_words(tmp_path: Path) -> None:
    with NatsServer(tmp_path / "nats") as server:
        assert set_up(tmp_path, server.url, 1).returncode == 0
        refused = set_up(tmp_path, server.url, 3)
        assert refused.returncode == 1
        assert "3 copies of stream KV_ojs" in refused.stderr
        assert "start so many nats-servers as one cluster" in refused.stderr


@pytest.mark.slow
async def test_copies_are_raised_in_place_and_a_lost_server_then_loses_nothing(tmp_path: Path) -> None:
    with NatsCluster(tmp_path / "nats") as cluster:
        processes = Processes(tmp_path / "services", cluster.url)
        try:
            names = ("gateway", "services")
            running = [processes.start(name) for name in names]
            lines = [await asyncio.to_thread(command.ready) for command in running]
            url = str(lines[0]["url"])
            answers: list[int] = []

            async def produce() -> None:
                while len(answers) < JOBS or not raised.done():
                    answers.append(await asyncio.to_thread(push, url, len(answers)))
                    await asyncio.sleep(PAUSE_S)

            raised = asyncio.create_task(asyncio.to_thread(set_up, tmp_path, cluster.url, 3))
            await produce()
            done = await raised
            assert done.returncode == 0, done.stderr
            assert "3 copies from now on: KV_ojs, OJS_READY, OJS_EVENTS, OJS_AUDIT" in done.stdout
            assert "all copies are up to date" in done.stdout
            assert set(answers) == {201}, "jobs were refused meanwhile"

            for number, name in enumerate(names):  # they go by what streams had when they started
                assert await asyncio.to_thread(running[number].stop) == 0
                running[number] = processes.start(name, "--replicas", "3")
            lines = [await asyncio.to_thread(command.ready) for command in running]
            url = str(lines[0]["url"])
            leader = await eventually(lambda: asyncio.to_thread(cluster.leader, "KV_ojs"))
            await asyncio.to_thread(cluster.node(str(leader)).kill)
            ran = await asyncio.to_thread(finish_all, url, len(answers))
            assert set(ran) == set(range(len(answers)))
            again = await asyncio.to_thread(set_up, tmp_path, cluster.url, 3)
            assert "copying: " in again.stderr, "a copy is away, which is said"
            assert again.returncode == 0
            # Its disk is lost as well: an empty server of its name gets everything from the others.
            await asyncio.to_thread(shutil.rmtree, cluster.node(str(leader)).folder / "store")
            await asyncio.to_thread(cluster.node(str(leader)).start)
            await asyncio.to_thread(cluster.until_whole)
            whole = await asyncio.to_thread(set_up, tmp_path, cluster.url, 3)
            assert (whole.returncode, whole.stderr) == (0, "")
        finally:
            await asyncio.to_thread(processes.stop)
