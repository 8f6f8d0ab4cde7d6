"""The store: JetStream as the place of jobs, wired together from its folders (docs/architecture.md, Folders)."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import structlog
from msgspec import Struct

from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.problems import Unreachable
from ojs_engine.domain.job import Job
from ojs_engine.domain.storage_room import RoomSettings
from ojs_engine.domain.transitions.deadlines import WorkerTimes
from ojs_engine.domain.transitions.result import Transition
from ojs_engine.jetstream.clock import ClockTimings, ServerClock
from ojs_engine.jetstream.connection import CannotConnect, Connection, ConnectionTimings
from ojs_engine.jetstream.contents import damage
from ojs_engine.jetstream.due_messages import DueMessages, DueTimings
from ojs_engine.jetstream.streams import check_server, no_way_to_nats, provision
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.jetstream.watch import Watches, WatchTimings
from ojs_engine.store.capacity.capacity import Capacity, CapacityTimings
from ojs_engine.store.capacity.stale_tokens import StaleTokens, SweepTimings
from ojs_engine.store.capacity.storage_room import RoomTimings, StorageRoom
from ojs_engine.store.dispatch.dispatcher import Dispatcher
from ojs_engine.store.dispatch.timings import DispatchTimings
from ojs_engine.store.enqueue.enqueue import Enqueue
from ojs_engine.store.gates import LaneRule, PushGate, QueueOrder, StartGate
from ojs_engine.store.jobs.jobs import Jobs, JobTimings
from ojs_engine.store.locks import JobLocks
from ojs_engine.store.queues.queues import Queues
from ojs_engine.store.records.atomic import Atomic
from ojs_engine.store.records.blobs import Blobs
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.commit import Committer, CommitTimings
from ojs_engine.store.records.idempotency import Idempotency, IdempotencyTimings
from ojs_engine.store.records.kept import KeptTimings
from ojs_engine.store.records.records import Records
from ojs_engine.store.records.write_timings import WriteTimings
from ojs_engine.store.records.writer import Writer
from ojs_engine.store.reset import Drop, Reset, ResetTimings
from ojs_engine.store.spawner import Spawner
from ojs_engine.store.threshold_alerts import AlertTimings, ThresholdAlerts
from ojs_engine.store.workers.presence import Presence, PresenceTimings, Workers
from ojs_link.timings import Order, Timings

T = TypeVar("T")
log = structlog.get_logger(__name__)

Connect = Callable[[str, ConnectionTimings], Connection]


class StoreTimings(Timings, frozen=True, kw_only=True):
    """The times of everything in the store, and how much its parts do at once: only tests have others than these."""

    measure_s: float = 10.0
    """How often the clock is compared with that of nats-server."""
    clock: ClockTimings = ClockTimings()
    """The clock."""
    due: DueTimings = DueTimings()
    """Timers of jobs that fire."""
    connections: ConnectionTimings = ConnectionTimings()
    """Connections to nats-server."""
    watches: WatchTimings = WatchTimings()
    """Copies of small records."""
    presence: PresenceTimings = PresenceTimings()
    """Signs of life of services."""
    workers: WorkerTimes = WorkerTimes()
    """Signs of life of workers."""
    room: RoomTimings = RoomTimings()
    """Checks of the storage."""
    kept: KeptTimings = KeptTimings()
    """Records that leave by themselves."""
    writes: WriteTimings = WriteTimings()
    """Reads and writes of records."""
    commits: CommitTimings = CommitTimings()
    """Writes of jobs."""
    jobs: JobTimings = JobTimings()
    """Waiting for the end of a job."""
    capacity: CapacityTimings = CapacityTimings()
    """Places in bounded queues."""
    sweeps: SweepTimings = SweepTimings()
    """Stale tokens."""
    alerts: AlertTimings = AlertTimings()
    """Announcements of full queues and limits."""
    dispatch: DispatchTimings = DispatchTimings()
    """Fetching."""
    idempotency: IdempotencyTimings = IdempotencyTimings()
    """Requests with a key."""
    reset: ResetTimings = ResetTimings()
    """Resets in test mode."""
    features: tuple[Timings, ...] = ()
    """Those of features that aren't the usual ones."""
    usual: ClassVar[Order] = (
        ("writes.batch_s", "idempotency.silent_ms", "a batch under way would be stored again"),
        ("commits.deadline_s", "capacity.seat_ms", "a push under way would lose its place"),
        ("commits.deadline_s", "dispatch.claims.drop_after_ms", "a token would be dropped whose job is being written"),
        ("commits.deadline_s", "sweeps.drop_after_ms", "a token would be deleted whose job is being written"),
        ("commits.deadline_s", "idempotency.silent_ms", "a request under way would be run again"),
        ("commits.deadline_s", "due.ack_wait_s", "a due message would come again while its job is written"),
        ("watches.fresh_s", "dispatch.consumers.newborn_ms", "a consumer whose maker died would ignore a pause"),
        ("watches.lost.trace_s", "kept.deleted_s", "a deleted record would leave and be taken for lost"),
        ("connections.request_s", "commits.deadline_s", "one late answer would end a commit"),
        ("connections.request_s", "writes.deadline_s", "one late answer would end a write"),
        ("idempotency.wait_s", "idempotency.silent_ms", "a repetition would take the request over, and not wait"),
        ("presence.max_gap_ms", "workers.dead_ms", "a worker would die of silence while no gateway could hear it"),
        ("workers.dead_ms", "kept.worker_s", "a dead worker's record would be gone before anybody judges it"),
    )


class Gated(Protocol):
    """A feature in one process, with its gates."""

    @property
    def push(self) -> PushGate: ...

    @property
    def start(self) -> StartGate: ...

    async def clear(self) -> None:
        """Forget everything (reset)."""


class FeatureGates(Struct, frozen=True, kw_only=True):
    """The gates of a feature: the lanes of tokens of jobs that ask for it, and what makes the rest for a process.

    It is made before the store's other parts, of its `bucket` alone.
    """

    lanes: LaneRule
    make: Callable[[Store], Gated]


class StoreFeatures(Struct, frozen=True, kw_only=True):
    """What features add to the store of each process. All processes of a system have the same."""

    gates: FeatureGates | None = None
    locks: Callable[[Store], JobLocks] | None = None
    """Makes the locks of a feature for a process, of the store's `bucket` and `atomic` alone."""
    order: Callable[[Store], QueueOrder] | None = None
    """Makes the order of a fetch's queues. It is made before the store's other parts, of its `bucket` alone."""
    ends: Mapping[str, Callable[[Store, Transition], None]] = MappingProxyType({})
    """By the word of a `Drop`: called with a job that has ended for what a feature has stored beside it."""


class _Outside(NamedTuple):
    """What a store stands on."""

    nats: Connection
    bulk: Connection
    clock: ServerClock
    url: str
    connect: Connect


class Store:
    """One process's access to everything stored. Made by `open`, ended by `close`."""

    def __init__(
        self,
        outside: _Outside,
        config: StoreConfig,
        role: str,
        room: RoomSettings,
        timings: StoreTimings,
        features: StoreFeatures,
    ) -> None:
        instance = secrets.token_hex(8)
        gates = features.gates
        nats, bulk = outside.nats, outside.bulk
        self._outside = outside
        self._nats = nats
        self._bulk = bulk
        self._needed = [nats, bulk]
        """Connections without whose subscriptions this process isn't ready."""
        self._config = config
        self._timings = timings
        self.instance = instance
        self._clock_task: asyncio.Task[None] | None = None
        self.clock = outside.clock
        self.records = Records(nats, bulk, config, timings.writes)
        self.presence = Presence(nats, self.records, self.clock, config, role, instance, timings.presence)
        self.room = StorageRoom((nats, bulk), self.presence, config, room, timings.room, role)
        writer = Writer(nats, self.records, config, timings.writes)
        self.committer = Committer(nats, writer, config, timings.commits, None if gates is None else gates.lanes)
        self.watches = Watches(nats, config, instance, timings.watches)
        self.bucket = Bucket(
            nats,
            bulk,
            config,
            self.clock,
            self.records,
            self.committer,
            writer,
            self.watches,
            timings.kept,
            timings.writes,
            timings.features,
        )
        self._features = features
        self._of_features: dict[Callable[[Store], Any], Any] = {}
        self._at_close: list[Callable[[], Awaitable[None]]] = []
        for what, ended in features.ends.items():
            self.committer.followers[what] = partial(self._ended, ended)
        self.committer.stale_tokens = self._take_out
        self._reset = Reset(nats, self.presence, config, instance, self._forget_jobs, timings.reset)
        self._reset.listeners.append(self._clear)

    # Each part is made when it is first asked for, so that a process has those alone that it works with.

    @cached_property
    def queues(self) -> Queues:
        """Queues and what they are set to."""
        queues = Queues(self.bucket)
        queues.gate_of = None if self.start_gate is None else self.start_gate.of_queue
        return queues

    @cached_property
    def atomic(self) -> Atomic:
        """Changes of several records at once."""
        return Atomic(self.bucket)

    @cached_property
    def _gated(self) -> Gated | None:
        gates = self._features.gates
        return None if gates is None else self.of(gates.make)

    @property
    def start_gate(self) -> StartGate | None:
        """The gate of jobs that are about to start, None if no feature has one."""
        return None if self._gated is None else self._gated.start

    @cached_property
    def locks(self) -> JobLocks | None:
        """The locks of jobs, None if no feature has any."""
        return None if self._features.locks is None else self.of(self._features.locks)

    @cached_property
    def order(self) -> QueueOrder | None:
        """The order of a fetch's queues, None if no feature has one."""
        return None if self._features.order is None else self.of(self._features.order)

    @cached_property
    def _alerts(self) -> ThresholdAlerts:
        return ThresholdAlerts(self.bucket, self._timings.alerts)

    @cached_property
    def capacity(self) -> Capacity:
        """Places in bounded queues."""
        stale_tokens = StaleTokens(self.bucket, self.start_gate, self._timings.sweeps)
        return Capacity(self.bucket, self.queues, stale_tokens, self._alerts, self._timings.capacity)

    @cached_property
    def jobs(self) -> Jobs:
        """Jobs, one by one."""
        return Jobs(self.bucket, self.locks, self._timings.jobs)

    @cached_property
    def enqueue(self) -> Enqueue:
        """The way in of new jobs."""
        push_gate = None if self._gated is None else self._gated.push
        return Enqueue(self.bucket, self.room, self.queues, self.capacity, self.atomic, self.jobs, push_gate, self.locks)

    @cached_property
    def dispatcher(self) -> Dispatcher:
        """The handing out of jobs."""
        timings = self._timings.dispatch
        return Dispatcher(self.bucket, self.queues, self.capacity, self.jobs, self.order, self.start_gate, timings)

    @cached_property
    def spawner(self) -> Spawner:
        """The jobs that records of features name."""
        return Spawner(self.bucket, self.enqueue, self.locks)

    @cached_property
    def idempotency(self) -> Idempotency:
        """Requests with a key."""
        return Idempotency(self.bucket, self._timings.idempotency)

    @cached_property
    def workers(self) -> Workers:
        """Workers and their directives."""
        return Workers(self.bucket)

    @cached_property
    def blobs(self) -> Blobs:
        """Large results, beside their jobs."""
        return Blobs(self.records, self._config)

    def _made(self, kind: type[T]) -> Iterator[T]:
        """Yield this process's part of a kind, if it has been made."""
        yield from (part for part in [*vars(self).values()] if isinstance(part, kind))

    async def _take_out(self, jobs: Sequence[Job]) -> None:
        await self.capacity.stale_tokens(jobs)

    def _forget_jobs(self) -> None:
        for jobs in self._made(Jobs):
            jobs.forget()

    async def _clear(self) -> None:
        """Forget everything (reset): settings of queues ahead of the copies that they are made of."""
        for queues in self._made(Queues):
            await queues.clear()
        await self.watches.reset()
        for alerts in self._made(ThresholdAlerts):
            await alerts.clear()
        gated: Gated | None = vars(self).get("_gated")
        if gated is not None:
            await gated.clear()

    @classmethod
    async def open(
        cls,
        url: str,
        config: StoreConfig,
        *,
        role: str,
        features: StoreFeatures,
        room: RoomSettings | None = None,
        test_mode: bool = False,
        timings: StoreTimings = StoreTimings(),
        clock: ServerClock | None = None,
        connect: Connect = Connection,
    ) -> Store:
        """Connect, check the server, make or check the streams. `url` may list servers, separated by commas; `room` is what
        there is to know of their storage. Only in test mode does the store listen to resets.

        `timings`, `clock` and `connect` (which makes a connection of a name) are for tests.

        Raises StartupProblem in plain words; its kind Unreachable is worth another try.
        """
        names = (f"{config.namespace}-{role}", f"{config.namespace}-{role}-bulk")
        nats, bulk = (connect(name, timings.connections) for name in names)
        try:
            try:
                await nats.connect(url)
                await bulk.connect(url)
            except CannotConnect as error:
                raise no_way_to_nats(url, error) from None
            check_server(nats)
            config = await provision(nats, config)
            outside = _Outside(
                nats,
                bulk,
                ServerClock(timings=timings.clock, workers=timings.workers) if clock is None else clock,
                url,
                connect,
            )
            store = cls(outside, config, role, room or RoomSettings(), timings, features)
            await store._begin(test_mode=test_mode)
        except BaseException:
            await nats.close()
            await bulk.close()
            raise
        return store

    async def close(self) -> None:
        """Finish what is being given back, then close the connections."""
        await stop_loop(self._clock_task)
        await self.room.stop()
        for dispatcher in self._made(Dispatcher):
            await dispatcher.close()
        locks: JobLocks | None = vars(self).get("locks")
        if locks is not None:
            await locks.close()
        for idempotency in self._made(Idempotency):
            await idempotency.close()
        for finish in self._at_close:
            await finish()
        await self.watches.stop()
        await self.presence.stop()
        for nats in (self._bulk, self._nats):
            await nats.close()

    def due_messages(self, service: str) -> DueMessages:
        """The timers that fired for a service."""
        return DueMessages(self._nats, self._bulk, self._config, service, self._timings.due)

    @property
    def nats(self) -> Connection:
        """The connection for small requests, shared with what is derived from the store (events, queries)."""
        return self._nats

    @property
    def bulk(self) -> Connection:
        """The connection for answers that come in numbers."""
        return self._bulk

    @property
    def config(self) -> StoreConfig:
        """The names of everything stored."""
        return self._config

    async def connect(self, name: str) -> Connection:
        """One more connection to the same servers; who asks for it closes it. Raises OjsError backend_unavailable."""
        nats = self._outside.connect(name, self._timings.connections)
        try:
            await nats.connect(self._outside.url)
        except CannotConnect as error:
            raise unavailable(f"NATS can't be reached: {error}") from None
        self.needs(nats)
        return nats

    def needs(self, nats: Connection) -> None:
        """Have this process count as ready only while it hears all that this connection listens to."""
        self._needed = [*(one for one in self._needed if not one.closed), nats]

    def of(self, make: Callable[[Store], T]) -> T:
        """Return what `make` makes of this store: one object in each process. A feature has its records there."""
        if make not in self._of_features:
            self._of_features[make] = make(self)
        found: T = self._of_features[make]
        return found

    def on_close(self, finish: Callable[[], Awaitable[None]]) -> None:
        """Have `finish` awaited when this process stops, while NATS is still there."""
        self._at_close.append(finish)

    def on_reset(self, drop: Drop) -> None:
        """Have `drop` awaited at every reset, before this process says that it holds nothing any more."""
        self._reset.listeners.append(drop)

    async def reset(self, kinds: Iterable[str]) -> None:
        """Wipe everything, with records of these kinds that features have (test mode).

        Returns when every live service holds nothing any more.
        """
        await self._reset.run(kinds)

    async def ping(self) -> float:
        """Round trip to JetStream in milliseconds. Raises OjsError backend_unavailable."""
        return 1000 * await self.clock.measure(self._nats, self._config.records_stream)

    async def ready(self) -> float:
        """As `ping`, if what is written is stored, too: by this process's beats. Raises OjsError backend_unavailable."""
        for nats in self._needed:  # ahead of a question whose answer may not arrive for that reason
            if nats.deaf_to is not None:
                raise unavailable(f"the NATS user of this process may not subscribe to {nats.deaf_to} now")
        latency_ms = await self.ping()
        if self.room.trouble is not None:
            raise unavailable(self.room.trouble)
        return latency_ms

    async def damage(self) -> str | None:
        """What nats-server shows to have lost of the streams, None if nothing. Raises OjsError backend_unavailable."""
        return await damage(self._nats, [str(stream["name"]) for stream in self.config.streams()])

    @property
    def connected(self) -> bool:
        return self._nats.connected and self._bulk.connected

    @property
    def server_version(self) -> str:
        return self._nats.server_version

    @property
    def max_payload(self) -> int:
        """The largest message nats-server takes, in bytes."""
        return self._nats.max_payload

    def _ended(self, ended: Callable[[Store, Transition], None], transition: Transition, _drop: object) -> None:
        ended(self, transition)

    async def _begin(self, *, test_mode: bool) -> None:
        try:
            await self.ping()
            if test_mode:
                await self._reset.listen()
            await self.presence.start()
            self.room.start()
        except OjsError as error:
            raise Unreachable(f"JetStream does not answer yet: {error.message}.") from None
        self._clock_task = start_loop("server-clock", self.ping, every_s=self._timings.measure_s, tell=False)
