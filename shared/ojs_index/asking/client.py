"""The asking side: a barrier, the question, and the wait for an answer that has seen the barrier."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final, TypeVar

import msgspec
from msgspec import Struct

from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.jetstream.api import put
from ojs_engine.jetstream.connection import Failed
from ojs_engine.store.store import Store
from ojs_index.asking.messages import (
    BEHIND,
    Answer,
    Ask,
    AskOutcome,
    Concerns,
    ConcernsAsk,
    DeadLettersAsk,
    DeadLetterStats,
    Dispatches,
    DispatchesAsk,
    JobPage,
    JobsAsk,
    ProjectorStatus,
    QueueAsk,
    QueuesAsk,
    RelayedAnswer,
    StatsAsk,
    UnreadableAsk,
    UnreadablePage,
    WorkerPage,
    WorkersAsk,
)
from ojs_index.asking.numbers import Levels, Queue, QueuePage, Totals
from ojs_link.timings import Order, Timings

_NOBODY: Final = "no projector answers; start one with 'ojs-nats projector'"

T = TypeVar("T", bound=Struct)
A = TypeVar("A", bound=Answer)

_encode: Final = msgspec.json.Encoder().encode
_decode_outcome: Final = msgspec.json.Decoder(AskOutcome).decode


class QueryTimings(Timings, frozen=True, kw_only=True):
    """How long answers of projectors are waited for."""

    wait_s: float = 2.0
    """How long projectors wait until they have come so far."""
    margin_s: float = 1.0
    """How long their answer may take beyond that."""
    barrier_s: int = 60
    """How long a barrier stays."""
    order: ClassVar[Order] = (("wait_s", "barrier_s", "a barrier would be gone before an index has come so far"),)


def settled(answer: A) -> A:
    """An answer by which something is decided or done. Raises OjsError backend_unavailable while the index is built anew."""
    if answer.partial:
        raise unavailable("the index of jobs is being built; send the request again later", retry_after=5)
    return answer


class Queries:
    """Asks the projectors. All methods raise OjsError backend_unavailable: no projector, or one that is behind."""

    def __init__(self, store: Store, timings: QueryTimings = QueryTimings()) -> None:
        self._timeout_s = timings.wait_s + timings.margin_s
        self._nats = store.bulk
        self._config = store.config
        self._barrier = Barrier(store, timings)

    async def queue(self, name: str) -> Queue:
        """One queue's statistics; all zero if nothing is known of it."""
        return await self.ask("queue", QueueAsk(name=name), Queue)

    async def levels(self, name: str) -> Levels:
        """One queue's available jobs by priority."""
        return await self.ask("levels", QueueAsk(name=name), Levels)

    async def queues(self, ask: QueuesAsk) -> QueuePage:
        return await self.ask("queues", ask, QueuePage)

    async def totals(self) -> Totals:
        """All queues together."""
        return await self.ask("totals", Ask(), Totals)

    async def jobs(self, ask: JobsAsk) -> JobPage:
        return await self.ask("jobs", ask, JobPage)

    async def dead_letters(self, ask: DeadLettersAsk) -> JobPage:
        return await self.ask("dead_letters", ask, JobPage)

    async def dead_letter_stats(self, queue: str | None = None) -> DeadLetterStats:
        return await self.ask("dead_letter_stats", StatsAsk(queue=queue), DeadLetterStats)

    async def dispatches(self, also: tuple[str, ...] = ()) -> Dispatches:
        """What was handed out within the last minute, by queue; `also` names queues to list in any case."""
        return await self.ask("dispatches", DispatchesAsk(also=also), Dispatches)

    async def concerns(self, paused: tuple[str, ...]) -> Concerns:
        """The queues that an operator may have to see to."""
        return await self.ask("concerns", ConcernsAsk(paused=paused), Concerns)

    async def workers(self, ask: WorkersAsk) -> WorkerPage:
        return await self.ask("workers", ask, WorkerPage)

    async def unreadable(self, ask: UnreadableAsk) -> UnreadablePage:
        return await self.ask("unreadable", ask, UnreadablePage)

    async def status(self) -> ProjectorStatus:
        """Of whichever projector answers; the only question that waits for nothing."""
        return await self._send("status", Ask(), ProjectorStatus)

    async def until_relayed(self) -> None:
        """Return when the events of everything that was stored before are in the event stream."""
        await self.ask("relayed", Ask(), RelayedAnswer)

    async def ask(self, name: str, ask: Ask | JobsAsk, answer: type[T]) -> T:
        """Ask a question by its name. A feature has its own."""
        sequence = await self._barrier.sequence()
        return await self._send(name, msgspec.structs.replace(ask, barrier=sequence), answer)

    async def _send(self, name: str, ask: Ask | JobsAsk, answer: type[T]) -> T:
        body, timeout_s = _encode(ask), self._timeout_s
        reply = await self._nats.request(self._config.query(name), body, timeout_s=timeout_s)
        if isinstance(reply, Failed) and not reply.sent:  # nobody listens
            reply = await self._nats.request(self._config.query(name, building=True), body, timeout_s=timeout_s)
        if isinstance(reply, Failed):
            raise unavailable("the projector is slow; try again" if reply.sent else _NOBODY)
        outcome = _decode_outcome(reply.data)
        if outcome.error == BEHIND:
            raise unavailable("the projector is behind; try again")
        if outcome.error is not None:
            raise OjsError("backend_error", f"the projector can't answer: {outcome.error}")
        return msgspec.json.decode(outcome.answer, type=answer)


class Barrier:
    """Barrier writes, one at a time: all who ask during one share the next. An index that has reached one has seen everything
    that was stored before it was asked for.
    """

    def __init__(self, store: Store, timings: QueryTimings = QueryTimings()) -> None:
        self._kept_s = timings.barrier_s
        self._nats = store.nats
        self._subject = store.config.record("barrier", store.instance)
        self._running: asyncio.Task[int] | None = None
        self._following: asyncio.Task[int] | None = None

    async def sequence(self) -> int:
        """Write a barrier after now; returns its sequence."""
        if self._following is None:
            self._following = asyncio.create_task(self._after(self._running), name="barrier")
            # Those who wait may all have gone by the time it fails.
            self._following.add_done_callback(lambda task: None if task.cancelled() else task.exception())
        return await asyncio.shield(self._following)

    async def _after(self, running: asyncio.Task[int] | None) -> int:
        if running is not None:
            await asyncio.wait([running])
            del running  # a failure keeps this frame, which would keep the failure before it, and so on
        self._running, self._following = self._following, None
        return await put(self._nats, self._subject, b"", self._kept_s, "a barrier")
