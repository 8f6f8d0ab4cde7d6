"""Lists and counts over a large population: every filter, every order, with and without a match, at rest and in motion."""

from __future__ import annotations

import asyncio
import itertools
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from time import perf_counter
from typing import Final
from urllib.parse import urlencode

from bench.disk import read_once
from bench.load import Phase, drive
from bench.messages import timestamp
from bench.plan import Bench
from bench.population import ALIKE, ERRORS, QUEUES, TAGS, TYPES
from bench.reader import PAGE, Reader
from bench.result import Result
from bench.scenarios.index import REBUILT, rebuilt
from bench.scenarios.outcome import outcome
from bench.scenarios.projector import Lives
from bench.scenarios.stored import filled, opened_store
from ojs_core.store.store import Store

_MOVES: Final = 1_000.0
"""Transitions a second, while lists are read."""
_SORTS: Final = [
    {"sort": sort, "order": order} for sort in ("created_at", "priority", "scheduled_at") for order in ("desc", "asc")
]
_STATES: Final = ("completed", "discarded", "scheduled", "available")
_DEEP: Final = 40
_LIMIT_S: Final = 60.0
_SLOW_S: Final = 0.1
"""What takes longer is named."""

Query = dict[str, str]

VARIANTS: Final = ("one filter", "two filters", "from end to end", "counts", "while jobs move", REBUILT)


def _filters(now: int) -> list[Query]:
    """One filter each: what many, few and no jobs have."""
    day = 86_400_000
    return [
        {},
        *({"state": state} for state in _STATES),
        *({"queue": queue} for queue in (ALIKE, QUEUES[0], QUEUES[900], "none")),
        *({"type": kind} for kind in (ALIKE, TYPES[0], TYPES[44], "mail.*", "e*", "none")),
        *({"tag": tag} for tag in (ALIKE, TAGS[0], "rare", "none")),
        *({"error_type": error} for error in (ERRORS[0], ERRORS[4], "none")),
        *({"worker": worker} for worker in ("worker-0", "worker-77", "none")),
        *({"meta.tenant": tenant} for tenant in (ALIKE, "tenant-1", "tenant-90", "none")),
        {"since": timestamp(now - day)},
        {"since": timestamp(now - 4 * day), "until": timestamp(now - 3 * day)},
        {"since": timestamp(now + day)},
    ]


def _pairs(now: int) -> list[Query]:
    """What operators ask for together, and pairs that exclude each other."""
    second = [one for one in _filters(now) if one and "state" not in one]
    pairs = [{**one, "state": state} for one in second for state in _STATES]
    pairs += [{"queue": queue, "type": kind} for queue in (ALIKE, QUEUES[0]) for kind in (ALIKE, TYPES[0], "mail.*")]
    pairs += [{"queue": queue, "tag": tag} for queue in (ALIKE, QUEUES[0]) for tag in (ALIKE, TAGS[0], "rare")]
    pairs += [
        {"tag": TAGS[0], "meta.tenant": ALIKE},
        {"worker": "worker-0", "tag": TAGS[0]},
    ]
    pairs += [{"meta.tenant": "tenant-1", "type": TYPES[3]}, {"queue": ALIKE, "worker": "worker-0", "state": "discarded"}]
    return pairs


def _lists(queries: Sequence[Query], sorts: Sequence[Mapping[str, str]]) -> list[str]:
    return [f"/ojs/v1/jobs?limit={PAGE}&{urlencode({**query, **sort})}" for query in queries for sort in sorts]


def _counts() -> list[str]:
    queues = (ALIKE, QUEUES[0], QUEUES[900])
    return [
        *(f"/ojs/v1/queues/{queue}/stats" for queue in queues),
        "/ojs/v1/admin/stats",
        "/ojs/v1/queues?limit=200",
        "/ojs/v1/admin/queues",
        "/ojs/v1/dead-letter?limit=50",
        f"/ojs/v1/dead-letter?limit=50&queue={ALIKE}",
        "/ojs/v1/dead-letter/stats",
    ]


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    number = bench.plan.records
    async with opened_store(bench) as store:
        now = store.clock.now()
        yield await filled(bench, store, now, "lists")
        singles, pairs = _lists(_filters(now), _SORTS), _lists(_pairs(now), _SORTS[:2])
        await asyncio.to_thread(read_once, None if bench.data is None else bench.data / "projector")
        ends = _lists([{}, {"state": "completed"}, {"queue": ALIKE}, {"tag": ALIKE}, {"type": "mail.*"}], _SORTS)
        yield await _read(bench, VARIANTS[0], singles, depth=1)
        yield await _read(bench, VARIANTS[1], pairs, depth=1)
        yield await _read(bench, VARIANTS[2], [*ends, *(f"{path}&offset=5000" for path in ends)], depth=_DEEP)
        yield await _read(bench, VARIANTS[3], _counts(), depth=0, seconds=bench.plan.duration)
        yield await rebuilt(bench, store, number, "lists")
        yield await _read_while_moving(bench, store, [*singles[::2], *pairs[::2]])
    began = perf_counter()
    if await bench.reset():
        yield Result(scenario="lists", variant="reset", jobs=number, seconds=perf_counter() - began)


async def _read(bench: Bench, variant: str, paths: Sequence[str], *, depth: int, seconds: float | None = None) -> Result:
    """Read each once, with `depth` further pages; with `seconds`, again and again for so long. One connection."""
    phase = Phase()
    asked: Iterator[str] = itertools.cycle(paths) if seconds is not None else iter(paths)
    reader = Reader(bench.target, phase, bench.requests, asked, depth=depth, may_be_empty=True)
    spent = await drive(phase, [reader], seconds=seconds or _LIMIT_S, meter=bench.meter)
    took_s, path = reader.slowest
    if took_s > _SLOW_S:
        print(f"  {took_s * 1000:,.0f} ms: {path}", file=sys.stderr)
    more = {"short pages": float(reader.partial), "without total": float(reader.untold)}
    return outcome("lists", variant, phase, spent, rate=True, more=more)


async def _read_while_moving(bench: Bench, store: Store, paths: Sequence[str]) -> Result:
    lives = Phase()
    seconds = bench.plan.duration * 2
    moving = asyncio.create_task(Lives(store, lives, bench.queue("moving")).run(_MOVES, seconds))
    try:
        found = await _read(bench, VARIANTS[4], paths, depth=1, seconds=seconds)
    finally:
        moving.cancel()
        await asyncio.gather(moving, return_exceptions=True)
    return found
