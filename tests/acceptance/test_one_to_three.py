"""docs/operations.md, "From one server to three", as an operator follows it, with jobs under way."""

from __future__ import annotations

import asyncio
import random
import re
import shlex
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import nats
import pytest

from support.forked import OJS_NATS, completed
from support.nats import configured
from support.system import Processes, environment, send
from support.waiting import until
from support.walks import ROOT

V1: Final = "/ojs/v1"
MOVE_S: Final = 240.0
HOSTS: Final = ("a.internal", "b.internal", "c.internal")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def commands() -> tuple[str, str, str]:
    """The page's: a configuration of the cluster, the backup, the restore."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = page.split("## From one server to three\n")[1].split("\n## ")[0]
    found = dict(re.findall(r"`(ojs-nats (nats-conf|backup|restore) [^`]+)`", section))
    by_name = {name: command for command, name in found.items()}
    return by_name["nats-conf"], by_name["backup"], by_name["restore"]


class Site:
    """The machines of the page, which are addresses of this one."""

    def __init__(self, folder: Path, old: str) -> None:
        net = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}"  # tests run side by side
        self.addresses = {host: f"{net}.{number}" for number, host in enumerate(HOSTS, 1)}
        self.new = ",".join(f"nats://{address}:4222" for address in self.addresses.values())
        self._written = {"nats://old.internal:4222": old, "/var/backups/ojs": str(folder), **self.addresses}

    def run(self, command: str) -> tuple[int, str]:
        """Type a command of the page; returns its exit code, and what it printed."""
        for written, here in self._written.items():
            command = command.replace(written, here)
        done = completed([*OJS_NATS, *shlex.split(command)[1:]], environment(), seconds=MOVE_S)
        return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def started(folder: Path, nats_url: str, *arguments: str) -> tuple[Processes, str]:
    """A gateway and all other services; returns the gateway's address."""
    processes = Processes(folder, nats_url, with_users=False)
    gateway, services = (processes.start(name, *arguments) for name in ("gateway", "services"))
    url = str(gateway.ready()["url"])
    services.ready()
    return processes, url


def fetch(url: str, count: int) -> list[dict[str, Any]]:
    asked = {"queues": ["default"], "worker_id": "w", "count": count}
    found = send("POST", f"{url}{V1}/workers/fetch", asked)
    return list(found.body["jobs"]) if found.status == 200 else []


def ack(url: str, job: dict[str, Any]) -> int:
    asked = {"job_id": job["id"], "worker_id": "w", "attempt": job["attempt"]}
    return send("POST", f"{url}{V1}/workers/ack", asked).status


def push(url: str) -> tuple[set[str], str]:
    """Twenty jobs, five of which are due while the system moves, and a workflow of two steps; returns jobs and workflow."""
    steps = [{"type": f"moved.{name}", "args": []} for name in ("first", "second")]
    flow = send("POST", f"{url}{V1}/workflows", {"type": "chain", "steps": steps}).body["workflow"]["id"]
    now, soon = {"type": "moved", "args": []}, {"type": "moved", "args": [], "options": {"delay": "5s"}}
    pushed = [send("POST", f"{url}{V1}/jobs", soon if place < 5 else now).body["job"]["id"] for place in range(20)]
    return set(pushed), flow


def finish(url: str, flow: str) -> Counter[str]:
    """Work until the workflow has completed and nothing is left; returns how often each job ran."""
    ran: Counter[str] = Counter()

    def done() -> bool:
        for job in (jobs := fetch(url, 50)):
            ran[job["id"]] += 1
            assert ack(url, job) == 200
        if jobs:
            return False
        left = [send("GET", f"{url}{V1}/jobs?state={state}").body for state in ("scheduled", "available", "active")]
        state = send("GET", f"{url}{V1}/workflows/{flow}").body["workflow"]["state"]
        return state == "completed" and all(page["pagination"]["total"] == 0 for page in left)

    until(done, MOVE_S)
    return ran


async def copies(url: str) -> dict[str, int]:
    """How many each stream has."""
    client = await nats.connect(url.split(","))
    try:
        found = await client.jsm().streams_info()
        return {str(one.config.name): int(one.config.num_replicas or 1) for one in found}
    finally:
        await client.close()


@pytest.fixture
def old(tmp_path: Path) -> Iterator[str]:
    """The only server, as `ojs-nats nats-conf` configures it."""
    store = ["--store", str(tmp_path / "old-store"), "--sync", "2m"]
    printed = completed([*OJS_NATS, "nats-conf", *store], environment()).stdout
    with configured(tmp_path / "old", printed) as url:
        yield url


def test_one_server_becomes_three_with_jobs_under_way(tmp_path: Path, old: str) -> None:
    of_cluster, back_up, restore = commands()
    site = Site(tmp_path, old)
    processes, url = started(tmp_path / "before", old)
    try:
        pushed, flow = push(url)
        done = {job["id"] for job in fetch(url, 6) if ack(url, job) == 200}
        held = fetch(url, 4)
        with ExitStack() as cluster:
            for node, host in enumerate(HOSTS, 1):  # 1
                code, printed = site.run(of_cluster.replace("--node 1", f"--node {node}"))
                assert code == 0, printed
                printed = printed.replace("/var/lib/nats", str(tmp_path / host / "store"))
                cluster.enter_context(configured(tmp_path / host, printed, site.addresses[host]))
            processes.stop()  # 2
            code, said = site.run(back_up)  # 3
            assert code == 0, said

            def restored() -> bool:  # 4; refused as long as the three haven't found each other
                code, said = site.run(restore)
                assert code == 0 or "nats-server refused" in said or "JetStream" in said, said
                return code == 0

            until(restored, MOVE_S, every=1.0)
            processes, url = started(tmp_path / "after", site.new, "--replicas", "3")  # 5
            assert set(asyncio.run(copies(site.new)).values()) == {3}
            assert {ack(url, job) for job in held} == {409}, "who held a job before doesn't hold it any more"
            ran = finish(url, flow)
            assert set(ran.values()) == {1}
            assert done.isdisjoint(ran)
            assert pushed | {job["id"] for job in held} <= done | ran.keys()
            doctor = f"ojs-nats doctor --server {url} --nats {site.new}"
            until(lambda: site.run(doctor)[0] == 0)
            processes.stop()
    finally:
        processes.stop()
