"""Watches how much room NATS has left, so that new jobs are refused while those that are there can still be finished
(docs/adr/010).

Asking costs a push nothing: a task looks, the more often the less is left, and leaves a flag. While there are no new
jobs it looks seldom; the first one has it look at once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import ClassVar, Final

import structlog

from ojs_engine.base.errors import OjsError, storage_full
from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.waiting import until_next, within
from ojs_engine.domain.storage_room import RoomSettings, StorageLevel, levels, shortage
from ojs_engine.jetstream.api import purge
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.grants import purged_streams
from ojs_engine.jetstream.streams import account
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.capacity.disk import of_disk
from ojs_engine.store.workers.presence import Presence
from ojs_engine.telemetry import metrics
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)

_TAKING_NONE: Final = frozenset({"reaper", "projector"})
"""The roles of processes that take no new jobs. All others ask often, so that an unknown role refuses in time, but
those of features that say so (`takes_no_jobs`).
"""
_REMEDY: Final = "make room there, and restart nats-server if it doesn't go on by itself"


class RoomTimings(Timings, frozen=True, kw_only=True):
    """How often the room is checked."""

    fastest: int = 512 * 1024 * 1024
    """Bytes a second, assumed to be more than one nats-server takes; what is left by this is the time until the next look."""
    shortest_s: float = 0.05
    """The shortest time until then."""
    longest_s: float = 1.0
    """The longest."""
    quiet_s: float = 5.0
    """For how long processes that take new jobs look as often as that behind the last one, and how often they look then."""
    others_s: float = 10.0
    """How often processes that take no new jobs look, for their metrics alone."""
    order: ClassVar[Order] = (
        ("shortest_s", "longest_s", "there would be no time between the two"),
        ("longest_s", "quiet_s", "a process without new jobs would look more often than one that has some"),
        ("quiet_s", "others_s", "processes that take new jobs have to know sooner"),
    )


class StorageRoom:
    """What is known of the room, and of writes that fail."""

    def __init__(
        self,
        connections: Sequence[Connection],
        presence: Presence,
        config: StoreConfig,
        settings: RoomSettings,
        timings: RoomTimings,
        role: str = "",
    ) -> None:
        """`role` says whether this process takes new jobs, and which streams NATS may let it purge."""
        self._timings = timings
        self._connections = connections
        self._nats = connections[0]
        self._presence = presence
        self._config = config
        self._settings = settings
        self._role = role
        self._takes_new = role not in _TAKING_NONE
        self._warned = False
        self._timeouts = 0
        self._next_s = self._busy_until_s = 0.0
        """When the levels are asked for next at the latest, and until when new jobs count as coming (loop time)."""
        self._asked = asyncio.Event()
        """Set when something new is to be stored."""
        self._task: asyncio.Task[None] | None = None
        self.levels: list[StorageLevel] = []
        """As they were at the last look, a second ago at most where new jobs come."""
        self.shortage: str | None = None
        """Why nothing new is taken, None while there is room."""
        self.broken: str | None = None
        """Why nats-server stores nothing at all, in its own words; None while it does, as far as is known."""

    def check(self) -> None:
        """Raises OjsError storage_full if nothing new may be stored."""
        self._asked.set()
        reason = self.broken or self.shortage
        if reason is not None:
            raise storage_full(reason)

    @property
    def trouble(self) -> str | None:
        """Why writes fail, None while they don't: those of this process's own beats speak for all."""
        return self.broken or self._presence.trouble

    def takes_no_jobs(self) -> None:
        """Note that this process takes no new jobs."""
        self._takes_new = False

    def start(self) -> None:
        self._task = start_loop("room", self._run, tell=False)

    async def stop(self) -> None:
        await stop_loop(self._task)

    async def _run(self) -> None:
        now = asyncio.get_running_loop().time
        if self._asked.is_set():
            self._asked.clear()
            self._busy_until_s = now() + self._timings.quiet_s
        busy = self._takes_new and (now() < self._busy_until_s or self.shortage is not None)
        if busy or now() >= self._next_s:
            await self.look()
            self._next_s = now() + (self._timings.quiet_s if self._takes_new else self._timings.others_s)
        else:
            self._tell(self.levels, self.shortage, await self._broken())
        if busy:
            await asyncio.sleep(self._pause())
        elif self._takes_new:
            await within(until_next(self._timings.longest_s), self._asked)
        else:
            await asyncio.sleep(until_next(self._timings.longest_s))

    def _pause(self) -> float:
        """The reserve must not be used up by new jobs between two looks, however fast they come."""
        if self.shortage is not None or not self.levels:
            return self._timings.longest_s
        free = min(level.left - level.reserve for level in self.levels)
        return min(max(free / self._timings.fastest, self._timings.shortest_s), self._timings.longest_s)

    async def look(self) -> None:
        """Bring everything up to date. Raises OjsError backend_unavailable."""
        found = await self._levels()
        self._tell(found, shortage(found), await self._broken())

    async def _levels(self) -> list[StorageLevel]:
        info = await account(self._nats)
        reserve = self._settings.reserve
        found = levels(info, self._config.replicas, self._settings.limit or None, reserve)
        folder = self._settings.folder
        disk = None if folder is None else await asyncio.to_thread(of_disk, folder, reserve)
        found = found if disk is None else [*found, disk]
        if not found and not self._warned:
            log.warning(
                "NATS says no limit of its storage: name max_file_store with --storage-limit, so that new jobs are refused "
                "while those that are there can still be finished"
            )
            self._warned = True
        return found

    async def _broken(self) -> str | None:
        """What a stream's file has failed with: nats-server then leaves writes unanswered, until it is restarted.

        It does answer a purge, of nothing in this case. That is a write on a cluster, so it is asked only with some
        suspicion.
        """
        timeouts = sum(nats.timed_out for nats in self._connections)
        suspicious = timeouts != self._timeouts or self._presence.trouble is not None or self.broken is not None
        self._timeouts = timeouts
        if not suspicious:
            return None
        nothing = self._config.record("probe", "nothing")
        for stream in purged_streams(self._config, self._role):
            with contextlib.suppress(OjsError):  # whether JetStream answers at all is another question
                error = await purge(self._nats, stream, nothing)
                if error is not None and error.code == 500:
                    return f"nats-server can't write stream {stream} ({error.description}); {_REMEDY}"
        return None

    def _tell(self, found: list[StorageLevel], short: str | None, broken: str | None) -> None:
        for level in found:
            metrics.STORAGE_USED.labels(level.of).set(level.used)
            metrics.STORAGE_LIMIT.labels(level.of).set(level.limit)
            metrics.STORAGE_RESERVE.labels(level.of).set(level.reserve)
        metrics.STORAGE_FULL.set(short is not None or broken is not None)
        if broken is not None and self.broken is None:
            log.error("nothing can be stored", reason=broken)
        elif short is not None and self.shortage is None:
            log.error("new jobs are refused", reason=short)
        elif (self.shortage or self.broken) and not (short or broken):
            log.info("there is room again")
        for nats in self._connections:
            nats.explanation = broken
        self.levels, self.shortage, self.broken = found, short, broken
