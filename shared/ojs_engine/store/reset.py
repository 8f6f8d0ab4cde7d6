"""Wiping everything between tests (test mode only): purge, then every live service says that it holds nothing any more.

A purge leaves no trace in a stream, so an epoch record follows it: whoever follows the bucket learns from the record's
place that all jobs before it are gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, get_args

import structlog

from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.base.waiting import within
from ojs_engine.jetstream.api import purge, put
from ojs_engine.jetstream.connection import Connection, Reply
from ojs_engine.jetstream.inboxes import Inboxes
from ojs_engine.jetstream.subjects import LASTING, REST, Kind, StoreConfig
from ojs_engine.store.workers.presence import Presence
from ojs_link.address import INBOX
from ojs_link.timings import Timings

Drop = Callable[[], Awaitable[None]]

log = structlog.get_logger(__name__)

_WIPED: Final = [kind for kind in get_args(Kind) if kind not in LASTING]


class ResetTimings(Timings, frozen=True, kw_only=True):
    """How long a reset waits."""

    purge_s: float = 60.0
    """How long a purge may take: nats-server checks each message that it purges by subject."""
    look_s: float = 0.5
    """How often it is looked whether others have answered."""


class Reset:
    """The asking side and the answering side of a reset."""

    def __init__(
        self,
        nats: Connection,
        presence: Presence,
        config: StoreConfig,
        instance: str,
        drop: Callable[[], None],
        timings: ResetTimings,
    ) -> None:
        self._timings = timings
        self._nats = nats
        self._presence = presence
        self._config = config
        self._inboxes = Inboxes([config.reset_answers, INBOX])
        self._instance = instance
        self._drop = drop
        self._answers: set[asyncio.Task[None]] = set()
        self.listeners: list[Drop] = []
        """Awaited before this process answers a reset; each must end within a second or so."""

    async def listen(self) -> None:
        """Take part in resets. In test mode only: whoever can publish to NATS could wipe what this process knows."""
        await self._nats.listen(self._config.reset, self._asked)

    async def run(self, kinds: Iterable[str]) -> None:
        """Wipe jobs, workers, tokens, timers and events, and records of these kinds that features have.

        Service beats stay. Raises OjsError when a service is silent.
        """
        try:
            await self._clear(list(dict.fromkeys((*_WIPED, *kinds))))
        finally:
            await self._mark_epoch()
        log.info("everything was reset")

    async def _clear(self, kinds: Sequence[str]) -> None:
        await self._purge(kinds)
        answered: set[str] = set()
        heard = asyncio.Event()

        def hear(message: Reply) -> None:
            answered.add(message.data.decode())
            heard.set()

        inbox = f"{self._config.reset_answers}{self._instance}"
        stop = await self._nats.listen(inbox, hear)
        # Longer than a process that was killed still counts as live.
        deadline = asyncio.get_running_loop().time() + 2 * self._presence.timings.max_gap_ms / 1_000
        try:
            self._nats.publish(self._config.reset, b"", reply=inbox)
            while silent := set(await self._presence.live()) - answered:
                if asyncio.get_running_loop().time() > deadline:
                    raise unavailable(f"these services did not answer the reset: {', '.join(sorted(silent))}")
                heard.clear()
                await within(self._timings.look_s, heard)
        finally:
            await stop()
        await self._purge(kinds)  # what a service wrote while it was asked

    async def _mark_epoch(self) -> None:
        await put(self._nats, self._config.epoch, self._instance.encode(), None, "the end of a reset")

    async def _purge(self, kinds: Sequence[str]) -> None:
        records = self._config.records_stream
        filters = [self._config.record(kind, REST) for kind in kinds] + self._config.hints
        wanted = [(records, subject) for subject in filters]
        wanted += [(self._config.ready_stream, ""), (self._config.events_stream, "")]
        purges = (purge(self._nats, stream, subject, self._timings.purge_s) for stream, subject in wanted)
        for error in await asyncio.gather(*purges, return_exceptions=True):
            if isinstance(error, BaseException):
                raise error
            if error is not None:
                raise OjsError("backend_error", f"a purge was refused: {error.description}")

    def _asked(self, message: Reply) -> None:
        if not self._inboxes.admit(message):
            return
        self._drop()
        task = asyncio.create_task(self._answer(message.reply.decode()), name="reset")
        self._answers.add(task)
        task.add_done_callback(self._answers.discard)

    async def _answer(self, inbox: str) -> None:
        for listener in self.listeners:
            await listener()
        self._nats.publish(inbox, self._instance.encode())
