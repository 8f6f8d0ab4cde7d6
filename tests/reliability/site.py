"""The system below a run: real processes, and what can be done to them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any, Final

from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE, StoreConfig
from reliability.ledger import Disturbance, Ledger
from support import disks
from support.cluster import NatsCluster
from support.dates import set_date, stepping
from support.earlier import NoSuchVersion, earlier
from support.fleet import Fleet
from support.forked import OJS_NATS
from support.machine import CannotIsolate, Machine
from support.nats import NatsServer
from support.network import GOOD, Condition, Link, Network
from support.processes import free_port, runs
from support.system import System, environment
from support.waiting import eventually

_SMALL_MIB: Final = 64
_DATES: Final = "dates"


class CannotBeDone(Exception):
    """A scenario needs something that this machine doesn't give; the message says what."""


class _Ground:
    """What every system has: a namespace, a ledger, and chance."""

    replicas: int
    """Copies that NATS keeps."""

    def __init__(self, seed: int, namespace: str) -> None:
        self.namespace = namespace
        self.ledger = Ledger()
        self.chance = random.Random(seed)

    @property
    def config(self) -> StoreConfig:
        """The names of what it stores."""
        return StoreConfig(namespace=self.namespace, replicas=self.replicas)

    @asynccontextmanager
    async def fault(self, what: str) -> AsyncIterator[None]:
        """What happens within is a fault, which is over at the end."""
        disturbance = Disturbance(what, time.time(), float("inf"))
        self.ledger.disturbances.append(disturbance)
        try:
            yield
        finally:
            disturbance.ended = time.time()


class Site(_Ground):
    """Two of every service on one nats-server, or on a cluster of three. Processes go by names: `gateway-1`, …, `nats-1`."""

    def __init__(
        self, fleet: Fleet, servers: Sequence[NatsServer], cluster: NatsCluster | None, seed: int, namespace: str
    ) -> None:
        super().__init__(seed, namespace)
        self.fleet = fleet
        self.nodes = cluster
        self.machine: Machine | None = None
        """That of nats-server, if it has one of its own."""
        self.guests: list[Site] = []
        """Systems that stand on its nats-servers, in other namespaces."""
        self.before: Sequence[str] = OJS_NATS
        """How a service of the version before is started; this version where there is none."""
        self._is_guest = False
        self._servers = {f"nats-{number}": server for number, server in enumerate(servers, 1)}
        self.replicas = len(self._servers)

    @classmethod
    @contextmanager
    def started(
        cls,
        folder: Path,
        seed: int,
        *,
        namespace: str = DEFAULT_NAMESPACE,
        cluster: bool = False,
        links: bool = False,
        cable: bool = False,
        each: int = 2,
        program: Sequence[str] = OJS_NATS,
        storage: str | None = None,
        host: Site | None = None,
    ) -> Iterator[Site]:
        """All of it, ready; stopped at the end. Raises CannotBeDone.

        With a `host`, it stands on that system's nats-servers, to which it does nothing. With `links`, everything talks
        through a network that can be made bad; with `cable`, nats-server has a machine of its own, as far as the network
        goes.
        """
        with contextlib.ExitStack() as stack:
            machine = stack.enter_context(_machine()) if cable else None
            network = stack.enter_context(Network()) if links else None
            nodes: NatsCluster | None = None
            if host is not None:
                servers = list(host._servers.values())
            elif cluster:
                nodes = stack.enter_context(NatsCluster(folder / "nats", network))
                servers = nodes.nodes
            else:
                server = NatsServer(folder / "nats", max_file_store=storage or "4GB", machine=machine)
                servers = [stack.enter_context(server)]
            url = ",".join(server.url for server in servers)
            more = (
                *(("--namespace", namespace) if namespace != DEFAULT_NAMESPACE else ()),
                "--replicas",
                str(len(servers)),
                *(("--storage-limit", storage) if storage else ()),
            )
            fleet = stack.enter_context(
                Fleet.started(folder / "services", url, *more, each=each, program=program, network=network)
            )
            site = cls(fleet, servers, nodes, seed, namespace)
            site.machine = machine
            if host is not None:
                site._is_guest = True
                host.guests.append(site)
            yield site

    @property
    def urls(self) -> list[str]:
        """The addresses of the gateways."""
        return self.fleet.urls

    @property
    def nats_url(self) -> str:
        """The addresses of NATS, past all links."""
        return ",".join(server.url for server in self._servers.values())

    @property
    def ways(self) -> dict[str, list[tuple[str, list[Link]]]]:
        """What can be made bad together, in words and as links, by kind; only a cluster has `routes`."""
        clients = [(f"clients to {name}", [link]) for name, link in self.fleet.before_gateways.items()]
        services = [(f"{name} to NATS", links) for name, links in self.fleet.to_nats.items()]
        found = {
            "clients": clients,
            "all clients": [("clients to all gateways", [link for _, links in clients for link in links])],
            "services": services,
            "all services": [("all services to NATS", [link for _, links in services for link in links])],
        }
        if self.nodes is not None:
            routes = self.nodes.links
            found["routes"] = [
                (f"routes of {' and '.join(ends)}", [link for pair, link in routes.items() if set(ends) <= set(pair)])
                for ends in [("n1",), ("n2",), ("n3",), *combinations(("n1", "n2", "n3"), 2)]
            ]
        return found

    @asynccontextmanager
    async def fault_of(self, what: str, names: Iterable[str]) -> AsyncIterator[None]:
        """As `fault`, of some processes: guests feel it if it is a nats-server's."""
        hurt = self.guests if any(name in self._servers for name in names) else []
        async with contextlib.AsyncExitStack() as stack:
            for site in (self, *hurt):
                await stack.enter_async_context(site.fault(what))
            yield

    @property
    def services(self) -> list[str]:
        return self.fleet.names

    @property
    def servers(self) -> list[str]:
        """The nats-servers to which something may be done."""
        return [] if self._is_guest else list(self._servers)

    @property
    def ended(self) -> list[str]:
        """Services that don't run."""
        return [name for name in self.services if self.fleet.running[name].process.poll() is not None]

    @property
    def tracebacks(self) -> list[str]:
        return self.fleet.tracebacks

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The log lines of one event."""
        return self.fleet.logged(event)

    def pid(self, name: str) -> int:
        return self._servers[name].pid if name in self._servers else self.fleet.running[name].pid

    def of(self, *kinds: str) -> list[str]:
        """The processes of some kinds."""
        return [name for name in (*self.services, *self.servers) if name.rpartition("-")[0] in kinds]

    async def leader(self, stream: str) -> str:
        """The nats-server that leads a stream, or any while none does."""
        assert self.nodes is not None
        found = await asyncio.to_thread(self.nodes.leader, stream)
        return f"nats-{found[1:]}" if found else self.chance.choice(self.servers)

    async def until_whole(self) -> None:
        """Wait until all copies of all streams are up to date; at once without a cluster."""
        if self.nodes is not None:
            await asyncio.to_thread(self.nodes.until_whole)

    async def end(self, names: Iterable[str], number: signal.Signals = signal.SIGKILL) -> None:
        """End processes at one moment; returns when they are gone."""
        chosen = list(names)
        for name in chosen:
            os.kill(self.pid(name), number)
        await asyncio.gather(*(asyncio.to_thread(self._gone, name, number) for name in chosen))

    async def start(self, names: Iterable[str]) -> None:
        """Start them again; returns when they are ready."""
        chosen = list(names)
        await asyncio.gather(*(asyncio.to_thread(self._servers[name].start) for name in chosen if name in self._servers))
        await asyncio.gather(*(self.fleet.replace(name) for name in chosen if name not in self._servers))

    async def away(self, names: Sequence[str], seconds: float, number: signal.Signals = signal.SIGKILL) -> None:
        """One fault: some processes end, are away for a time, and come back."""
        async with self.fault_of(f"{number.name} {' '.join(names)}", names):
            await self.end(names, number)
            await asyncio.sleep(seconds)
            await self.start(names)

    async def paused(self, names: Sequence[str], seconds: float) -> None:
        """One fault: some processes stand still for a time."""
        async with self.fault_of(f"SIGSTOP {' '.join(names)}", names):
            pids = [self.pid(name) for name in names]
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            try:
                await asyncio.sleep(seconds)
            finally:
                for pid in pids:
                    os.kill(pid, signal.SIGCONT)

    async def bad(self, what: str, links: Sequence[Link], condition: Condition, seconds: float) -> None:
        """One fault: some links are in a condition for a time."""
        of_servers = self.nodes is not None and not set(self.nodes.links.values()).isdisjoint(links)
        async with self.fault_of(f"{condition.name}: {what}", self.servers if of_servers else ()):
            for link in links:
                link.become(condition)
            try:
                await asyncio.sleep(seconds)
            finally:
                for link in links:
                    link.become(GOOD)

    async def replaced(self, name: str, what: str, program: Sequence[str]) -> None:
        """One fault: a service ends, and another version of it takes its place."""
        async with self.fault(f"{name} is replaced by {what}"):
            await self.end([name], signal.SIGTERM)
            self.fleet.programs[name] = program
            await self.start([name])

    async def unplugged(self, seconds: float) -> None:
        """One fault: the cable of nats-server's machine is pulled for a time."""
        assert self.machine is not None
        async with self.fault("the cable of nats-server is pulled"):
            with self.machine.unplugged():
                await asyncio.sleep(seconds)

    async def larger(self, max_file_store: str) -> None:
        """Give nats-server more storage, and say so to the services: all of them start again."""
        for server in self._servers.values():
            server.max_file_store = max_file_store
            await asyncio.to_thread(server.restart)
        self.fleet.arguments = (*self.fleet.arguments, "--storage-limit", max_file_store)
        await self.end(self.services, signal.SIGTERM)
        await self.start(self.services)

    def _gone(self, name: str, number: signal.Signals) -> None:
        process = self._servers.get(name) or self.fleet.running[name]
        (process.kill if number is signal.SIGKILL else process.stop)()


class Dev(_Ground):
    """`ojs-nats dev` on ports that stay; it starts its processes again by itself."""

    replicas = 1

    def __init__(self, folder: Path, seed: int, namespace: str, env: Mapping[str, str] | None = None) -> None:
        super().__init__(seed, namespace)
        self.folder = folder
        self._env = env
        self._ports = (free_port(), free_port())
        self._started: list[System] = []

    @classmethod
    @contextmanager
    def started(
        cls, folder: Path, seed: int, *, namespace: str = DEFAULT_NAMESPACE, env: Mapping[str, str] | None = None
    ) -> Iterator[Dev]:
        """Ready; stopped at the end."""
        dev = cls(folder / "dev", seed, namespace, env)
        try:
            dev.start()
            yield dev
        finally:
            left = dev.pids
            dev.system.stop()
            for pid in filter(runs, left):
                os.kill(pid, signal.SIGKILL)

    @property
    def system(self) -> System:
        """The one that runs, or ran last."""
        return self._started[-1]

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def urls(self) -> list[str]:
        return [f"http://127.0.0.1:{self._ports[0]}"]

    @property
    def nats_url(self) -> str:
        return f"nats://127.0.0.1:{self._ports[1]}"

    @property
    def pids(self) -> list[int]:
        """The processes below `dev`, as far as it has said so."""
        return list(self.system.children.values()) if self.system.run_file.exists() else []

    @property
    def ended(self) -> list[str]:
        return [] if self.system.process.poll() is None else ["dev"]

    @property
    def tracebacks(self) -> list[str]:
        return [line for line in self.system.output.splitlines() if '"exception"' in line or line.startswith("Traceback")]

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The log lines of one event, of all times."""
        return self.system.events(event)

    def start(self) -> None:
        """Start it, once more; returns when everything runs."""
        port, nats_port = map(str, self._ports)
        options = ("--namespace", self.namespace, "--port", port, "--nats-port", nats_port)
        self._started.append(System(self.folder, *options, env=self._env))
        self.system.wait_ready()

    async def again(self) -> None:
        await asyncio.to_thread(self.start)

    async def end(self, number: signal.Signals, *, tree: bool) -> None:
        """End `dev`, alone or with everything below it; returns when nothing of it runs any more."""
        below = self.pids
        if tree:
            for pid in filter(runs, below):
                os.kill(pid, number)
        await asyncio.to_thread(self.system.kill if number is signal.SIGKILL else self.system.stop)
        with contextlib.suppress(AssertionError):
            await eventually(lambda: not any(map(runs, below)))
        for pid in filter(runs, below):
            self.ledger.failures.append(f"process {pid} outlived dev")
            os.kill(pid, signal.SIGKILL)

    def set_date(self, child: str, seconds: int) -> None:
        """Let a service's machine be so many seconds ahead; only of one that was started by `stepped`."""
        set_date(self.folder / _DATES, self.system.children[child], seconds)

    async def end_child(self, name: str) -> None:
        """SIGKILL one process below it; returns when it is back."""
        pid = self.system.kill_child(name)
        await asyncio.to_thread(self.system.wait_restarted, name, pid)


@contextmanager
def _machine() -> Iterator[Machine]:
    """A network namespace. Raises CannotBeDone."""
    try:
        machine = Machine()
    except CannotIsolate as error:
        raise CannotBeDone(f"it needs a network namespace, which takes root: {error}") from None
    with machine:
        yield machine


@contextmanager
def upgraded(folder: Path, seed: int, *, commit: str, namespace: str = DEFAULT_NAMESPACE) -> Iterator[Site]:
    """Two of each service of an earlier version. Raises CannotBeDone."""
    try:
        program = earlier(commit, folder / "before")
    except NoSuchVersion as error:
        raise CannotBeDone(str(error)) from None
    with Site.started(folder, seed, namespace=namespace, program=program) as site:
        site.before = program
        yield site


@contextmanager
def stepped(folder: Path, seed: int, *, namespace: str = DEFAULT_NAMESPACE) -> Iterator[Dev]:
    """`ojs-nats dev` whose services are told the date of their machine by files; nats-server's is right."""
    dates = folder / "dev" / _DATES
    dates.mkdir(parents=True)
    with Dev.started(folder, seed, namespace=namespace, env=environment(**stepping(dates))) as dev:
        yield dev


@contextmanager
def small_disk(folder: Path, seed: int, *, namespace: str = DEFAULT_NAMESPACE) -> Iterator[Dev]:
    """`ojs-nats dev` whose data are on a disk of their own, and a small one. Raises CannotBeDone."""
    try:
        with disks.small_disk(folder / "dev" / "data", _SMALL_MIB), Dev.started(folder, seed, namespace=namespace) as dev:
            yield dev
    except disks.CannotMount:
        raise CannotBeDone("it needs to mount a small disk, which takes root") from None
