"""The store: JetStream as the place of jobs, and the only package that knows NATS (architecture §3-§6)."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import Final

import structlog
from nats.errors import Error as NatsError

from ojs_nats.errors import OjsError, unavailable
from ojs_nats.masking import mask
from ojs_nats.problems import Unreachable
from ojs_nats.store.atomic import Atomic, Outbox
from ojs_nats.store.batch import Batches
from ojs_nats.store.blobs import Blobs
from ojs_nats.store.bounds import Bounds
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Committer
from ojs_nats.store.crons import Crons
from ojs_nats.store.crossings import Crossings
from ojs_nats.store.due import DueMessages
from ojs_nats.store.gate import Gate
from ojs_nats.store.handout import Handout
from ojs_nats.store.held import Held
from ojs_nats.store.idempotency import Idempotency
from ojs_nats.store.jobs import Change, Extended, Jobs
from ojs_nats.store.limits import Limits
from ojs_nats.store.link import Link
from ojs_nats.store.names import StoreConfig
from ojs_nats.store.pools import Pools
from ojs_nats.store.presence import Presence, WorkerRecord, Workers
from ojs_nats.store.provision import check_server, provision
from ojs_nats.store.queues import Queues
from ojs_nats.store.records import Records
from ojs_nats.store.reset import Drop, Reset
from ojs_nats.store.strays import Strays
from ojs_nats.store.swap import Swapper
from ojs_nats.store.together import Together
from ojs_nats.store.unique import Uniqueness
from ojs_nats.store.workflows import Workflows

__all__ = ["Change", "Extended", "Store", "StoreConfig", "WorkerRecord"]

log = structlog.get_logger(__name__)

_MEASURE_S: Final = 30.0


class Store:
    """One process's access to everything stored. Made by `open`, ended by `close`."""

    def __init__(self, link: Link, bulk: Link, config: StoreConfig, role: str, servers: list[str]) -> None:
        instance = secrets.token_hex(8)
        self._link = link
        self._bulk = bulk
        self._config = config
        self._servers = servers
        self.instance = instance
        self._keeper: asyncio.Task[None] | None = None
        self.clock = ServerClock()
        self.records = Records(link, bulk, config)
        self.blobs = Blobs(link, self.records, config)
        self.committer = Committer(link, self.records, self.blobs, config)
        self.queues = Queues(link, self.records, self.clock, config, instance)
        self.atomic = Atomic(link, self.records, self.committer, self.clock, config)
        swapper = Swapper(link, self.records, config.records_stream)
        self.unique = Uniqueness(self.records, self.committer, swapper, self.atomic, self.clock, config)
        reached = Crossings(link, self.records, self.clock, config)
        self.limits = Limits(link, self.records, self.committer, self.clock, config)
        self.held = Held(link, self.records, self.limits, reached, self.clock, config)
        gate = Gate(self.limits, self.held, self.queues, self.clock)
        strays = Strays(link, bulk, self.records, gate, self.clock, config)
        self.bounds = Bounds(link, self.committer, self.queues, strays, reached, self.clock, config)
        self.committer.on_strays = self.bounds.strays
        self.batches = Batches(self.records, self.queues, self.bounds, self.unique, self.atomic, self.clock)
        guards = (self.queues, self.bounds, self.limits, self.unique)
        self.jobs = Jobs(link, self.records, self.committer, *guards, self.clock, config)
        self.pools = Pools(link, self.records, self.clock, config, instance)
        choice = (self.queues, self.pools, gate, self.bounds)
        self.handout = Handout(bulk, self.jobs, self.records, self.committer, self.clock, *choice, config)
        self.crons = Crons(link, bulk, self.records, self.jobs, self.clock, config)
        rules = (self.queues, self.bounds, self.unique)
        self.workflows = Workflows(link, bulk, self.records, self.blobs, self.committer, self.jobs, *rules, self.clock, config)
        self.together = Together(self.records, self.unique, self.atomic, self.clock)
        self.idempotency = Idempotency(self.records, swapper, self.clock, config)
        self.workers = Workers(link, self.records, self.clock, config)
        self.presence = Presence(link, self.records, self.clock, config, role, instance)
        self._reset = Reset(link, self.presence, config, instance, self.jobs.cache.clear)
        self._reset.listeners.append(self.workflows.clear)
        self._reset.listeners.append(self.queues.reset)
        self._reset.listeners.append(self.pools.reset)
        self._reset.listeners.append(reached.clear)

    @classmethod
    async def open(cls, url: str, config: StoreConfig, *, role: str) -> Store:
        """Connect, check the server, make or check the streams. `url` may list servers, separated by commas.

        Raises StartupProblem in plain words; its kind Unreachable is worth another try.
        """
        servers = [part.strip() for part in url.split(",") if part.strip()]
        link, bulk = Link(f"ojs-{role}"), Link(f"ojs-{role}-bulk")
        try:
            try:
                await link.connect(servers)
                await bulk.connect(servers)
            except (NatsError, OSError, ValueError) as error:
                raise Unreachable(
                    f"NATS can't be reached at {mask(url)} ({str(error) or type(error).__name__}); "
                    "start nats-server, or give its address with --nats."
                ) from None
            check_server(link)
            config = await provision(link, config)
            store = cls(link, bulk, config, role, servers)
            await store._begin()
        except BaseException:
            await link.close()
            await bulk.close()
            raise
        return store

    async def close(self) -> None:
        """Finish what is being given back, then close the connections."""
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        await self.handout.close()
        await self.unique.locks.close()
        await self.queues.stop()
        await self.pools.stop()
        await self.presence.stop()
        for link in (self._bulk, self._link):
            with contextlib.suppress(NatsError, OSError):
                await link.close()

    def outbox(self) -> Outbox:
        """The batches that have to be finished."""
        return Outbox(self._link, self._bulk, self.records, self.committer, self._config)

    def due_messages(self, service: str) -> DueMessages:
        """The timers that fired for a service."""
        return DueMessages(self._link, self._bulk, self._config, service)

    @property
    def link(self) -> Link:
        """The connection for small requests, shared with what is derived from the store (events, queries)."""
        return self._link

    @property
    def bulk(self) -> Link:
        """The connection for answers that come in numbers."""
        return self._bulk

    @property
    def config(self) -> StoreConfig:
        """The names of everything stored."""
        return self._config

    async def connect(self, name: str) -> Link:
        """One more connection to the same servers; who asks for it closes it. Raises OjsError backend_unavailable."""
        link = Link(name)
        try:
            await link.connect(self._servers)
        except (NatsError, OSError, ValueError) as error:
            raise unavailable(f"NATS can't be reached: {str(error) or type(error).__name__}") from None
        return link

    def on_reset(self, drop: Drop) -> None:
        """Have `drop` awaited at every reset, before this process says that it holds nothing any more."""
        self._reset.listeners.append(drop)

    async def reset(self) -> None:
        """Wipe everything (test mode); returns when every live service holds nothing any more."""
        await self._reset.run()

    async def ping(self) -> float:
        """Round trip to JetStream in milliseconds. Raises OjsError backend_unavailable."""
        return 1000 * await self.clock.measure(self._link, self._config.records_stream)

    @property
    def connected(self) -> bool:
        return self._link.connected and self._bulk.connected

    @property
    def server_version(self) -> str:
        return self._link.server_version

    @property
    def max_payload(self) -> int:
        """The largest message nats-server takes, in bytes."""
        return self._link.max_payload

    async def _begin(self) -> None:
        try:
            await self.ping()
            await self._reset.start()
            await self.presence.start()
        except OjsError as error:
            raise Unreachable(f"JetStream does not answer yet: {error.message}.") from None
        self._keeper = asyncio.create_task(self._keep_time(), name="server-clock")

    async def _keep_time(self) -> None:
        while True:
            await asyncio.sleep(_MEASURE_S)
            with contextlib.suppress(OjsError):
                await self.ping()
