"""Whether the projector keeps up with many transitions a second, stored without the HTTP API in front."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from time import perf_counter
from typing import Final

from msgspec import Raw

from bench.load import Phase
from bench.plan import Bench, ServerRefused
from bench.result import Result
from bench.scenarios.outcome import outcome
from bench.stats import quantiles
from ojs_engine.base.errors import OjsError
from ojs_engine.base.ids import new_job_id
from ojs_engine.domain import transitions
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.transitions import JobHolder, Moment, Transition
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store
from ojs_features.all import STORE_FEATURES
from ojs_index.asking.client import Queries

_AT_ONCE: Final = 50
_STEPS: Final = 3
_LOOK_S: Final = 0.05
_CAUGHT_UP_S: Final = 600.0
_PAUSE_S: Final = 0.2
_ANYONE: Final = JobHolder()
_Stored = tuple[Job, int]


class Lives:
    """Jobs that are pushed, claimed and acknowledged, fifty side by side; `phase` counts their transitions."""

    def __init__(self, store: Store, phase: Phase, queue: str) -> None:
        self._store = store
        self._phase = phase
        self._queue = queue

    async def run(self, rate: float, seconds: float) -> None:
        """Begin as many lives as make `rate` transitions a second, and see all of them to their end."""
        step_s = _AT_ONCE / rate
        begun = perf_counter()
        self._phase.open_window(seconds)
        running: set[asyncio.Task[None]] = set()
        for number in range(round(seconds / step_s / _STEPS)):
            await asyncio.sleep(max(0.0, begun + number * _STEPS * step_s - perf_counter()))
            task = asyncio.create_task(self._live(step_s))
            running.add(task)
            task.add_done_callback(running.discard)
        await asyncio.gather(*running)
        self._phase.finish()

    async def _live(self, step_s: float) -> None:
        now = self._store.clock.now()
        stored = [(_draft(new_job_id(now), self._queue), 0) for _ in range(_AT_ONCE)]
        for step in (transitions.push, _claimed, _acked):
            stored = await self._all(stored, step)
            await asyncio.sleep(step_s)

    async def _all(self, stored: Sequence[_Stored], step: Callable[[Job, Moment], Transition]) -> list[_Stored]:
        """One transition for each of some jobs, in one write; those that were stored, with their sequences."""
        commits = []
        for job, sequence in stored:
            moment = self._store.clock.moment()
            commits.append((step(job, moment), sequence, moment.op))
        begun = perf_counter()
        outcomes = await self._store.committer.commit_all(commits)
        done: list[_Stored] = []
        for (transition, _, _), found in zip(commits, outcomes, strict=True):
            if isinstance(found, int):
                done.append((transition.job, found))
            else:
                self._phase.errors[type(found).__name__] += 1
        now = perf_counter()
        self._phase.count(now, now - begun, len(done))
        return done


def _draft(job_id: str, queue: str) -> Job:
    return Job(id=job_id, type="bench.job", args=Raw(b"[1]"), state=State.AVAILABLE, queue=queue)


def _claimed(job: Job, moment: Moment) -> Transition:
    return transitions.claim(job, "bench", None, moment)


def _acked(job: Job, moment: Moment) -> Transition:
    return transitions.ack(job, NOTHING, _ANYONE, moment)


class _Watch:
    """How far the projector is behind, looked at again and again (seconds)."""

    def __init__(self, store: Store) -> None:
        self._queries = Queries(store)
        self.lags: list[float] = []
        self.answers: list[float] = []
        self.refused = 0

    async def run(self) -> None:
        """Look, and ask, side by side: a question waits until the projector has come to where it was asked."""
        await asyncio.gather(self._again_and_again(self._look), self._again_and_again(self._ask))

    async def _look(self) -> None:
        self.lags.append((await self._queries.status()).lag_ms / 1_000)

    async def _ask(self) -> None:
        begun = perf_counter()
        await self._queries.queue("bench")
        self.answers.append(perf_counter() - begun)

    async def _again_and_again(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except OjsError:
                self.refused += 1
            await asyncio.sleep(_LOOK_S)


async def _caught_up(store: Store) -> float:
    """Wait until the projector has indexed and relayed all that is stored; returns the seconds. Raises ServerRefused."""
    began = perf_counter()
    queries = Queries(store)
    while True:
        try:
            await queries.until_relayed()
            if not (await queries.totals()).partial:
                return perf_counter() - began
        except OjsError as error:
            if perf_counter() - began > _CAUGHT_UP_S:
                raise ServerRefused(f"the projector does not catch up: {error.message}") from None
        await asyncio.sleep(_PAUSE_S)


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    plan = bench.plan
    phase = Phase()
    assert bench.nats is not None, "this scenario is left out when the system's NATS isn't known"
    store = await Store.open(bench.nats, StoreConfig(), role="bench", features=STORE_FEATURES)
    try:
        await _caught_up(store)
        watch = _Watch(store)
        watching = asyncio.create_task(watch.run())
        before = bench.meter.read()
        try:
            await Lives(store, phase, bench.queue("projector")).run(plan.transitions, plan.sustained)
        finally:
            watching.cancel()
        spent = bench.meter.spent(before)
        behind_s = await _caught_up(store)
    finally:
        await store.close()
    if watch.refused:
        phase.errors["the projector was behind, or didn't answer"] = watch.refused
    answers = quantiles(watch.answers)
    yield outcome(
        "projector",
        f"{plan.transitions:,.0f} transitions/s",
        phase,
        spent,
        rate=True,
        latency=quantiles(watch.lags),
        more={"caught up s": behind_s} | ({"question p99 ms": answers.p99, "question max ms": answers.max} if answers else {}),
    )
    await bench.reset()
