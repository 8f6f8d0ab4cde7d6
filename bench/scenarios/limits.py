"""What limits cost: jobs of queues that use none, with and without the code that looks for limits, and of those that do.

The jobs go through a store in this process, as they do in a gateway, but without HTTP; the kinds take turns, a block of jobs
each, so that whatever else the machine does hits all of them alike.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager, nullcontext
from statistics import median
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from bench.plan import Bench
from bench.records import draft
from bench.result import Result
from bench.scenarios.stored import opened_store
from bench.traffic import counted, without_limits
from ojs_core.base.ids import new_job_id
from ojs_core.domain import transitions
from ojs_core.domain.job import NOTHING, Job
from ojs_core.domain.queues.config import QueueConfig, Rate
from ojs_core.domain.queues.record import configured
from ojs_core.domain.transitions import JobHolder
from ojs_core.store.store import Store

_BLOCK: Final = 200
_AT_ONCE: Final = 20
_FETCHED: Final = 10
_BASE: Final = "bypassed"
_BLOCK_S: Final = 0.4
"""About how long the blocks of all kinds take: the plan's duration becomes a number of turns."""


class _Kind(NamedTuple):
    """`config` of the queue, `policy` of its jobs; neither limit is ever reached."""

    config: QueueConfig | None = None
    policy: dict[str, Any] | None = None
    bypassed: bool = False


_KINDS: Final = {
    _BASE: _Kind(bypassed=True),
    "unlimited": _Kind(),
    "bounded queue": _Kind(QueueConfig(max_size=1_000_000)),
    "concurrency of a queue": _Kind(QueueConfig(concurrency=1_000)),
    "rate of a queue": _Kind(QueueConfig(rate_limit=Rate(1_000_000, 1_000))),
    "concurrency of a key": _Kind(policy={"key": "bench", "concurrency": 1_000}),
    "rate of a key": _Kind(policy={"key": "bench", "rate": {"limit": 1_000_000, "period": "PT1S"}}),
}


class _Block(NamedTuple):
    cpu_s: float
    seconds: float
    messages: int


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    blocks: defaultdict[str, list[_Block]] = defaultdict(list)
    async with opened_store(bench) as store:
        queues = {name: bench.queue("limits") for name in _KINDS}
        for name, kind in _KINDS.items():
            await _set_up(store, queues[name], kind)
            await _block(store, queues[name], kind)  # makes what the first jobs of a queue need
        for _ in range(max(3, round(bench.plan.duration / _BLOCK_S))):
            for name, kind in _KINDS.items():
                blocks[name].append(await _block(store, queues[name], kind))
    for name, found in blocks.items():
        ratios = [mine.cpu_s / base.cpu_s for mine, base in zip(found, blocks[_BASE], strict=True)]
        yield Result(
            scenario="limits",
            variant=name,
            jobs=_BLOCK * len(found),
            seconds=(seconds := sum(block.seconds for block in found)),
            rate=_BLOCK * len(found) / seconds,
            more={
                "CPU µs/job": median(block.cpu_s for block in found) / _BLOCK * 1e6,
                "times bypassed": median(ratios),
                "messages/job": median(block.messages for block in found) / _BLOCK,
            },
        )
    await bench.reset()


async def _set_up(store: Store, queue: str, kind: _Kind) -> None:
    wanted = kind.config
    if wanted is not None:
        await store.queues.change(queue, lambda old, moment: configured(old, queue, wanted, moment))


async def _block(store: Store, queue: str, kind: _Kind) -> _Block:
    """Push, fetch and acknowledge a block of jobs."""
    policy = NOTHING if kind.policy is None else Raw(msgspec.json.encode(kind.policy))
    bypass: AbstractContextManager[None] = without_limits(store) if kind.bypassed else nullcontext()
    with bypass, counted(store) as sent:
        cpu, began = time.process_time(), time.perf_counter()
        for _ in range(_BLOCK // _AT_ONCE):
            drafts = [replace(draft(new_job_id(store.clock.now()), queue), rate_limit=policy) for _ in range(_AT_ONCE)]
            await asyncio.gather(*(store.jobs.push(one) for one in drafts))
        left = _BLOCK
        while left:
            jobs = await store.dispatcher.fetch([queue], _FETCHED, "bench", None, 1_000)
            left -= len(jobs)
            await asyncio.gather(*(store.jobs.change(job.id, _acked) for job in jobs))
        return _Block(time.process_time() - cpu, time.perf_counter() - began, sent.total())


def _acked(job: Job, moment: transitions.Moment) -> transitions.Transition:
    return transitions.ack(job, NOTHING, JobHolder(), moment)
