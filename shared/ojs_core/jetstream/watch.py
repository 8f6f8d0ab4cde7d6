"""Small records that every process knows by heart: a copy of some of the bucket's subjects that follows what is stored.

Each change arrives in order and after it is stored, some milliseconds later; a gap, a silence or a lost consumer makes the copy
anew. `fresh` says whether the copy is at most `FRESH_S` behind.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
import structlog

from ojs_core.base.errors import unavailable
from ojs_core.base.loops import start_loop, stop_loop
from ojs_core.jetstream.api import ask
from ojs_core.jetstream.connection import Connection, Failed, Reply, status
from ojs_core.jetstream.subjects import StoreConfig

log = structlog.get_logger(__name__)

FRESH_S: Final = 3.0
"""A copy that was not confirmed for longer may be behind by more than who relies on it can bear."""
_PULL_S: Final = 1.0
_MARGIN_S: Final = 1.0
_BATCH: Final = 256
_SECOND_NS: Final = 1_000_000_000
_IDLE_NS: Final = 30 * _SECOND_NS
_NOTHING: Final = frozenset({404, 408})
_FIRST_LOOK_S: Final = 3.0

WatchedEntry = tuple[int, bytes]
"""A record's sequence and body."""


class Watch:
    """`changed` is called after every change of `entries`."""

    def __init__(
        self, nats: Connection, config: StoreConfig, name: str, subjects: Sequence[str], changed: Callable[[], None]
    ) -> None:
        self._nats = nats
        self._stream = config.records_stream
        self._name = name
        self._subjects = list(subjects)
        self._changed = changed
        self._entries: dict[str, WatchedEntry] = {}
        self._loaded = asyncio.Event()
        self._confirmed = 0.0
        self._round = 0
        self._consumer: str | None = None
        self._count = 0
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
        return self._loaded.is_set() and asyncio.get_running_loop().time() - self._confirmed < FRESH_S

    async def begin(self) -> None:
        """Return when the copy has been complete once; starts it if need be. Raises OjsError backend_unavailable."""
        if self._task is None:
            self._task = start_loop(f"watch-{self._name}", self._run, tell=False)
        if not self._loaded.is_set() and not self._nats.connected:
            raise unavailable("settings can't be read: there is no connection to NATS")
        try:
            async with asyncio.timeout(_FIRST_LOOK_S):
                await self._loaded.wait()
        except TimeoutError:
            raise unavailable("settings can't be read: NATS is slow to send them") from None

    async def stop(self) -> None:
        await stop_loop(self._task)
        self._task = None
        self._drop()

    async def reset(self) -> None:
        """Forget everything: what a purge removed does not tell."""
        running = self._task is not None
        await self.stop()
        self._entries = {}
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
            self._drop()

    async def _follow(self) -> None:
        pending = await self._make_consumer()
        entries: dict[str, WatchedEntry] = {}
        while pending > 0:
            before = pending
            for message in await self._pull():
                pending -= 1
                _take(entries, message)
            if pending == before:
                raise unavailable("the first records did not come")
        self._entries = entries
        self._confirm()
        self._loaded.set()
        self._changed()
        while True:
            news = await self._pull()
            self._confirm()
            for message in news:
                known = self._entries.get(_subject(message))
                if known is None or known[0] < _sequence(message):
                    _take(self._entries, message)
            if news:
                self._changed()

    def _confirm(self) -> None:
        self._confirmed = asyncio.get_running_loop().time()

    async def _make_consumer(self) -> int:
        """Begin with the last record of each subject; returns how many there are."""
        self._round += 1
        name = f"{self._name}-{self._round}"
        config = {
            "name": name,
            "filter_subjects": self._subjects,
            "deliver_policy": "last_per_subject",
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": _IDLE_NS,
        }
        request = {"stream_name": self._stream, "config": config}
        answer = await ask(self._nats, f"CONSUMER.CREATE.{self._stream}.{name}", request, "a consumer of records")
        self._consumer, self._count = name, 0
        return int(answer.get("num_pending", 0))

    async def _pull(self) -> list[Reply]:
        """What is new, waiting up to `_PULL_S` for the first. Raises OjsError at a gap or without an answer."""
        request = {"batch": _BATCH, "no_wait": True, "expires": int(_PULL_S * _SECOND_NS)}
        pull = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
        outcome = await self._nats.collect(pull, msgspec.json.encode(request), _BATCH, _PULL_S + _MARGIN_S)
        if isinstance(outcome, Failed):
            raise unavailable(outcome.reason)
        if outcome.closing is None or (not outcome.messages and status(outcome.closing) not in _NOTHING):
            raise unavailable("the consumer of records is gone")
        for message in outcome.messages:
            self._count += 1
            if int(message.reply.rsplit(b".", 3)[1]) != self._count:
                raise unavailable("records were lost on the way")
        return outcome.messages

    def _drop(self) -> None:
        """The server would find out by itself after half a minute."""
        if self._consumer is not None:
            self._nats.publish(f"$JS.API.CONSUMER.DELETE.{self._stream}.{self._consumer}", b"", reply=self._nats.nobody)
            self._consumer = None


def _sequence(message: Reply) -> int:
    # $JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<timestamp ns>.<pending>
    return int(message.reply.rsplit(b".", 4)[1])


def _subject(message: Reply) -> str:
    return message.subject.decode(errors="backslashreplace")


def _take(entries: dict[str, WatchedEntry], message: Reply) -> None:
    subject = _subject(message)
    if message.data:
        entries[subject] = (_sequence(message), message.data)
    else:  # a marker
        entries.pop(subject, None)
