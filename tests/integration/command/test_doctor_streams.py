"""What `ojs-nats doctor --nats` says of a cluster."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ojs_command.client.doctor.findings import Finding
from ojs_command.client.doctor.streams import check_nats
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.streams import provision
from ojs_engine.jetstream.subjects import StoreConfig
from support.cluster import NatsCluster
from support.waiting import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def of(findings: list[Finding], check: str) -> list[Finding]:
    return [finding for finding in findings if finding.check == check]


async def provisioned(url: str) -> None:
    nats = Connection("test")
    await nats.connect(url)
    try:
        await provision(nats, StoreConfig(replicas=3))
    finally:
        await nats.close()


async def test_streams_that_are_missing_and_copies_that_are_lost(tmp_path: Path) -> None:
    cluster = NatsCluster(tmp_path)
    try:
        await asyncio.to_thread(cluster.start)
        missing = of(await check_nats(cluster.url), "streams")
        assert [finding.status for finding in missing] == ["problem"] * 4
        await provisioned(cluster.url)
        await asyncio.to_thread(cluster.until_whole)
        whole = await check_nats(cluster.url)
        assert [finding.found for finding in whole if finding.status != "ok"] == []
        cluster.nodes[2].kill()

        async def lost() -> bool:
            copies = of(await check_nats(cluster.url), "copies")
            return len(copies) == 4 and all("n3 (" in finding.found and finding.status == "problem" for finding in copies)

        await eventually(lost)
    finally:
        await asyncio.to_thread(cluster.stop)
