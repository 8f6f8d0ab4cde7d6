"""Several services in one process: one that ends while it runs is started again, and the others don't notice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from ojs_command.services import BACKGROUND
from ojs_command.together import ServiceTask, load_services
from ojs_engine.base.problems import StartupProblem
from ojs_runtime.service import CUT_OFF
from ojs_runtime.settings import Settings
from support.nats import NatsServer
from support.waiting import eventually

STOP_S = 5.0


@asynccontextmanager
async def running(url: str, folder: Path) -> AsyncIterator[list[ServiceTask]]:
    """All but the gateway."""
    settings = Settings(nats=url, health_port=None, projector_data=folder)
    services = [ServiceTask(name, build, settings, STOP_S) for name, build in (await load_services(BACKGROUND)).items()]
    try:
        assert await asyncio.gather(*(one.start_or_retry() for one in services)) == [None] * len(services)
        yield services
    finally:
        await asyncio.gather(*(one.stop(STOP_S) for one in services))


def work_of(name: str) -> asyncio.Task[object]:
    [found] = [task for task in asyncio.all_tasks() if task.get_name() == f"service-{name}" and not task.done()]
    return found


async def test_a_service_that_ends_while_it_runs_is_started_again_alone(nats_server: NatsServer, tmp_path: Path) -> None:
    with capture_logs() as logs:
        async with running(nats_server.url, tmp_path) as services:
            before = {one.name: work_of(one.name) for one in services}
            before["scheduler"].cancel()  # what it waits for is gone, say
            scheduler = next(one for one in services if one.name == "scheduler")

            async def works_again() -> bool:
                return before["scheduler"].done() and await scheduler.trouble() is None

            await eventually(works_again)
            others = [one for one in services if one is not scheduler]
            assert {work_of(one.name) for one in others} == {before[one.name] for one in others}
            assert [await one.trouble() for one in others] == [None] * len(others)
        assert [one.clean for one in services] == [True] * len(services)
    assert [line["child"] for line in logs if line["event"] == "died"] == ["scheduler"]
    assert [line["child"] for line in logs if line["event"] == "started again"] == ["scheduler"]


class Doomed:
    """A service whose start fails, once it is told to."""

    def __init__(self, problem: Exception) -> None:
        self.begun, self.fails = asyncio.Event(), asyncio.Event()
        self._problem = problem

    async def start(self) -> None:
        self.begun.set()
        await self.fails.wait()
        raise self._problem

    async def stop(self) -> None:
        pass


@pytest.mark.parametrize(
    ("problem", "clean"),
    [(StartupProblem("NATS is away"), True), (RuntimeError("a defect"), False)],
)
async def test_what_could_not_start_before_it_was_stopped_has_cut_nothing_off(
    nats_server: NatsServer, problem: Exception, clean: bool
) -> None:
    service = Doomed(problem)
    task = ServiceTask("doomed", lambda _store, _settings: service, Settings(nats=nats_server.url, health_port=None), STOP_S)
    with capture_logs() as logs:
        starting = asyncio.create_task(task.start_or_retry())
        await service.begun.wait()
        starting.cancel()
        service.fails.set()
        await task.stop(STOP_S)
    assert task.clean is clean
    assert any(line["event"] == "died" for line in logs) is not clean


class Endless:
    """A service whose work has no end."""

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        await asyncio.Event().wait()


async def test_work_that_is_cut_off_is_told(nats_server: NatsServer) -> None:
    settings = Settings(nats=nats_server.url, health_port=None)
    task = ServiceTask("endless", lambda _store, _settings: Endless(), settings, STOP_S)
    with capture_logs() as logs:
        assert await task.start_or_retry() is None
        await task.stop(0.1)
    assert not task.clean
    assert [line["role"] for line in logs if line["event"] == CUT_OFF] == ["endless"]
