"""The store's interface over a dict, with the real transitions: for tests of what stands in front of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from ojs_nats import transitions
from ojs_nats.errors import OjsError, duplicate, not_found
from ojs_nats.job import Job, State
from ojs_nats.store import Change, Extended, StoreConfig, WorkerRecord
from ojs_nats.store.link import Link
from ojs_nats.transitions import Moment, Transition

__all__ = ["FakeStore"]

Decide = Callable[[Job, Moment], Transition]


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.at = 1_770_000_000_000
        self.ops = 0

    def now(self) -> int:
        return self.at

    def moment(self) -> Moment:
        self.ops += 1
        return Moment(self.at, f"op{self.ops}")


class Wakes:
    def __init__(self) -> None:
        self.closed = asyncio.Event()

    def wake_all(self) -> None:
        self.closed.set()


class Jobs:
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    async def push(self, draft: Job) -> Job:
        self._store.check()
        if draft.id in self._store.records:
            raise duplicate(draft.id, self._store.records[draft.id].state)
        return self._store.put(transitions.push(draft, self._store.clock.moment()).job)

    async def get(self, job_id: str) -> Job:
        self._store.check()
        job = self._store.records.get(job_id)
        if job is None or job.deleted:
            raise not_found("job", job_id)
        return job

    async def change(self, job_id: str, decide: Decide) -> Change:
        before = await self.get(job_id)
        transition = decide(before, self._store.clock.moment())
        self._store.blobs.keep(transition)
        return Change(before, self._store.put(transition.job))

    async def revive(self, job_id: str, decide: Decide) -> Change:
        return await self.change(job_id, decide)

    async def extend(self, job_ids: Sequence[str], worker: str, lease_ms: int | None) -> Extended:
        self._store.check()
        self._store.extended.append((tuple(job_ids), worker, lease_ms))
        held = [self._store.records[job_id] for job_id in job_ids if job_id in self._store.records]
        active = [job for job in held if job.state is State.ACTIVE]
        cancelled = [job.id for job in held if job.state is State.CANCELLED]
        return Extended(extended=[job.id for job in active], cancelled=cancelled, jobs=active)

    async def wait_terminal(self, job_id: str, timeout_s: float) -> Job:
        try:
            async with asyncio.timeout(timeout_s):
                while not (await self.get(job_id)).terminal:
                    self._store.changed.clear()
                    await self._store.changed.wait()
        except TimeoutError:
            pass
        return await self.get(job_id)


class Handout:
    def __init__(self, store: FakeStore) -> None:
        self._store = store
        self.wakes = Wakes()
        self.asked: list[tuple[Any, ...]] = []
        self.given_back: list[str] = []

    async def fetch(
        self,
        queues: Sequence[str],
        count: int,
        worker: str | None,
        lease_ms: int | None,
        wait_ms: int,
        pool: str | None = None,
    ) -> list[Job]:
        self._store.check()
        self.asked.append((tuple(queues), count, worker, lease_ms, wait_ms, *([pool] if pool else [])))
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / 1_000
        while True:
            found = [job for job in self._store.records.values() if job.state is State.AVAILABLE and job.queue in queues]
            left = until - loop.time()
            if found or left <= 0 or self.wakes.closed.is_set():
                break
            self._store.changed.clear()
            waits = [asyncio.ensure_future(self._store.changed.wait()), asyncio.ensure_future(self.wakes.closed.wait())]
            await asyncio.wait(waits, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        moments = [self._store.clock.moment() for _ in found[:count]]
        claims = zip(found[:count], moments, strict=True)
        return [self._store.put(transitions.claim(job, worker, lease_ms, moment).job) for job, moment in claims]

    def give_back(self, job: Job, reason: str) -> None:
        assert reason
        self.given_back.append(job.id)


class Bounds:
    def pressure(self, _queue: str) -> None:
        """No queue has a bound."""


class Workers:
    def __init__(self, store: FakeStore) -> None:
        self._store = store
        self.records: dict[str, WorkerRecord] = {}

    async def beat(self, record: WorkerRecord) -> WorkerRecord:
        self._store.check()
        self.records[record.id] = record
        return record

    async def remove(self, worker_id: str) -> bool:
        self._store.check()
        return self.records.pop(worker_id, None) is not None


class Blobs:
    """Results that are set apart, by their subject."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store
        self.stored: dict[str, Raw] = {}

    def keep(self, transition: Transition) -> None:
        blob = transition.job.result_blob
        if transition.apart is not None and blob is not None:
            self.stored[self._store.config.result(transition.job.id, blob.op)] = transition.apart.body

    async def whole(self, job: Job) -> Job:
        if job.result_blob is None:
            return job
        body = self.stored.get(self._store.config.result(job.id, job.result_blob.op))
        return replace(job, result_blob=None) if body is None else replace(job, result=body)

    async def wholes(self, jobs: Iterable[Job], _room: int) -> list[Job]:
        return [await self.whole(job) for job in jobs]


class Atomic:
    def __init__(self, store: FakeStore) -> None:
        self._store = store
        self.room = 10_000

    async def room_for(self, jobs: int) -> int | None:
        return None if self._store.failure is not None else min(jobs, self.room)


class FakeStore:
    """`failure` is raised by every operation while it is set."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.config = StoreConfig()
        self.instance = "fake"
        # Never connected: what asks the projector or reads events is refused, as without NATS.
        self.link = self.bulk = Link("fake")
        self.records: dict[str, Job] = {}
        self.changed = asyncio.Event()
        self.failure: Exception | None = None
        self.extended: list[tuple[tuple[str, ...], str, int | None]] = []
        self.resets = 0
        self.jobs = Jobs(self)
        self.atomic = Atomic(self)
        self.blobs = Blobs(self)
        self.handout = Handout(self)
        self.workers = Workers(self)
        self.bounds = Bounds()

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def put(self, job: Job) -> Job:
        self.records[job.id] = job
        self.changed.set()
        return job

    def on_reset(self, _drop: Callable[[], Awaitable[None]]) -> None:
        """Its reset has nobody else to ask."""

    async def ping(self) -> float:
        self.check()
        return 1.4

    async def reset(self) -> None:
        self.check()
        self.resets += 1
        self.records.clear()


def unavailable_store() -> OjsError:
    return OjsError("backend_unavailable", "NATS is away", retry_after=3)
