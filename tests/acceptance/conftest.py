from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType

import aiohttp
import pytest

from support import forked
from support.described import Described
from support.guarded import Guarded
from support.nats import NatsServer
from support.python_worker import WorkerProcess, imported, installed
from support.system import TOGETHER, KeptConnection, Services, System


@pytest.fixture(scope="session", autouse=True)
def _can_fork() -> None:
    """No test is counted what the server of forks takes to import the product."""
    forked.ready()


class Shared:
    """The system of all tests of this process, which runs from the first one that needs it to the last one in this folder."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._running: System | None = None

    def system(self, folders: pytest.TempPathFactory) -> System:
        """Return it; it is started if it doesn't run."""
        if self._running is None:
            started = System.started(folders.mktemp("system"), TOGETHER)
            self._running = self._stack.enter_context(started)
            self._running.observe = Described.by(self._running.url).check
            self._running.way = way = KeptConnection()
            self._stack.callback(way.close)
        return self._running

    def stop(self) -> None:
        """Stop it, if it runs: an idle one takes three hundredths of a processor from the tests of other folders."""
        self._running = None
        self._stack.close()


_SHARED = pytest.StashKey[Shared]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_SHARED] = Shared()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Stop the shared system behind the last test of this folder, once its fixtures are gone."""
    try:
        yield
    finally:
        if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
            item.config.stash[_SHARED].stop()


@pytest.fixture(scope="module")
def _shared_system(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> System:
    return pytestconfig.stash[_SHARED].system(tmp_path_factory)


@pytest.fixture
def system(_shared_system: System) -> System:
    """The whole server, emptied. What it answers to `request` is held to its own description.

    It is shared: tests that stop it use `own_system`, those that kill a service `own_services`.
    """
    _shared_system.reset()
    return _shared_system


@pytest.fixture
def own_system(tmp_path: Path) -> Iterator[System]:
    """A whole server of the test's own, which it may stop or set up otherwise."""
    with System.started(tmp_path / "own", TOGETHER) as system:
        yield system


@pytest.fixture(scope="module")
def shared_nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """A NATS server for the processes that a module starts."""
    with NatsServer(tmp_path_factory.mktemp("nats")) as server:
        yield server


@pytest.fixture
def own_services(tmp_path: Path) -> Iterator[Services]:
    """A gateway of the test's own, which it may kill, with the services that its jobs and events need."""
    with Services.started(tmp_path / "own", "gateway", "reaper", "projector") as services:
        yield services


@pytest.fixture
async def http(system: System) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the shared system's API: `await http.post("/ojs/v1/jobs", json=…)`."""
    async with aiohttp.ClientSession(system.url) as session:
        yield session


@pytest.fixture
def module() -> str:
    """The module of tests/fixtures/python whose handlers workers have, unless a file of tests has one of its own."""
    return "handlers"


@pytest.fixture
def folder(module: str, tmp_path: Path) -> Path:
    """Where Python workers run: it has the module of their handlers, and gets their notes."""
    installed(module, tmp_path)
    return tmp_path


@pytest.fixture
def address(system: System, request: pytest.FixtureRequest) -> str:
    """The shared system's for Python clients and workers: by HTTP, unless a test is parametrized with `nats`."""
    return system.nats_url if getattr(request, "param", "http") == "nats" else system.url


@pytest.fixture
async def jobs(address: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ModuleType]:
    """The module `handlers`, to push its jobs to the shared system."""
    monkeypatch.setenv("OJS_URL", address)
    module = imported("handlers", monkeypatch)
    async with module.app:
        yield module


@pytest.fixture
def start(address: str, module: str, folder: Path) -> Iterator[Callable[..., WorkerProcess]]:
    """Starts a worker of `module` for the shared system, or at another `url`, with more arguments of `ojs-nats worker`."""
    begun: list[WorkerProcess] = []

    def start(*arguments: str, url: str = address) -> WorkerProcess:
        begun.append(WorkerProcess.started(folder, module, *arguments, url=url, label=f"worker-{len(begun)}"))
        return begun[-1]

    yield start
    for worker in begun:
        worker.end()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    """A system that asks for keys, for the tests of a module."""
    with Guarded.started(tmp_path_factory.mktemp("guarded")) as started:
        yield started


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of a module's tests that hypothesis calls, which are no coroutines."""
    with asyncio.Runner() as runner:
        yield runner
