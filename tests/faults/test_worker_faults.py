"""Workers that are killed, frozen, restarted and cut off drain a queue: no job is left, none runs twice by that.

What has happened is judged by a ledger outside of the server: each run writes there when it begins and when it is done.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from ojs_nats import App, Retry
from ojs_nats.jobs import JobRequest
from ojs_nats.options import Options
from support.examples import amount, examples
from support.network import BAD, GOOD, Link, Network
from support.python_worker import WorkerProcess, exits, installed
from support.system import Services
from support.waiting import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

WAVE: Final = 40 if amount() != "all" else 250
"""Jobs that are pushed at once, and then none for a while: a worker that is frozen as it waits has a fetch that is answered."""
WAVES: Final = examples(20, least=10)
JOBS: Final = WAVE * WAVES
WAVES_EVERY_S: Final = 3.0
PATIENCE_S: Final = 150.0
"""From the last fault until every job is done: a dead worker is known after 30 s. Leases are of 30 minutes."""
OPTIONS: Final[Options] = {"queue": "ledger", "retry": Retry(20, initial_interval=0.1, max_interval=1.0)}


class Run(NamedTuple):
    """One execution of a job, as the ledger has it."""

    number: int
    attempt: int
    pid: int


class Desk:
    """A place for one worker after the other, whose way to the server has a link of its own."""

    def __init__(self, folder: Path, name: str, scheme: str, link: Link) -> None:
        self.killed: set[int] = set()
        """The processes that were."""
        self._folder = folder
        self._name = name
        self._url = f"{scheme}://127.0.0.1:{link.port}"
        self._link = link
        self._started = 0
        self.worker = self._new()

    def _new(self) -> WorkerProcess:
        self._started += 1
        label = f"{self._name}-{self._started}"
        return WorkerProcess.started(self._folder, "ledger", "--concurrency", "10", url=self._url, label=label)

    async def is_killed(self, _chance: random.Random) -> None:
        """SIGKILL; another one starts."""
        self.killed.add(self.worker.pid)
        self.worker.end()
        self.worker = await asyncio.to_thread(self._new)

    async def is_frozen(self, chance: random.Random) -> None:
        """For longer than a fetch waits for its answer, and shorter than the server's idea of a dead worker."""
        self.worker.signal(signal.SIGSTOP)
        await asyncio.sleep(chance.uniform(14, 20))
        self.worker.signal(signal.SIGCONT)

    async def is_restarted(self, _chance: random.Random) -> None:
        """As a deployment does it."""
        await asyncio.to_thread(self._ends)
        self.worker = await asyncio.to_thread(self._new)

    async def is_cut_off(self, chance: random.Random) -> None:
        """By a network that is bad in one way or another."""
        self._link.become(chance.choice(BAD))
        await asyncio.sleep(chance.uniform(3, 8))
        self._link.become(GOOD)

    def _ends(self) -> None:
        with exits(self.worker):
            self.worker.signal(signal.SIGTERM)


Fault = Callable[[Desk, random.Random], Coroutine[Any, Any, None]]
FAULTS: Final[dict[str, Fault]] = {
    "kills": Desk.is_killed,
    "freezes": Desk.is_frozen,
    "restarts": Desk.is_restarted,
    "cuts": Desk.is_cut_off,
}
DESKS: Final = 4
"""Two whose workers speak HTTP, and two whose workers speak NATS: in turns."""
SPREAD: Final = [("kills", "cuts")] * 2 + [("freezes", "restarts")] * 2
"""Each way to the server meets each fault, and a worker that dies does so before the longest of them are over."""
KINDS: Final = [SPREAD] if amount() != "all" else [[("kills",)] * DESKS, [tuple(FAULTS)] * DESKS]


@contextmanager
def four_desks(system: Services, folder: Path) -> Iterator[list[Desk]]:
    """At each of them a worker."""
    installed("ledger", folder)
    desks: list[Desk] = []
    with Network() as network:
        try:
            for number, (scheme, url) in enumerate([("http", system.url), ("nats", system.nats_url)] * (DESKS // 2)):
                link = network.link(int(url.rpartition(":")[2]))
                desks.append(Desk(folder, f"worker-{number}", scheme, link))
            yield desks
        finally:
            for desk in desks:
                desk.worker.end()


async def disturb(desk: Desk, faults: list[Fault], rounds: int, chance: random.Random) -> None:
    """Every fault in every round, in an order of the round's own."""
    for _ in range(rounds):
        for fault in chance.sample(faults, len(faults)):
            await asyncio.sleep(chance.uniform(1, 4))
            await fault(desk, chance)


async def restart_gateway(system: Services, chance: random.Random, times: int) -> None:
    """Ended by SIGKILL or SIGTERM, and started again."""
    for _ in range(times):
        await asyncio.sleep(chance.uniform(4, 12))
        if chance.random() < 0.5:
            await asyncio.to_thread(system.stop, "gateway")
        await asyncio.to_thread(system.restart, "gateway")


def in_ledger(folder: Path, word: str) -> list[Run]:
    """The runs that have noted this."""
    lines = [line.split() for line in (folder / "notes").read_text(encoding="utf-8").splitlines()]
    return [Run(int(number), int(attempt), int(pid)) for number, attempt, said, pid in lines if said == word]


def run_again(begun: list[Run]) -> list[Run]:
    """Each run that was followed by another one of the same job."""
    return [run for run, following in pairwise(sorted(begun)) if run.number == following.number]


def was_taken_back(system: Services, job_id: str, attempt: int) -> bool:
    """Whether the log says that the server ended this attempt: not the worker by its report."""
    timeline = system.call("GET", f"/admin/jobs/{job_id}")["timeline"]
    ends = [entry["event"] for entry in timeline if entry["attempt"] == attempt and entry.get("from") == "active"]
    return ends != [] and not {"acked", "failed"} & set(ends)


@pytest.mark.parametrize("kinds", KINDS, ids=lambda kinds: "-".join(map("+".join, dict.fromkeys(kinds))))
async def test_workers_in_trouble_drain_a_queue(
    system: Services, tmp_path: Path, seed: int, kinds: list[tuple[str, ...]]
) -> None:
    """`kinds` are the faults of each desk."""
    chance = random.Random(seed)
    with four_desks(system, tmp_path) as desks:
        async with asyncio.TaskGroup() as group:
            pushing = group.create_task(push(system))
            group.create_task(restart_gateway(system, chance, 3 if any(len(faults) > 1 for faults in kinds) else 0))
            for desk, faults in zip(desks, kinds, strict=True):
                rounds = 4 // len(faults) if amount() == "all" else 1
                chosen = [FAULTS[fault] for fault in faults]
                group.create_task(disturb(desk, chosen, rounds, random.Random(chance.random())))
        ids = pushing.result()

        def left() -> list[Any]:
            return [job for state in ("active", "available", "retryable") for job in found(system, state)]

        def drained() -> bool:
            return bool(system.call("GET", "/admin/stats")["jobs"].get("completed") == JOBS)

        try:
            await eventually(drained, PATIENCE_S, every=0.5)
        except AssertionError:
            raise AssertionError(left()) from None

    begun, done = in_ledger(tmp_path, "begins"), in_ledger(tmp_path, "done")
    assert {run.number for run in done} == set(range(JOBS)), "each has its effect"
    assert len({run[:2] for run in begun}) == len(begun), "each attempt runs once"
    again = run_again(begun)
    wrong = [run for run in again if not was_taken_back(system, ids[run.number], run.attempt)]
    assert wrong == [], "the server has ended an attempt before the next one runs"
    killed = set[int]().union(*(desk.killed for desk in desks))
    living = [run for run in again if run.pid not in killed]
    print(f"{len(begun)} runs, {len(again)} again, {len(living)} of them by workers that weren't killed")  # noqa: T201
    assert killed


async def push(system: Services) -> list[str]:
    """All jobs, in waves; returns their ids."""
    ids: list[str] = []
    async with App(system.url) as app:
        for first in range(0, JOBS, WAVE):
            new = [JobRequest[None]("ledger.effect", (number,), OPTIONS) for number in range(first, first + WAVE)]
            ids += [handle.id for handle in await app.client.push_all(new)]
            await asyncio.sleep(WAVES_EVERY_S)
    return ids


def found(system: Services, state: str) -> list[Any]:
    """Some of the jobs in a state."""
    return [
        {name: job.get(name) for name in ("id", "args", "state", "attempt", "worker_id", "started_at")}
        for job in system.call("GET", f"/jobs?state={state}&limit=5")["jobs"]
    ]
