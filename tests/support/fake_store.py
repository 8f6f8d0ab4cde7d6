"""The store's interface over a dict, with the real transitions: for tests of what stands in front of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, TypeVar

from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError, duplicate, not_found
from ojs_engine.domain import transitions
from ojs_engine.domain.handlers import Handled
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.storage_room import StorageLevel
from ojs_engine.domain.transitions import Moment, Transition
from ojs_engine.domain.transitions.deadlines import deadlines
from ojs_engine.domain.transitions.effects import Apart
from ojs_engine.domain.transitions.result import Change
from ojs_engine.domain.unique import policy_of
from ojs_engine.domain.worker import Mark
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.jetstream.watch import Watches, WatchTimings
from ojs_engine.operations.job_checks import CheckedTypes
from ojs_engine.store.jobs.jobs import Extended
from ojs_engine.store.workers.presence import ROLES, PresenceTimings, WorkerRecord
from ojs_features.access.keys import Key
from ojs_features.access.store import Keys
from ojs_features.checkpoints.store import Checkpoints
from ojs_features.crons.store import Crons
from ojs_features.limits.limits import Limits
from ojs_features.pools.store import Pools
from ojs_features.progress.store import JobProgress
from ojs_features.schemas.registry import Schemas
from ojs_features.unique.rules import counts
from ojs_features.webhooks.subscriptions import Webhooks
from ojs_features.workflows.store import Workflows

T = TypeVar("T")
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


class Wakeups:
    def __init__(self) -> None:
        self.closed = asyncio.Event()

    def wake_all(self) -> None:
        self.closed.set()


class Enqueue:
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    async def push(self, draft: Job) -> Job:
        self._store.check()
        known = self._store.records.get(draft.id)
        if known is not None and not known.deleted:
            raise duplicate(draft.id, known.state)
        existing = self._store.duplicates(draft)
        policy = policy_of(draft) if existing else None
        if policy is not None:
            if policy.on_conflict == "reject":
                raise duplicate(existing[0].id, existing[0].state, draft.unique_key)
            if policy.on_conflict == "ignore":
                return existing[0]
            for job in existing:
                if not job.terminal:
                    ended = transitions.cancel(job, self._store.clock.moment(), f"replaced by job {draft.id}")
                    self._store.put(ended.job)
        if known is not None:
            draft = replace(draft, transitions=transitions.leading_to(draft.queue, known))
        return self._store.put(transitions.push(draft, self._store.clock.moment()).job)


class Jobs:
    def __init__(self, store: FakeStore) -> None:
        self._store = store

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
        before = await self.get(job_id)
        after = decide(before, self._store.clock.moment()).job
        existing = self._store.duplicates(after)
        if existing:
            raise duplicate(existing[0].id, existing[0].state, after.unique_key)
        return await self.change(job_id, decide)

    async def extend(self, job_ids: Sequence[str], worker: str, lease_ms: int | None) -> Extended:
        self._store.check()
        self._store.extended.append((tuple(job_ids), worker, lease_ms))
        active: list[Job] = []
        cancelled: list[str] = []
        for job_id in job_ids:
            job = self._store.records.get(job_id)
            if job is None or job.deleted:
                continue
            try:
                renewed = transitions.extend(job, worker, lease_ms, self._store.clock.moment())
            except OjsError:  # it has ended, or is somebody else's
                cancelled += [job_id] if job.state is State.CANCELLED else []
            else:
                active.append(job if renewed is None else self._store.put(renewed.job))
        return Extended(extended=[job.id for job in active], cancelled=cancelled, jobs=active)

    async def wait_terminal(self, job_id: str, timeout_s: float, given_up: Callable[[], bool] = lambda: False) -> Job:
        try:
            async with asyncio.timeout(timeout_s):
                while not (given_up() or (await self.get(job_id)).terminal):
                    self._store.changed.clear()
                    await self._store.changed.wait()
        except TimeoutError:
            pass
        return await self.get(job_id)


class Dispatcher:
    def __init__(self, store: FakeStore) -> None:
        self._store = store
        self.wakeups = Wakeups()
        self.asked: list[tuple[Any, ...]] = []
        self.looks = 0
        self.given_back: list[str] = []
        self.failed: list[str] = []
        self.failure: Exception | None = None
        """Raised by each fetch while it is set."""
        self.unaware = False
        """Whether it doesn't ask if anybody still waits."""

    async def fetch(
        self,
        queues: Sequence[str],
        count: int,
        worker: str | None,
        lease_ms: int | None,
        wait_ms: int,
        pool: str | None = None,
        given_up: Callable[[], Awaitable[bool]] | None = None,
        handled: Handled | None = None,
    ) -> list[Job]:
        self._store.check()
        if self.failure is not None:
            raise self.failure
        more = [one for one in (pool, handled) if one]
        self.asked.append((tuple(queues), count, worker, lease_ms, wait_ms, *more))
        loop = asyncio.get_running_loop()
        until = loop.time() + wait_ms / 1_000
        while True:
            self.looks += 1
            found = self._store.waiting(queues)
            left = until - loop.time()
            if found or left <= 0 or self.wakeups.closed.is_set():
                break
            self._store.changed.clear()
            waits = [asyncio.ensure_future(self._store.changed.wait()), asyncio.ensure_future(self.wakeups.closed.wait())]
            await asyncio.wait(waits, timeout=min(left, 0.05), return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
            if given_up is not None and not self.unaware and await given_up():
                return []
        moments = [self._store.clock.moment() for _ in found[:count]]
        claims = zip(found[:count], moments, strict=True)
        return [self._store.put(transitions.claim(job, worker, lease_ms, moment).job) for job, moment in claims]

    @contextmanager
    def returning(self, jobs: Sequence[Job]) -> Iterator[set[str]]:
        undelivered = {job.id for job in jobs}
        try:
            yield undelivered
        finally:
            self.take_back([job for job in jobs if job.id in undelivered])

    def take_back(self, jobs: Iterable[Job], _reason: str = "") -> None:
        self.given_back += [job.id for job in jobs]

    def fail(self, job: Job, reason: str) -> None:
        assert reason
        self.failed.append(job.id)


class Capacity:
    def pressure(self, _queue: str) -> None:
        """No queue has a bound."""


class Room:
    """Never full, unless a test says so."""

    def __init__(self) -> None:
        self.levels: list[StorageLevel] = []
        self.shortage: str | None = None
        self.trouble: str | None = None


class Presence:
    """One process of every role, unless a test says otherwise."""

    def __init__(self) -> None:
        self.roles = Counter((*ROLES, "coordinator", "webhooks"))
        self.timings = PresenceTimings(beat_s=0.01)

    async def by_role(self) -> Counter[str]:
        return self.roles


class FakeCrons:
    """No cron entries."""

    async def all(self) -> list[Any]:
        return []


class FakeLimits:
    """Limits that nobody asks for."""

    permits: Any = None
    blocked: Any = None


class FakePools:
    """No pools."""

    async def all(self) -> list[Any]:
        return []


class FakeWebhooks:
    async def wanted(self) -> bool:
        return True


class Workers:
    def __init__(self, store: FakeStore) -> None:
        self._store = store
        self.records: dict[str, WorkerRecord] = {}
        self.sequence = 0

    async def beat(self, record: WorkerRecord) -> Mark:
        self._store.check()
        self.records[record.id] = record
        self.sequence += 1
        return Mark(self.sequence, self._store.clock.now())

    async def remove(
        self, worker_id: str, *, signed_off: bool = False, pid: int | None = None, started_at: str | None = None
    ) -> Mark | None:
        self._store.check()
        assert signed_off, "an operator removes workers that the index knows, which there is none of here"
        found = self.records.get(worker_id)
        if found is None or not found.is_process(pid, started_at):
            return None
        del self.records[worker_id]
        return Mark(self.sequence, self._store.clock.now())


class Blobs:
    """Results that are set apart, by their subject."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store
        self.stored: dict[str, Raw] = {}

    def keep(self, transition: Transition) -> None:
        for effect in transition.effects:
            if isinstance(effect, Apart):
                self.stored[self._store.config.result(transition.job.id, effect.op)] = effect.body

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


class FakeSchemas:
    """There are none."""

    def __init__(self) -> None:
        self.checked = CheckedTypes(self.learn)

    async def learn(self) -> None:
        self.checked.names = frozenset()


class FakeKeys:
    """None, until a test tells of some."""

    def __init__(self) -> None:
        self.changed: Callable[[list[Key], bool], None] = lambda _keys, _unreadable: None

    async def follow(self, changed: Callable[[list[Key], bool], None]) -> None:
        self.changed = changed
        changed([], False)

    async def mark(self) -> None:
        """Do nothing: a fake system remembers no keys."""


class FakeBucket:
    """The usual durations."""

    def timings(self, kind: type[T]) -> T:
        return kind()


class FakeCheckpoints:
    """Nobody has saved any; `failure` is raised to who asks, while it is set."""

    def __init__(self) -> None:
        self.failure: Exception | None = None

    async def last(self, _job_id: str) -> None:
        if self.failure is not None:
            raise self.failure


class FakeStore:
    """`failure` is raised by every operation while it is set."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.bucket = FakeBucket()
        self.config = StoreConfig()
        self.instance = "fake"
        # Never connected: what asks the projector or reads events is refused, as without NATS.
        self.nats = self.bulk = Connection("fake")
        self.watches = Watches(self.nats, self.config, self.instance, WatchTimings())
        self.records: dict[str, Job] = {}
        self._order = count(1)
        self._places: dict[str, int] = {}
        """By job, its place in its queue: when it last became available."""
        self.changed = asyncio.Event()
        self.failure: Exception | None = None
        self.extended: list[tuple[tuple[str, ...], str, int | None]] = []
        self.resets = 0
        self.damaged: str | None = None
        self.enqueue = Enqueue(self)
        self.jobs = Jobs(self)
        self.atomic = Atomic(self)
        self.blobs = Blobs(self)
        self.checkpoints = FakeCheckpoints()
        self.dispatcher = Dispatcher(self)
        self.workers = Workers(self)
        self.capacity = Capacity()
        self.room = Room()
        self.presence = Presence()
        self.keys = FakeKeys()
        self.order = FakePools()

    def of(self, make: Callable[..., Any]) -> Any:
        """Return what a feature has here."""
        stores: dict[Any, Any] = {
            Checkpoints: self.checkpoints,
            JobProgress: None,
            Crons: FakeCrons(),
            Webhooks: FakeWebhooks(),
            Limits: FakeLimits(),
            Pools: self.order,
            Workflows: None,
            Schemas: FakeSchemas(),
            Keys: self.keys,
        }
        return stores[make]

    def check(self) -> None:
        if self.failure is not None:
            raise self.failure

    def duplicates(self, draft: Job) -> list[Job]:
        """Return the jobs whose uniqueness keeps a new one out."""
        if draft.unique_key is None:
            return []
        policy, key, now = policy_of(draft), draft.unique_key, self.clock.now()
        return [job for job in self.records.values() if job.id != draft.id and counts(policy, key, job, now)]

    def waiting(self, queues: Sequence[str]) -> list[Job]:
        """Return the jobs that a fetch finds, in order; those whose time is over are discarded on the way."""
        found: list[Job] = []
        for queue in dict.fromkeys(queues):
            here = [job for job in self.records.values() if job.state is State.AVAILABLE and job.queue == queue]
            for job in sorted(here, key=lambda job: (-job.priority, self._places[job.id])):
                if transitions.expired(job, self.clock.now()) is None:
                    found.append(job)
                else:
                    self.put(transitions.expire(job, self.clock.moment()).job)
        return found

    def run_due(self, until: int) -> None:
        """Let time pass, and do what scheduler and reaper would do meanwhile."""
        while due := min(self._due(until), default=None):
            at, job_id = due
            self.clock.at = max(self.clock.at, at)
            decision = transitions.due(self.records[job_id], self.clock.moment(), transitions.Liveness(None, covered=False))
            assert isinstance(decision, Transition), f"nothing is due for job {job_id}"
            self.put(decision.job)
        self.clock.at = max(self.clock.at, until)

    def _due(self, until: int) -> list[tuple[int, str]]:
        live = [job for job in self.records.values() if not job.terminal and not job.deleted]
        limits = [(limit.at, job.id) for job in live for limit in deadlines(job) if limit.cause != "liveness"]
        return [limit for limit in limits if limit[0] <= until]

    def put(self, job: Job) -> Job:
        before = self.records.get(job.id)
        if job.token is not None and (before is None or before.token != job.token):
            self._places[job.id] = next(self._order)
        self.records[job.id] = job
        self.changed.set()
        return job

    def on_reset(self, _drop: Callable[[], Awaitable[None]]) -> None:
        """Its reset has nobody else to ask."""

    async def ready(self) -> float:
        self.check()
        return 1.4

    async def damage(self) -> str | None:
        self.check()
        return self.damaged

    async def reset(self, _kinds: Iterable[str]) -> None:
        self.check()
        self.resets += 1
        self.records.clear()


def unavailable_store() -> OjsError:
    return OjsError("backend_unavailable", "NATS is away", retry_after=3)
