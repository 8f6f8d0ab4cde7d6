"""Three servers lose power at once, and one disk has lost the end of its files: no acknowledged job is lost."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from support.cluster import NatsCluster, monitored
from support.nats import NatsServer
from support.system import Answer, Gateway, Processes
from support.waiting import until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(300)]

STREAM: Final = "KV_ojs"
JOBS: Final = 300
LOST_BYTES: Final = 20_000
"""So much of each newest file is lost: the records of dozens of jobs."""


def cut(server: NatsServer) -> dict[str, int]:
    """Cut the end off the newest file of each stream and Raft log; returns how many bytes each of them lost."""
    lost: dict[str, int] = {}
    for folder in server.folder.glob("store/jetstream/**/msgs"):
        newest = max(folder.glob("*.blk"), key=lambda path: int(path.stem), default=None)
        if newest is not None:
            size = newest.stat().st_size
            os.truncate(newest, max(0, size - LOST_BYTES))
            lost[folder.parent.name] = min(size, LOST_BYTES)
    return lost


def records(servers: Sequence[NatsServer]) -> set[int | None]:
    """How many records each server says that it has."""
    found: set[int | None] = set()
    for server in servers:
        accounts = monitored(server, "jsz?streams=true").get("account_details") or ()
        streams = {stream["name"]: stream for account in accounts for stream in account.get("stream_detail") or ()}
        found.add(streams[STREAM]["state"]["messages"] if STREAM in streams else None)
    return found


def answer(gateway: Gateway, method: str, path: str, body: object = None) -> Answer:
    """The answer to a request that is sent again for as long as NATS is choosing a leader."""

    def given() -> Answer | None:
        found = gateway.request(method, f"/ojs/v1{path}", body)
        return None if found.status == 503 else found

    found = until(given)
    assert found is not None
    return found


def pushed(gateway: Gateway) -> str:
    """Push a job; returns its id once the server has acknowledged it."""
    found = answer(gateway, "POST", "/jobs", {"type": "test.power", "args": []})
    assert found.status == 201, found
    return str(found.body["job"]["id"])


@pytest.mark.parametrize("leads", [True, False], ids=["the-leader", "a-follower"])
def test_no_acknowledged_job_is_lost_with_the_end_of_the_files_of_one_server(tmp_path: Path, *, leads: bool) -> None:
    with NatsCluster(tmp_path / "cluster", jetstream="sync_interval: always") as cluster:
        processes = Processes(tmp_path / "services", cluster.url, with_users=False)
        try:
            gateway = Gateway(processes.start("gateway", "--replicas", "3").ready()["url"])
            acknowledged = [pushed(gateway) for _ in range(JOBS)]
            leader = until(lambda: cluster.leader(STREAM))
            for node in cluster.nodes:
                node.kill()
            victim = next(node for node in cluster.nodes if (node.name == leader) == leads)
            assert cut(victim)[STREAM] == LOST_BYTES
            cluster.start()
            cluster.until_whole()
            lost = [job_id for job_id in acknowledged if answer(gateway, "GET", f"/jobs/{job_id}").status != 200]
            assert lost == []

            def repaired() -> bool:
                (number, *others) = records(cluster.nodes)
                return not others and number is not None and number >= JOBS

            until(repaired)
            assert answer(gateway, "GET", f"/jobs/{pushed(gateway)}").status == 200
        finally:
            processes.stop()
