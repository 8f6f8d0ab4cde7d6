from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from ojs_command.embedded import EmbeddedServer, find_server
from ojs_engine.base.problems import StartupProblem
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store
from ojs_features.all import STORE_FEATURES
from support.processes import runs
from support.waiting import eventually


@asynccontextmanager
async def running(folder: Path, port: int = 0, program: str = "auto") -> AsyncIterator[EmbeddedServer]:
    lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT)
    server = EmbeddedServer(find_server(program), folder, port, lock, lambda: None)
    try:
        await server.start()
        yield server
    finally:
        await server.stop(2.0)
        os.close(lock)


async def test_it_can_do_what_the_store_asks_for_in_a_folder_of_any_name(tmp_path: Path) -> None:
    folder = tmp_path / 'a "quoted" näme with spaces'
    folder.mkdir()
    async with running(folder) as server:
        store = await Store.open(server.url, StoreConfig(), role="test", features=STORE_FEATURES)
        assert store.max_payload == 8 * 1024 * 1024
        assert await store.ping() > 0
        await store.close()
    assert server.pid is None


async def test_it_is_started_again_on_the_port_it_had(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        url, pid = server.url, server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

        async def back() -> bool:
            return server.pid not in (None, pid) and await answers(url)

        await eventually(back)
        assert server.url == url


async def test_one_that_dies_again_and_again_is_started_more_and_more_slowly(tmp_path: Path) -> None:
    """As all that is kept running: services of `dev` and gateways of one port, too."""
    with capture_logs() as logs:
        async with running(tmp_path) as server:
            for times in range(1, 5):

                def back(times: int = times) -> bool:
                    return len(pauses(logs)) == times

                assert server.pid is not None
                os.kill(server.pid, signal.SIGKILL)
                await eventually(back)
    assert pauses(logs) == [0.2, 0.4, 0.8, 1.6]


def pauses(logs: Sequence[Mapping[str, Any]]) -> list[float]:
    """How long it wasn't started again each time."""
    return [line["after_s"] for line in logs if line["event"] == "started again"]


async def test_it_ends_with_its_server_lock_still_held_by_nobody(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        pid = server.pid
    assert pid is not None
    assert not runs(pid)


async def test_why_it_does_not_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "nats").write_text("not a folder")
    with pytest.raises(StartupProblem, match=r"nats-server did not start \(.*storage directory.*\); its log is"):
        async with running(tmp_path):
            pass


async def test_a_program_that_is_no_nats_server_is_told(tmp_path: Path) -> None:
    with pytest.raises(StartupProblem, match=r"nats-server did not start \(exit status 1\)"):
        async with running(tmp_path, program="/bin/false"):
            pass


async def answers(url: str) -> bool:
    try:
        store = await Store.open(url, StoreConfig(), role="test", features=STORE_FEATURES)
    except StartupProblem:
        return False
    await store.close()
    return True
