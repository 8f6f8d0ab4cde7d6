"""The index over many records: how fast it is built from nothing, and how soon it answers."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from itertools import cycle
from pathlib import Path
from time import perf_counter
from typing import Final

import msgspec
from msgspec import Struct, field

from bench.client import Target
from bench.load import Looper, Phase, drive
from bench.messages import Requests
from bench.plan import Bench
from bench.records import QUEUES, TYPES, store_records
from bench.result import Result
from bench.scenarios.outcome import outcome
from bench.scenarios.stored import caught_up, opened_store
from ojs_nats.queries import Queries
from ojs_nats.store import Store
from ojs_projector import Projector

__all__ = ["run"]

_CONNECTIONS: Final = 4
_DEEPEST: Final = 4
_LIMIT_S: Final = 120.0
_ASKED: Final = 10
_STATES: Final = ("completed", "discarded", "cancelled", "scheduled")

_ASKED_FOR: Final = {
    "queue stats": [f"/ojs/v1/queues/{queue}/stats" for queue in QUEUES],
    "job lists": [
        "/ojs/v1/jobs?limit=50",
        *(f"/ojs/v1/jobs?limit=50&state={state}" for state in _STATES),
        *(f"/ojs/v1/jobs?limit=50&queue={queue}&type={job_type}" for queue in QUEUES[:2] for job_type in TYPES),
    ],
    "dead letters": ["/ojs/v1/dead-letter?limit=50", *(f"/ojs/v1/dead-letter?limit=50&queue={queue}" for queue in QUEUES[:3])],
}


class _Pagination(Struct):
    total: int = 1
    next_cursor: str | None = None


class _Page(Struct):
    pagination: _Pagination = field(default_factory=_Pagination)


_decode: Final = msgspec.json.Decoder(_Page).decode


class _Reader(Looper):
    """Asks for what an iterator names, and for the next pages of what has some."""

    def __init__(self, target: Target, phase: Phase, requests: Requests, paths: Iterator[str]) -> None:
        super().__init__(target, phase)
        self._requests = requests
        self._paths = paths
        self._path = ""
        self._next: str | None = None
        self._depth = 0

    def next_request(self) -> bytes:
        if self._next is not None and self._depth < _DEEPEST:
            self._depth += 1
            return self._requests.get(f"{self._path}&cursor={self._next}")
        self._path, self._depth = next(self._paths), 0
        return self._requests.get(self._path)

    def taken(self, body: bytes, now: float) -> None:
        page = _decode(body).pagination
        self._next = page.next_cursor
        self.phase.count(now, now - self.sent)
        if not page.total:
            self.phase.errors["empty page"] += 1

    def gave_up(self) -> None:
        self._next = None


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    number = bench.plan.records
    async with opened_store(bench) as store:
        await store_records(store, number)
        await caught_up(store)
        yield await _rebuilt(bench, store, number)
    for name, paths in _ASKED_FOR.items():
        phase = Phase()
        shared = cycle(paths)
        readers = [_Reader(bench.target, phase, bench.requests, shared) for _ in range(_CONNECTIONS)]
        spent = await drive(phase, readers, seconds=bench.plan.duration, warmup=bench.plan.warmup, meter=bench.meter)
        yield outcome("index", f"{name} of {number:,} jobs", phase, spent, rate=True)
    await bench.reset()


async def _rebuilt(bench: Bench, store: Store, number: int) -> Result:
    """One more projector, in this process, with an empty folder; the system's own goes on relaying events."""
    before = bench.meter.read()
    progress: set[float] = set()
    errors: dict[str, int] = {}
    with tempfile.TemporaryDirectory(prefix="ojs-bench-") as folder:
        projector = Projector(store, Path(folder))
        begun = perf_counter()
        await projector.start()
        try:
            while (status := projector.status()).partial and perf_counter() - begun < _LIMIT_S:
                progress.add(status.progress)
                await asyncio.sleep(0.001)
            took = perf_counter() - begun
            # Both answer, now one, now the other.
            found = [(await Queries(store).totals()) for _ in range(_ASKED)]
        finally:
            await projector.stop()
    if wrong := sum(totals.counts.total != number or totals.partial for totals in found):
        errors["wrong totals"] = wrong
    if len(progress) < 2:
        errors["no progress was shown"] = 1
    return Result(
        scenario="index",
        variant=f"built from nothing, {number:,} records",
        jobs=number,
        seconds=took,
        rate=number / took,
        more={"seconds": took, "steps of progress": len(progress)},
        errors=errors,
        spent=bench.meter.spent(before),
    )
