"""`ojs-nats setup` while a cluster has no leader."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ojs_command.setup import set_up
from ojs_engine.base.problems import Unreachable
from ojs_runtime.settings import Settings
from support.cluster import NatsCluster
from support.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


@pytest.mark.parametrize("before", [1, 3], ids=["copies are asked for", "copies are there"])
async def test_it_waits_until_streams_have_leaders_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], before: int
) -> None:
    with NatsCluster(tmp_path) as cluster:
        assert await set_up(Settings(nats=cluster.url, replicas=before)) == 0
        if before == 3:
            await asyncio.to_thread(cluster.until_whole)
        for node in cluster.nodes[1:]:
            await asyncio.to_thread(node.kill)
        capsys.readouterr()
        setting_up = asyncio.create_task(
            set_up(Settings(nats=cluster.nodes[0].url, replicas=3, connect_timeout=2 * PATIENCE_S))
        )
        said: list[str] = []

        def waits() -> bool:
            said.append(capsys.readouterr().err)
            assert not setting_up.done()
            return "waiting for NATS: JetStream does not answer" in "".join(said)

        await eventually(waits)
        for node in cluster.nodes[1:]:
            await asyncio.to_thread(node.start)
        assert await setting_up == 0
        out = capsys.readouterr().out
        assert ("3 copies from now on: " in out) == (before == 1)
        assert "the streams are as they must be: " in out


async def test_it_says_so_where_none_is_chosen_in_time(tmp_path: Path) -> None:
    with NatsCluster(tmp_path) as cluster:
        for node in cluster.nodes[1:]:
            await asyncio.to_thread(node.kill)
        with pytest.raises(Unreachable, match="JetStream does not answer"):
            await set_up(Settings(nats=cluster.nodes[0].url, replicas=3, connect_timeout=0.0))
