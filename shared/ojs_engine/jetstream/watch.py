"""Small records that every process knows by heart: a copy of some of the bucket's subjects that follows what is stored.

Each change arrives in order and after it is stored, some milliseconds later; a gap, a silence or a lost consumer makes the copy
anew. `fresh` says whether the copy is at most `fresh_s` behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from ojs_engine.base.errors import unavailable
from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.waiting import until_next, within
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.consumers import Delivery
from ojs_engine.jetstream.lost_records import Known, Lasts, LostRecords, LostRecordTimings, stays
from ojs_engine.jetstream.ordered_consumer import OrderedConsumer, OrderedTimings
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_link.timings import Order, Timings

WatchedEntry = tuple[int, bytes]
"""A record's sequence and body."""


class WatchTimings(Timings, frozen=True, kw_only=True):
    """How far copies may be behind, and how long their parts are waited for."""

    fresh_s: float = 3.0
    """A copy that was not confirmed for longer may be behind by more than its readers can bear."""
    pull_s: float = 2.0
    """How long a pull waits for news; each answer confirms the copy, and costs nats-server two messages."""
    margin_s: float = 1.0
    """How long its answer may take beyond that."""
    first_s: float = 3.0
    """How long the first copy is waited for."""
    consumer: OrderedTimings = OrderedTimings()
    """Its consumer."""
    lost: LostRecordTimings = LostRecordTimings()
    """Records that NATS has lost."""
    order: ClassVar[Order] = (
        ("answer_s", "fresh_s", "a copy would count as behind while there is no news"),
        ("answer_s", "consumer.idle_s", "the consumer would leave while its answer is waited for"),
    )

    @property
    def answer_s(self) -> float:
        """How long the answer of a pull may take in all."""
        return self.pull_s + self.margin_s


class Watch:
    """`changed` is called after every change of `entries`.

    `lost` keeps records that are gone without a trace, None if it doesn't matter. `lasts` says when one leaves by
    its own time.
    """

    def __init__(
        self,
        nats: Connection,
        config: StoreConfig,
        name: str,
        subjects: Sequence[str],
        changed: Callable[[], None],
        lost: LostRecords | None = None,
        lasts: Lasts = stays,
        timings: WatchTimings = WatchTimings(),
    ) -> None:
        self._timings = timings
        self._nats = nats
        self._name = name
        self._consumer = OrderedConsumer(nats, config.records_stream, name, subjects, timings=timings.consumer)
        self._changed = changed
        self._lost = lost
        self._lasts = lasts
        self._entries: dict[str, WatchedEntry] = {}
        self._stored_at: dict[str, int] = {}
        self._loaded = asyncio.Event()
        self._confirmed = 0.0
        self._task: asyncio.Task[None] | None = None

    @property
    def entries(self) -> Mapping[str, WatchedEntry]:
        """The records by subject."""
        return self._entries

    @property
    def loaded(self) -> bool:
        """Whether there is a copy."""
        return self._loaded.is_set()

    @property
    def fresh(self) -> bool:
        return self._loaded.is_set() and asyncio.get_running_loop().time() - self._confirmed < self._timings.fresh_s

    async def begin(self) -> None:
        """Return when the copy has been complete once; starts it if need be. Raises OjsError backend_unavailable."""
        if self._task is None:
            self._task = start_loop(f"watch-{self._name}", self._run, tell=False)
        if not self._loaded.is_set() and not self._nats.connected:
            raise unavailable("settings can't be read: there is no connection to NATS")
        if not await within(self._timings.first_s, self._loaded):
            raise unavailable("settings can't be read: NATS is slow to send them")

    async def stop(self) -> None:
        await stop_loop(self._task)
        self._task = None

    async def reset(self) -> None:
        """Forget everything: what a purge removed does not tell."""
        running = self._task is not None
        await self.stop()
        self._entries = {}
        self._stored_at = {}
        self._loaded.clear()
        self._changed()
        if running:
            await self.begin()

    def put(self, subject: str, sequence: int, body: bytes) -> None:
        """What this process wrote itself, so that it need not wait to hear of it."""
        known = self._entries.get(subject)
        if known is None or known[0] < sequence:
            self._entries[subject] = (sequence, body)
            self._changed()

    async def _run(self) -> None:
        """One consumer's life."""
        try:
            await self._follow()
        finally:
            self._consumer.drop()

    async def _follow(self) -> None:
        pending = await self._consumer.begin({"deliver_policy": "last_per_subject"})
        found: dict[str, Known] = {}
        empty = False
        # One pull at least: on a cluster a new consumer may not be reached yet, and a copy that begins with a loss is behind.
        while True:
            first = await self._pull(self._timings.pull_s if pending else 0.0)
            pending -= len(first)
            for one in first:
                _take(found, one)
            if pending <= 0:
                break
            if not first:  # nats-server counts what it can't find any more: only a process that knows can tell
                if self._lost is not None and self._entries and empty:
                    break
                if not self._entries or empty:
                    raise unavailable("the first records did not come")
                empty = True
        if self._lost is not None:
            if self._entries:
                found |= await self._lost.kept(self._known(), found, self._away_s, self._lasts)
            await self._lost.begin()
        self._replace(found)
        self._confirm()
        self._loaded.set()
        self._changed()
        while True:
            news = await self._pull(until_next(self._timings.pull_s))
            self._confirm()
            for one in news:
                self._hear(one)
            if news:
                self._changed()

    def _known(self) -> dict[str, Known]:
        return {subject: Known(*one, self._stored_at.get(subject, 0)) for subject, one in self._entries.items()}

    def _replace(self, found: Mapping[str, Known]) -> None:
        self._entries = {subject: (one.sequence, one.body) for subject, one in found.items() if one.body}
        self._stored_at = {subject: one.at for subject, one in found.items() if one.body}

    def _hear(self, one: Delivery) -> None:
        subject = _subject(one)
        known = self._entries.get(subject)
        if known is not None and known[0] > one.sequence:
            return
        if one.message.data:
            self._entries[subject] = (one.sequence, one.message.data)
            self._stored_at[subject] = one.at
        else:  # a marker
            self._entries.pop(subject, None)
            self._stored_at.pop(subject, None)

    @property
    def _away_s(self) -> float:
        return asyncio.get_running_loop().time() - self._confirmed

    def _confirm(self) -> None:
        self._confirmed = asyncio.get_running_loop().time()

    async def _pull(self, wait_s: float) -> list[Delivery]:
        """What is new, waiting for it for so long. Raises OjsError at a gap or without an answer."""
        news = self._consumer.take(await self._consumer.pull(wait_s, self._timings.margin_s))
        if not self._consumer.live:
            raise unavailable("records were lost on the way")
        return news


class Watches:
    """The copies of small records that one process keeps. They forget together at a reset, and end together."""

    def __init__(self, nats: Connection, config: StoreConfig, instance: str, timings: WatchTimings) -> None:
        self._timings = timings
        self._nats = nats
        self._config = config
        self._instance = instance
        self.lost = LostRecords(nats, config, timings.lost)
        """Records that this process knows and NATS has lost."""
        self._wiped: list[Watch] = []
        self._kept: list[Watch] = []

    def add(
        self,
        name: str,
        subjects: Sequence[str],
        changed: Callable[[], None],
        *,
        lasts: Lasts = stays,
        stays_at_reset: bool = False,
    ) -> Watch:
        """Return a new one, which begins when it is first asked. `name` is that of its consumers."""
        name = f"{name}-{self._instance}"
        watch = Watch(self._nats, self._config, name, subjects, changed, self.lost, lasts, self._timings)
        (self._kept if stays_at_reset else self._wiped).append(watch)
        return watch

    async def reset(self) -> None:
        """Forget everything that a reset wipes."""
        await asyncio.gather(*(watch.reset() for watch in self._wiped))

    async def stop(self) -> None:
        await asyncio.gather(*(watch.stop() for watch in (*self._wiped, *self._kept)))


def _subject(one: Delivery) -> str:
    return one.message.subject.decode(errors="backslashreplace")


def _take(found: dict[str, Known], one: Delivery) -> None:
    """Note what a subject holds; a marker has no body."""
    found[_subject(one)] = Known(one.sequence, one.message.data, one.at)
