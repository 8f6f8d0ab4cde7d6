"""Bounded queues: no more than `max_size` jobs of a queue wait in `available` because of pushes (architecture §5).

Whoever wants to push takes places first: one message `ojs.ready.<queue>.seat.<number>`, stored only if nothing has been added
to the queue's ready subjects since they were counted (a compare-and-swap over the wildcard). The push itself then goes its
usual way, and the places are given back once its tokens are there. So the bound holds exactly for any number of gateways and
any kind of push. Retries, requeues and the jobs of workflows take no places and are never refused.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple
from weakref import WeakValueDictionary

import msgspec
import structlog

from ojs_nats import metrics, transitions
from ojs_nats.crossings import Bound, level_of, pressed
from ojs_nats.errors import OjsError, queue_full, unavailable
from ojs_nats.job import Job, State
from ojs_nats.store.api import call, parse_ack, refused
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Committer, Conflict
from ojs_nats.store.crossings import Crossings
from ojs_nats.store.link import Failed, Link, header, status
from ojs_nats.store.names import StoreConfig
from ojs_nats.store.queues import Queues
from ojs_nats.store.records import Records

__all__ = ["Bounds", "Pressure"]

log = structlog.get_logger(__name__)

MAX_TRIES: Final = 200
"""Conflicts of one request with pushes through other gateways."""
_PAUSE_S: Final = 0.005
_WAIT_S: Final = 2.0
"""How long places that others have taken are waited for."""
_SEAT_MS: Final = 10_000
"""Places that are older were taken by somebody who died."""
_LOOKED_AT: Final = 128
"""Tokens that are judged at a time when a queue seems full."""
_NOT_FOUND: Final = 10037
_WARNING: Final = 0.8
_READ_S: Final = 2.0


class Pressure(NamedTuple):
    """How full a bounded queue was when this process last pushed to it."""

    depth: int
    bound: int
    threshold: float

    @property
    def ratio(self) -> float:
        return self.depth / self.bound


class _Standing(NamedTuple):
    """What the ready subjects of a queue hold: the last sequence, tokens, and places taken by number of messages."""

    sequence: int
    tokens: int
    seats: int


class _Message(NamedTuple):
    """One message of the ready stream; `at` is when it was stored (Unix ms)."""

    sequence: int
    at: int
    data: bytes


class Bounds:
    """Takes places in bounded queues; one at a time per queue within a process, since they exclude each other anyway."""

    def __init__(
        self,
        link: Link,
        bulk: Link,
        records: Records,
        committer: Committer,
        queues: Queues,
        reached: Crossings,
        clock: ServerClock,
        config: StoreConfig,
    ) -> None:
        self._link = link
        self._bulk = bulk
        self._records = records
        self._committer = committer
        self._queues = queues
        self._reached = reached
        self._clock = clock
        self._config = config
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._pressure: dict[str, Pressure] = {}

    def pressure(self, queue: str) -> Pressure | None:
        """None if the queue has no bound, or this process hasn't pushed to it."""
        return self._pressure.get(queue) if self._queues.bound(queue) else None

    async def observe(self, queue: str, depth: int) -> None:
        """Note that a queue holds `depth` tokens, if it is bounded: it may be nearly full or full, or not any more."""
        bound = self._queues.bound(queue)
        if not bound:
            return
        scope = f"bound.{queue.replace('.', '_')}"
        found = Bound(queue, max(depth, 0), bound, self._threshold(queue))
        level = level_of(found, self._reached.level(scope))
        await self._reached.note(scope, level, lambda old, moment: pressed(old, found, moment))

    @asynccontextmanager
    async def places(self, queue: str, number: int) -> AsyncIterator[None]:
        """Hold places for the time of a push. Raises OjsError queue_full; a queue without a bound costs nothing."""
        bound = self._queues.bound(queue)
        if not bound or not number:
            yield
            return
        turn = self._turns.setdefault(queue, asyncio.Lock())
        async with turn:
            try:
                seat, depth = await self._take(queue, number, bound)
            except OjsError as error:
                if error.code == "queue_full":
                    await self.observe(queue, bound)
                raise
            try:
                yield
            finally:
                self._delete(seat)
            await self.observe(queue, depth)

    @asynccontextmanager
    async def places_for(self, drafts: Iterable[Job]) -> AsyncIterator[None]:
        """Hold places for all jobs that enter their queues at once, or for none. As `places`."""
        now = self._clock.now()
        wanted = Counter(draft.queue for draft in drafts if transitions.waits_at_once(draft, now))
        async with AsyncExitStack() as held:
            for queue in sorted(wanted):  # in one order for all, or two batches would wait for each other
                await held.enter_async_context(self.places(queue, wanted[queue]))
            yield

    async def _take(self, queue: str, number: int, bound: int) -> tuple[int, int]:
        """The sequence of the message that holds the places, and how many tokens there will be."""
        until = asyncio.get_running_loop().time() + _WAIT_S
        for _ in range(MAX_TRIES):
            standing = await self._count(queue)
            self._remember(queue, standing.tokens, bound)
            if standing.tokens + standing.seats + number <= bound:
                seat = await self._sit(queue, number, standing.sequence)
                if seat is not None:
                    depth = standing.tokens + number
                    self._remember(queue, depth, bound)
                    return seat, depth
            elif standing.seats and standing.tokens + number <= bound and asyncio.get_running_loop().time() < until:
                await self._clear_seats(queue)
                await asyncio.sleep(_PAUSE_S)  # others' pushes are under way, and may fail
            elif number > bound or not await self._make_room(queue, standing.tokens + standing.seats + number - bound):
                metrics.rejected(queue)
                raise queue_full(queue, standing.tokens, bound, self._policy(queue))
        raise unavailable(f"queue {queue!r} is too busy to be bounded; try again")

    def _policy(self, queue: str) -> str:
        config = self._queues.config(queue)
        return config.overflow_policy or "reject"

    def _remember(self, queue: str, depth: int, bound: int) -> None:
        self._pressure[queue] = Pressure(depth, bound, self._threshold(queue))

    def _threshold(self, queue: str) -> float:
        threshold = self._queues.config(queue).warning_threshold
        return _WARNING if threshold is None else threshold

    # Counting and sitting down

    async def _count(self, queue: str) -> _Standing:
        """The sequence first: what is added after it makes the swap fail."""
        stream, everything = self._config.ready_stream, self._config.ready_of_queue(queue)
        last = await call(self._link, f"STREAM.MSG.GET.{stream}", {"last_by_subj": everything})
        error = last.get("error")
        if error is not None and error.get("err_code") != _NOT_FOUND:
            raise unavailable(f"NATS refused a read of tokens: {error.get('description')}")
        info = await call(self._link, f"STREAM.INFO.{stream}", {"subjects_filter": everything})
        if "error" in info:
            raise unavailable(f"NATS refused to say what is ready: {info['error'].get('description')}")
        tokens = seats = 0
        for subject, messages in (info["state"].get("subjects") or {}).items():
            size = self._config.seat_size(subject)
            tokens += 0 if size else messages
            seats += size * messages
        return _Standing(0 if error is not None else int(last["message"]["seq"]), tokens, seats)

    async def _sit(self, queue: str, number: int, sequence: int) -> int | None:
        """None if somebody else was faster."""
        answer = await self._link.request(
            self._config.seat(queue, number),
            b"",
            f"Nats-Expected-Last-Subject-Sequence: {sequence}\r\n"
            f"Nats-Expected-Last-Subject-Sequence-Subject: {self._config.ready_of_queue(queue)}\r\n",
        )
        if isinstance(answer, Failed):
            raise unavailable(f"NATS JetStream can't be reached: {answer.reason}")
        ack = parse_ack(answer.data)
        if ack.conflict:
            return None
        if ack.error is not None:
            raise refused("a place in a queue", ack.error)
        return ack.seq

    def _delete(self, sequence: int) -> None:
        """Let a message of the ready stream go; if that is lost, a full queue's next pusher finds it."""
        body = b'{"seq":%d,"no_erase":true}' % sequence
        subject = f"$JS.API.STREAM.MSG.DELETE.{self._config.ready_stream}"
        self._link.publish(subject, body, reply=self._link.nobody)

    async def _clear_seats(self, queue: str) -> None:
        """Let places go that nobody will give back."""
        horizon = self._clock.now() - _SEAT_MS
        for message in await self._oldest(self._config.seat_of_queue(queue)):
            if message.at < horizon:
                self._delete(message.sequence)

    # Making room

    async def _make_room(self, queue: str, wanted: int) -> bool:
        """Delete tokens that stand for nothing any more, and drop the oldest jobs where the queue says so; whether any."""
        dropping = self._policy(queue) == "drop_oldest"
        made = 0
        for token in await self._oldest(self._config.ready_of_queue(queue)):
            if made >= wanted:
                break
            job_id, _, rest = token.data.decode(errors="replace").partition(" ")
            if not rest:
                continue
            stored = await self._records.leader_for_hint(job_id)
            job = stored.job
            waits = job is not None and job.state is State.AVAILABLE and job.token == rest.partition(" ")[0]
            if job is None or (not waits and stored.sequence == int(rest.partition(" ")[2] or 0)):
                continue  # its record is on the way
            if waits and not (dropping and await self._drop(job, stored.sequence)):
                continue
            self._delete(token.sequence)
            made += 1
        return made > 0

    async def _drop(self, job: Job, sequence: int) -> bool:
        moment = self._clock.moment()
        try:
            await self._committer.commit(transitions.drop(job, "overflow", moment), sequence, moment.op)
        except Conflict:  # it is fetched or cancelled just now
            return False
        metrics.dropped(job.queue)
        log.info("job dropped to make room", job_id=job.id, queue=job.queue)
        return True

    async def _oldest(self, subjects: str) -> list[_Message]:
        request: dict[str, Any] = {"seq": 1, "next_by_subj": subjects, "batch": _LOOKED_AT}
        get = f"$JS.API.DIRECT.GET.{self._config.ready_stream}"
        outcome = await self._bulk.collect(get, msgspec.json.encode(request), 0, _READ_S)
        if isinstance(outcome, Failed) or outcome.closing is None or status(outcome.closing) not in {204, 404}:
            raise unavailable("NATS did not answer a read of tokens")
        return [
            _Message(int(header(message, b"Nats-Sequence") or 0), _stored_at(header(message, b"Nats-Time-Stamp")), message.data)
            for message in outcome.messages
        ]


def _stored_at(stamp: bytes | None) -> int:
    return int(datetime.fromisoformat((stamp or b"1970-01-01T00:00:00Z").decode()).timestamp() * 1000)
