"""One holder's time as the relay: which entries are new, and their way into the event stream, in order and fenced.

Live events, which no stream keeps, take the same way as far as the stream: so each is heard behind the events of what its job
had been through, and ahead of those of what came later (docs/adr/062).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

import msgspec
import structlog
from msgspec import Struct

from ojs_core.base.errors import OjsError
from ojs_core.base.loops import stop_tasks
from ojs_core.domain.workflows.record import Workflow
from ojs_core.jetstream.event_log import Appended, EventLog, Fenced, LiveEvent, Outgoing
from ojs_core.jetstream.feed import Record
from ojs_core.jetstream.reading import RECORD_ERRORS, Unreadable
from ojs_core.jetstream.subjects import StoreConfig
from ojs_core.telemetry import metrics
from ojs_projector.index.model import Seen
from ojs_projector.relaying.event_sources import EventSource, creation_of, told_of

log = structlog.get_logger(__name__)

BATCH_BYTES: Final = 4 * 1024 * 1024
_SURELY_MS: Final = 10_000
"""What was created this long after the tenure began was relayed by nobody else, whatever the clocks of those who did it."""

_encode: Final = msgspec.json.Encoder().encode


ReadWorkflow = Callable[[str], Awaitable[Workflow | None]]
"""Read a workflow's record, None if there is none that can be read. Raises OjsError backend_unavailable."""


class TermLimits(Struct, frozen=True, kw_only=True):
    """How fast a tenure appends, and how much it remembers."""

    pace_s: float = 0.02
    """Between two appends: on one server a batch stalls the stream's other writers for milliseconds."""
    batch: int = 1_000
    """What nats-server takes at most, unless it is told otherwise."""
    waiting: int = 5_000
    """Events that may wait before reading waits for writing."""
    live: int = 5_000
    """Live events that may wait for what comes before them; those that come then are dropped."""
    known: int = 100_000
    """Jobs of which it remembers what was relayed."""


class TermGroup(NamedTuple):
    """The events of one log entry, which go into one append, so that its number stands for all of them; or a live event.

    `id` is of whom they tell, `line` of what is kept in order with it: a workflow, if it is a member of one.
    """

    sequence: int
    id: str
    line: str
    events: list[Outgoing]
    size: int
    live: LiveEvent | None = None


def _told(seen: Seen) -> EventSource | None:
    try:
        return told_of(seen)
    except (OjsError, *RECORD_ERRORS) as error:
        _note(seen.record, error)
        return None


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
        read: ReadWorkflow,
        *,
        last: int,
        began_at: int,
        done: int,
        limits: TermLimits,
    ) -> None:
        self._limits = limits
        self._log = event_log
        self._config = config
        self._read_workflow = read
        self._last = last
        self._surely_new = began_at + _SURELY_MS if last else 0
        self._known: OrderedDict[str, Appended] = OrderedDict()
        self._groups: deque[TermGroup] = deque()
        self._sending: list[TermGroup] = []
        self._waiting = 0
        self._early: dict[str, list[LiveEvent]] = {}
        """Live events by their jobs, whose last transition was not taken yet."""
        self._live = 0
        """How many live events wait, here or in `_groups`."""
        self._asking: dict[str, list[LiveEvent]] = {}
        """Those by their jobs of which it is being asked what was relayed."""
        self._asks: set[asyncio.Task[None]] = set()
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
        self.progress = asyncio.Event()
        """Set with every change of `done` or `over`."""

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="relay")

    async def stop(self) -> None:
        """End at once; what waits is relayed by the next tenure."""
        self._end("it was stopped")
        await stop_tasks([*self._asks, *([self._task] if self._task is not None else [])])

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
        sources = [(seen.record, _told(seen)) for seen in batch]
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
                    if told.member_of is not None and (workflow := created.pop(told.member_of, None)) is not None:
                        self._queue(record.sequence, workflow)
                    self._queue(record.sequence, told)
                except (OjsError, *RECORD_ERRORS) as error:  # one record's trouble must not keep the events of others back
                    _note(record, error)
        self._taken = batch[-1].record.sequence
        self._settle()
        while self._waiting > self._limits.waiting and self.over is None:
            self._less.clear()
            await self._less.wait()

    async def hold(self) -> None:
        """A reset begins: what waits concerns jobs that are being wiped. Lasts until the epoch that ends it is taken."""
        self._held = True
        self._drop()
        async with self._appending:
            pass

    @property
    def held(self) -> bool:
        return self._held

    def hear(self, live: LiveEvent) -> None:
        """Take a live event. One that its job has gone on from is dropped; where too many wait, one that has waited longest."""
        if self.over is not None:
            return
        if self._live >= self._limits.live:
            if not self._early:
                return
            self._live -= len(self._early.pop(next(iter(self._early))))
        self._live += 1
        known = None if self._held else self._known.get(live.job_id)  # jobs after a reset aren't those before it
        if live.job_id in self._asking:
            self._asking[live.job_id].append(live)
        elif known is not None or self._held or live.created_at >= self._surely_new:
            self._place(live, known)
        else:
            self._asking[live.job_id] = [live]
            task = asyncio.create_task(self._ask(live.job_id), name="relay-live")
            self._asks.add(task)
            task.add_done_callback(self._asks.discard)

    async def _ask(self, job_id: str) -> None:
        """Find the place of live events whose job wasn't met yet: it may have been relayed long ago."""
        try:
            appended = await self._log.last_of(job_id)
        except OjsError as error:
            self._live -= len(self._asking.pop(job_id))
            log.debug("live events were dropped", job_id=job_id, reason=error.message)
            return
        if appended is not None and job_id not in self._known:  # what was met meanwhile is newer
            self._remember(job_id, appended)
        for live in self._asking.pop(job_id):
            self._place(live, self._known.get(job_id))

    def _place(self, live: LiveEvent, known: Appended | None) -> None:
        relayed = Appended(0, 0) if known is None else known
        wanted = Appended(live.created_at, live.entry)
        if relayed < wanted:
            self._early.setdefault(live.job_id, []).append(live)
        elif relayed == wanted:
            self._groups.append(TermGroup(self._taken + 1, live.job_id, live.job_id, [], 0, live))
            self._more.set()
        else:
            self._live -= 1

    # What is new

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
        found = await asyncio.gather(*map(self._read_workflow, ahead))
        records = [creation_of(record) for record in found if record is not None]
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
        if told.id in self._asking:  # the answer will be about a later entry
            asking, self._asking[told.id] = self._asking[told.id], []
            for live in asking:
                self._place(live, known)
        early = self._early.get(told.id, [])
        if not fresh:
            self._early.pop(told.id, None)
            for live in early:
                self._place(live, known)
            return
        if fresh[0].n > number + 1:
            log.warning("transitions left the log unseen", id=told.id, entries=fresh[0].n - number - 1)
        made = []
        line = told.member_of or told.id
        for entry in fresh:
            events = [
                Outgoing(
                    self._config.event(event.type, told.scope, told.id), _encode(event), told.created_at, entry.n, sequence
                )
                for event in told.events(entry)
            ]
            if events:
                made.append(TermGroup(sequence, told.id, line, events, sum(len(event.body) for event in events)))
            here = [live for live in early if (live.created_at, live.entry) == (told.created_at, entry.n)]
            made += [TermGroup(sequence, told.id, line, [], 0, live) for live in here]
            early = [live for live in early if live not in here]
        self._early.pop(told.id, None)
        self._groups += made
        self._waiting += sum(len(group.events) for group in made)
        self._remember(told.id, appended := Appended(told.created_at, fresh[-1].n))
        self._more.set()
        for live in early:
            self._place(live, appended)

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
        self._early.clear()
        self._asking.clear()
        for task in self._asks:
            task.cancel()
        self._live = 0
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
            self._sending = self._next_batch()
            events = [event for group in self._sending for event in group.events]
            try:
                if events:
                    self._last = await self._log.append(events, self._last)
            except Fenced:
                self._end("another projector relays")
                return
            except OjsError as error:
                self._end(error.message)
                return
            self.appended += len(events)
            metrics.RELAYED_EVENTS.inc(len(events))
            for group in self._sending:
                if group.live is not None:
                    self._log.publish(group.live)
            self._sending = []
            self._waiting -= len(events)
        self._less.set()
        self._settle()

    def _next_batch(self) -> list[TermGroup]:
        """Take the next groups out of the queue. Those of a job that come behind a live event of it stay for the next batch,
        since that is published when the batch is stored.
        """
        taken: list[TermGroup] = []
        stay: list[TermGroup] = []
        told: set[str] = set()
        later: set[str] = set()
        number = size = 0
        while self._groups:
            group = self._groups.popleft()
            if group.id in later or group.line in later or (group.id in told and group.live is None):
                later |= {group.id, group.line}
                stay.append(group)
                continue
            if number and (number + len(group.events) > self._limits.batch or size + group.size > BATCH_BYTES):
                stay.append(group)
                break
            taken.append(group)
            number += len(group.events)
            size += group.size
            if group.live is not None:
                told.add(group.id)
                self._live -= 1
        self._groups.extendleft(reversed(stay))
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
            self._drop()
            self._more.set()
            self.progress.set()
