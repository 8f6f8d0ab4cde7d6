"""Workers and producers at the edge: they know a leaf node alone, which has one outbound connection to the hub."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ojs_nats import Client
from ojs_nats.errors import UnavailableError
from ojs_nats.jobs import JobRequest
from support.forked import OJS_NATS, completed
from support.nats import configured
from support.network import GOOD, PARTITION, RESET, Condition, Link, Network
from support.processes import free_port
from support.python_worker import WorkerProcess, installed
from support.system import Processes, environment
from support.waiting import eventually

pytestmark = pytest.mark.slow

PATIENCE_S = 120.0
QUEUE = "edge"


class Edge(NamedTuple):
    """A worker and the address of NATS at the edge, the way to the hub, and the hub's gateway."""

    nats_url: str
    link: Link
    worker: WorkerProcess
    gateway: str
    folder: Path


def printed(*arguments: str) -> str:
    command = [*OJS_NATS, "nats-conf", *arguments]
    done = completed(command, environment())
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Edge]:
    port = free_port()
    hub = printed("--leaf-port", str(port), "--store", str(tmp_path / "store"), "--sync", "2m")
    # Else the leaf hears of the hub's own address, and connects past the link.
    hub = hub.replace("leafnodes {", "leafnodes {\n  no_advertise: true")
    with Network() as network, configured(tmp_path / "hub", hub) as at_hub:
        link = network.link(port)
        leaf = printed("--leaf", f"nats-leaf://127.0.0.1:{link.port}")
        processes = Processes(tmp_path / "services", at_hub, with_users=False)
        with configured(tmp_path / "leaf", leaf) as at_leaf:
            try:
                started = [processes.start("gateway", "--nats-api"), processes.start("services")]
                lines = [command.ready() for command in started]
                installed("hostile", tmp_path)
                worker = WorkerProcess.started(tmp_path, "hostile", "--queues", QUEUE, url=at_leaf)
                try:
                    yield Edge(at_leaf, link, worker, str(lines[0]["url"]), tmp_path)
                finally:
                    worker.end()
            finally:
                processes.stop()


async def test_jobs_at_the_edge_outlive_each_loss_of_the_way_to_the_hub(edge: Edge) -> None:
    async with (
        Client(edge.nats_url, retry_for=PATIENCE_S) as patient,
        Client(edge.nats_url, retry_for=1.0) as hasty,
        Client(edge.gateway, retry_for=PATIENCE_S) as hub,
    ):
        for condition in (RESET, PARTITION):
            await outlived(edge, condition, patient, hasty, hub)


async def outlived(edge: Edge, condition: Condition, patient: Client, hasty: Client, hub: Client) -> None:
    """Lose the way while jobs run and one is pushed, and see all of them completed."""
    gate = f"gate-{condition.name}"
    waiting: JobRequest[int] = JobRequest("hostile.late", (gate, "well"), {"queue": QUEUE})
    begun = [await patient.push(waiting) for _ in range(2)]

    def noted(what: str) -> bool:
        return all(f"{job.id} {what}" in edge.worker.notes() for job in begun)

    await eventually(lambda: noted("runs"), PATIENCE_S)
    edge.link.become(condition)
    (edge.folder / gate).touch()
    await eventually(lambda: noted("ends"))
    with pytest.raises(UnavailableError):
        await hasty.push(waiting)
    meanwhile = asyncio.create_task(patient.push(waiting))
    edge.link.become(GOOD)
    jobs = [*begun, await meanwhile]

    async def all_completed() -> bool:
        return {str((await hub.jobs.get(job.id)).state) for job in jobs} == {"completed"}

    await eventually(all_completed, PATIENCE_S)
    for job in jobs:
        assert edge.worker.notes().count(f"{job.id} runs") == 1, f"it ran again after {condition.name}"
