"""One holder's time as the relay: which entries are new, and their way into the event stream, in order and fenced."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec
import structlog
from msgspec import Struct

from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import stop_tasks
from ojs_engine.domain.events.source import EventSource
from ojs_engine.jetstream.event_log import Appended, EventLog, Fenced, Outgoing
from ojs_engine.jetstream.feed import Record
from ojs_engine.jetstream.reading import RECORD_ERRORS, Unreadable
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.telemetry import metrics
from ojs_index.sqlite.model import Seen
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)

BATCH_BYTES: Final = 4 * 1024 * 1024

_encode: Final = msgspec.json.Encoder().encode


ReadCreation = Callable[[str], Awaitable[EventSource | None]]
"""Reads the source of the creation of what jobs are members of, by its id; None if there is no record that can be read.

Raises OjsError backend_unavailable.
"""
SourceOf = Callable[[Seen], EventSource | None]


class TermLimits(Timings, frozen=True, kw_only=True):
    """How fast a tenure appends, and how much it remembers."""

    pace_s: float = 0.02
    """Between two appends: a batch costs nats-server two milliseconds, and stalls the stream's other writers as long."""
    surely_ms: int = 10_000
    """What was created this long after the tenure began was relayed by nobody else, whatever their clocks say."""
    batch: int = 1_000
    """What nats-server takes at most, unless it is set to another number."""
    waiting: int = 5_000
    """Events that may wait before reading waits for writing."""
    known: int = 100_000
    """Jobs of which it remembers what was relayed."""


class TermGroup(Struct, frozen=True):
    """The events of one log entry, which go into one append, so that its number stands for all of them."""

    sequence: int
    events: list[Outgoing]
    size: int


def _note(record: Record, error: Exception) -> None:
    Unreadable(record.kind, record.job_id, f"no events can be made of it: {error}").note(record.sequence)


class RelayTerm:
    """Takes records in order of their sequence and appends the events of entries that were not appended before.

    `last` is the event stream's last sequence, read after the lease was won: everything that anyone relayed before is below
    it, and what a predecessor may still append behind it makes the next append fail. `done` is the predecessor's checkpoint.
    """

    def __init__(
        self,
        event_log: EventLog,
        config: StoreConfig,
        source_of: SourceOf,
        read: ReadCreation,
        *,
        last: int,
        began_at: int,
        done: int,
        limits: TermLimits,
    ) -> None:
        self._limits = limits
        self._log = event_log
        self._config = config
        self._source_of = source_of
        self._read_creation = read
        self._last = last
        self._surely_new = began_at + limits.surely_ms if last else 0
        self._known: OrderedDict[str, Appended] = OrderedDict()
        self._groups: deque[TermGroup] = deque()
        self._sending: list[TermGroup] = []
        self._waiting = 0
        self._more = asyncio.Event()
        self._less = asyncio.Event()
        self._appending = asyncio.Lock()
        self._held = False
        self._taken = self._done_before = done
        self._task: asyncio.Task[None] | None = None
        self.done = done
        """Every transition of a revision up to here is in the event stream."""
        self.appended = 0
        self.over: str | None = None
        """Why the tenure has ended; None while it runs."""
        self.ended = asyncio.Event()
        self.progress = asyncio.Event()
        """Set with every change of `done` or `over`."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="relay")

    async def stop(self) -> None:
        """End at once; what waits is relayed by the next tenure."""
        self._end("it was stopped")
        await stop_tasks([] if self._task is None else [self._task])

    async def drain(self, timeout_s: float) -> None:
        """Wait until everything taken is appended, or the time is up."""
        try:
            async with asyncio.timeout(timeout_s):
                while (self._groups or self._sending) and self.over is None:
                    self.progress.clear()
                    await self.progress.wait()
        except TimeoutError:
            pass

    async def take(self, batch: Sequence[Seen]) -> None:
        """Queue the new events of a batch; returns once there is room for more. Raises OjsError backend_unavailable."""
        batch = [seen for seen in batch if seen.record.sequence > self._done_before]
        if not batch:
            return
        sources = [(seen.record, self._told(seen)) for seen in batch]
        created: dict[str, EventSource] = {}
        if not self._held:
            await self._look_up([told for _, told in sources if told is not None])
            created = await self._creations([told for _, told in sources if told is not None])
        if self.over is not None:
            return
        for record, told in sources:
            if record.kind == "epoch":
                self._forget()
            elif not self._held and told is not None:
                try:
                    if told.member_of is not None and (creation := created.pop(told.member_of, None)) is not None:
                        self._queue(record.sequence, creation)
                    self._queue(record.sequence, told)
                except (OjsError, *RECORD_ERRORS) as error:  # one record's trouble must not keep the events of others back
                    _note(record, error)
        self._taken = batch[-1].record.sequence
        self._settle()
        while self._waiting > self._limits.waiting and self.over is None:
            self._less.clear()
            await self._less.wait()

    async def hold(self) -> None:
        """A reset begins: what waits concerns jobs that are being wiped.

        Lasts until the epoch that ends it is taken.
        """
        self._held = True
        self._drop()
        async with self._appending:
            pass

    @property
    def held(self) -> bool:
        return self._held

    # What is new

    def _told(self, seen: Seen) -> EventSource | None:
        try:
            return self._source_of(seen)
        except (OjsError, *RECORD_ERRORS) as error:
            _note(seen.record, error)
            return None

    async def _look_up(self, sources: Sequence[EventSource]) -> None:
        """Learn of what is first met what was appended of it before."""
        unknown = {told.id for told in sources if not self._is_known(told)}
        found = await asyncio.gather(*(self._log.last_of(name) for name in unknown))
        for name, appended in zip(unknown, found, strict=True):
            if appended is not None:
                self._remember(name, appended)

    async def _creations(self, sources: Sequence[EventSource]) -> dict[str, EventSource]:
        """The creations of workflows whose jobs are met ahead of their records, which have changed since; by their ids.

        They come ahead of what the jobs do.
        """
        met: set[str] = set()
        ahead: set[str] = set()
        for told in sources:
            if told.member_of is None:
                met.add(told.id)
            elif told.member_of not in self._known and told.member_of not in met:
                ahead.add(told.member_of)
        found = await asyncio.gather(*map(self._read_creation, ahead))
        records = [creation for creation in found if creation is not None]
        await self._look_up(records)
        return {told.id: told for told in records if told.id not in self._known}

    def _is_known(self, told: EventSource) -> bool:
        return told.id in self._known or (told.created_at >= self._surely_new and told.first <= 1)

    def _queue(self, sequence: int, told: EventSource) -> None:
        known = self._known.get(told.id)
        number = 0
        if known is not None and (known.created_at == told.created_at or known.entry < told.first):
            number = known.entry
        fresh = [entry for entry in told.entries if entry.n > number]
        if not fresh:
            return
        if fresh[0].n > number + 1:
            log.warning("transitions left the log unseen", id=told.id, entries=fresh[0].n - number - 1)
        made = []
        for entry in fresh:
            events = [
                Outgoing(
                    self._config.event(event.type, told.scope, told.id), _encode(event), told.created_at, entry.n, sequence
                )
                for event in told.events(entry)
            ]
            if events:
                made.append(TermGroup(sequence, events, sum(len(event.body) for event in events)))
        self._groups += made
        self._waiting += sum(len(group.events) for group in made)
        self._remember(told.id, Appended(told.created_at, fresh[-1].n))
        self._more.set()

    def _remember(self, job_id: str, appended: Appended) -> None:
        self._known[job_id] = appended
        self._known.move_to_end(job_id)
        if len(self._known) > self._limits.known:
            _, dropped = self._known.popitem(last=False)
            self._surely_new = max(self._surely_new, dropped.created_at + 1)

    def _forget(self) -> None:
        self._known.clear()
        if not self._held:
            self._drop()
        self._held = False

    def _drop(self) -> None:
        self._groups.clear()
        self._waiting = sum(len(group.events) for group in self._sending)
        self._less.set()

    # Its way into the stream

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        appended_at = 0.0
        try:
            while self.over is None:
                await self._more.wait()
                self._more.clear()
                while self._groups and self.over is None:
                    await asyncio.sleep(max(0.0, appended_at + self._limits.pace_s - loop.time()))
                    appended_at = loop.time()
                    await self._append()
        except Exception:
            log.exception("relaying failed")
        finally:
            self._end("it failed")  # whatever ended it, another tenure begins

    async def _append(self) -> None:
        async with self._appending:
            if not self._groups:  # a reset has dropped them meanwhile
                return
            self._sending = self._next_batch()
            events = [event for group in self._sending for event in group.events]
            try:
                apart = len(events) == len(self._sending)  # the events of one entry are stored together
                self._last = await self._log.append(events, self._last, apart=apart)
            except Fenced:
                self._end("another projector relays")
                return
            except OjsError as error:
                self._end(error.message)
                return
            self.appended += len(events)
            metrics.RELAYED_EVENTS.inc(len(events))
            self._sending = []
            self._waiting -= len(events)
        self._less.set()
        self._settle()

    def _next_batch(self) -> list[TermGroup]:
        """Take the next groups out of the queue: one, and as many more as fit into one append."""
        taken = [self._groups.popleft()]
        number, size = len(taken[0].events), taken[0].size
        while self._groups:
            number += len(self._groups[0].events)
            size += self._groups[0].size
            if number > self._limits.batch or size > BATCH_BYTES:
                break
            taken.append(self._groups.popleft())
        return taken

    def _settle(self) -> None:
        # What was dropped is not done.
        if self.over is None and not self._held:
            first = next(iter(self._sending), None) or next(iter(self._groups), None)
            self.done = max(self.done, self._taken if first is None else first.sequence - 1)
        self.progress.set()

    def _end(self, reason: str) -> None:
        if self.over is None:
            self.over = reason
            self.ended.set()
            self._drop()
            self._more.set()
            self.progress.set()
