"""The store: JetStream as the place of jobs, wired together from its folders (docs/architecture.md, Folders)."""

from __future__ import annotations

import asyncio
import secrets
from typing import Final

import structlog

from ojs_core.base.errors import OjsError, unavailable
from ojs_core.base.loops import start_loop, stop_loop
from ojs_core.base.problems import Unreachable
from ojs_core.domain.storage_room import RoomSettings
from ojs_core.jetstream.clock import ServerClock
from ojs_core.jetstream.connection import CannotConnect, Connection
from ojs_core.jetstream.contents import damage
from ojs_core.jetstream.due_messages import DueMessages
from ojs_core.jetstream.streams import check_server, no_way_to_nats, provision
from ojs_core.jetstream.subjects import StoreConfig
from ojs_core.store.capacity.capacity import Capacity
from ojs_core.store.capacity.stale_tokens import StaleTokens
from ojs_core.store.capacity.storage_room import StorageRoom
from ojs_core.store.crons import Crons
from ojs_core.store.dispatch.dispatcher import Dispatcher
from ojs_core.store.jobs.atomic_changes import AtomicChanges
from ojs_core.store.jobs.batches import Batches
from ojs_core.store.jobs.checkpoints import Checkpoints
from ojs_core.store.jobs.guards import Guards
from ojs_core.store.jobs.jobs import Jobs
from ojs_core.store.jobs.progress import JobProgress
from ojs_core.store.queues.fair_pools import FairPools
from ojs_core.store.queues.queues import Queues
from ojs_core.store.rate_limits.blocked_jobs import BlockedJobs
from ojs_core.store.rate_limits.limiter import Limiter
from ojs_core.store.rate_limits.permits import Permits
from ojs_core.store.rate_limits.threshold_alerts import ThresholdAlerts
from ojs_core.store.records.atomic import Atomic, Outbox
from ojs_core.store.records.blobs import Blobs
from ojs_core.store.records.bucket import Bucket
from ojs_core.store.records.commit import Committer
from ojs_core.store.records.idempotency import Idempotency
from ojs_core.store.records.records import Records
from ojs_core.store.records.signals import Signals
from ojs_core.store.records.writer import Writer
from ojs_core.store.reset import Drop, Reset
from ojs_core.store.schemas import Schemas
from ojs_core.store.unique.unique import Uniqueness
from ojs_core.store.unreadable import UnreadableRecords
from ojs_core.store.webhooks.subscriptions import Webhooks
from ojs_core.store.workers.presence import Presence, Workers
from ojs_core.store.workflows.workflows import Workflows

log = structlog.get_logger(__name__)

_MEASURE_S: Final = 10.0


class Store:
    """One process's access to everything stored. Made by `open`, ended by `close`."""

    def __init__(
        self, nats: Connection, bulk: Connection, config: StoreConfig, role: str, url: str, room: RoomSettings
    ) -> None:
        instance = secrets.token_hex(8)
        self._nats = nats
        self._bulk = bulk
        self._config = config
        self._url = url
        self.instance = instance
        self._clock_task: asyncio.Task[None] | None = None
        self.clock = ServerClock()
        self.records = Records(nats, bulk, config)
        self.presence = Presence(nats, self.records, self.clock, config, role, instance)
        self.room = StorageRoom((nats, bulk), self.presence, config, room, role)
        self.blobs = Blobs(nats, self.records, config)
        self.signals = Signals()
        writer = Writer(nats, self.records, config)
        self.committer = Committer(nats, writer, self.blobs, config, self.signals)
        self._bucket = bucket = Bucket(nats, bulk, config, self.clock, self.records, self.committer, writer, self.signals)
        self.queues = Queues(bucket, instance)
        self.pools = FairPools(bucket, instance)
        self.schemas = Schemas(bucket, instance, self.queues)
        self.atomic = Atomic(bucket)
        self.unique = Uniqueness(bucket, self.atomic)
        alerts = ThresholdAlerts(bucket)
        self.permits = Permits(bucket)
        self.blocked = BlockedJobs(bucket, self.permits, alerts, self.committer.lanes)
        limiter = Limiter(self.permits, self.blocked, self.queues, self.clock)
        stale_tokens = StaleTokens(bucket, limiter)
        self.capacity = Capacity(bucket, self.queues, stale_tokens, alerts)
        guards = Guards(self.room, self.queues, self.capacity, self.permits, self.unique)
        self.jobs = Jobs(bucket, guards)
        self.progress = JobProgress(bucket, self.jobs)
        self.checkpoints = Checkpoints(bucket, self.jobs)
        self.batches = Batches(bucket, guards, self.atomic)
        self.atomic_changes = AtomicChanges(bucket, self.unique, self.atomic)
        self.dispatcher = Dispatcher(bucket, guards, self.jobs, self.pools, limiter)
        self.crons = Crons(bucket, self.jobs, self.room)
        self.workflows = Workflows(bucket, self.blobs, self.jobs, guards)
        self.idempotency = Idempotency(bucket)
        self.workers = Workers(bucket)
        self.webhooks = Webhooks(bucket, instance)
        self.unreadable = UnreadableRecords(bucket, self.permits)
        self._reset = Reset(nats, self.presence, config, instance, self.jobs.forget)
        self._reset.listeners.append(self.workflows.clear)
        self._reset.listeners.append(self.progress.clear)
        self._reset.listeners.append(self.queues.reset)
        self._reset.listeners.append(self.pools.reset)
        self._reset.listeners.append(self.schemas.reset)
        self._reset.listeners.append(self.webhooks.reset)
        self._reset.listeners.append(alerts.clear)
        self._reset.listeners.append(self.permits.clear)
        self._reset.listeners.append(self.committer.lanes.clear)

    @classmethod
    async def open(
        cls, url: str, config: StoreConfig, *, role: str, room: RoomSettings | None = None, test_mode: bool = False
    ) -> Store:
        """Connect, check the server, make or check the streams. `url` may list servers, separated by commas; `room` is what
        there is to know of their storage. Only in test mode does the store listen to resets.

        Raises StartupProblem in plain words; its kind Unreachable is worth another try.
        """
        nats, bulk = Connection(f"ojs-{role}"), Connection(f"ojs-{role}-bulk")
        try:
            try:
                await nats.connect(url)
                await bulk.connect(url)
            except CannotConnect as error:
                raise no_way_to_nats(url, error) from None
            check_server(nats)
            config = await provision(nats, config)
            store = cls(nats, bulk, config, role, url, room or RoomSettings())
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
        await self.dispatcher.close()
        await self.unique.locks.close()
        await self.idempotency.close()
        await self.progress.close()
        await self.checkpoints.close()
        await self.queues.stop()
        await self.pools.stop()
        await self.schemas.stop()
        await self.webhooks.stop()
        await self.presence.stop()
        for nats in (self._bulk, self._nats):
            await nats.close()

    def outbox(self) -> Outbox:
        """The batches that have to be finished."""
        return Outbox(self._bucket)

    def due_messages(self, service: str) -> DueMessages:
        """The timers that fired for a service."""
        return DueMessages(self._nats, self._bulk, self._config, service)

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
        nats = Connection(name)
        try:
            await nats.connect(self._url)
        except CannotConnect as error:
            raise unavailable(f"NATS can't be reached: {error}") from None
        return nats

    def on_reset(self, drop: Drop) -> None:
        """Have `drop` awaited at every reset, before this process says that it holds nothing any more."""
        self._reset.listeners.append(drop)

    async def reset(self) -> None:
        """Wipe everything (test mode); returns when every live service holds nothing any more."""
        await self._reset.run()

    async def ping(self) -> float:
        """Round trip to JetStream in milliseconds. Raises OjsError backend_unavailable."""
        return 1000 * await self.clock.measure(self._nats, self._config.records_stream)

    async def ready(self) -> float:
        """As `ping`, if what is written is stored, too: by this process's beats. Raises OjsError backend_unavailable."""
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

    async def _begin(self, *, test_mode: bool) -> None:
        try:
            await self.ping()
            if test_mode:
                await self._reset.listen()
            await self.presence.start()
            self.room.start()
        except OjsError as error:
            raise Unreachable(f"JetStream does not answer yet: {error.message}.") from None
        self._clock_task = start_loop("server-clock", self.ping, every_s=_MEASURE_S, tell=False)
