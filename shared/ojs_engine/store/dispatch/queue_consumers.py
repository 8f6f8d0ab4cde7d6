"""The durable consumers of ready subjects that are asked for often: one each, never let go while their queue is paused."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final, Literal

import structlog

from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.base.lru import Lru
from ojs_engine.base.times import format_ms
from ojs_engine.jetstream.api import ApiError
from ojs_engine.jetstream.consumers import SECOND_NS, is_paused, let_go, make_in_memory, remove
from ojs_engine.jetstream.subjects import handled_by_lane, lane_of
from ojs_engine.store.queues.queues import Queues
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.telemetry import metrics
from ojs_engine.telemetry.logs import SeldomLog
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)

_EXISTS: Final = frozenset({10105, 10148})
_TOO_MANY: Final = frozenset({10002, 10026})
"""Of the account, and of the stream."""
_TRIES: Final = 8
_SUBJECTS: Final = 10_000
"""Ready subjects whose use this process remembers."""


class ConsumerTimings(Timings, frozen=True, kw_only=True):
    """When a ready subject gets a durable consumer, and for how long."""

    busy_pulls: int = 10
    """So many pulls of one process within `window_s` make a subject busy enough for a durable."""
    idle_s: int = 30
    """A durable that no process pulls from leaves after this long."""
    rest_s: float = 5.0
    """How long no other durable is asked for when there can't be more."""
    newborn_ms: int = 5_000
    """How long a durable stays paused if whoever made it dies before it has let it go."""
    let_go_s: float = 1.0
    """How long a new durable is waited for on a cluster until its pause has ended."""
    known_s: float = 20.0
    """After its last use a durable is believed to be there for this long."""
    window_s: float = 10.0
    """How long pulls are counted together."""
    log_s: float = 60.0
    """The least time between two lines of the log that there can be no more durables."""


Way = Literal["durable", "head", "held"]
"""How a subject's tokens are to be had: pulled from its durable, taken from its head, or not at all since it is held."""


@dataclass(slots=True)
class _Use:
    """What a process knows of a subject (loop times): pulls since the window began, its durable's last use, and
    whether its jobs ask for a gate.
    """

    since: float
    pulls: int = 0
    durable_at: float | None = None
    gated: bool = False


class QueueConsumers:
    """Decides who gets a durable, makes it, and knows which are there (docs/adr/029)."""

    def __init__(self, bucket: Bucket, queues: Queues, timings: ConsumerTimings) -> None:
        self._timings = timings
        self._nats = bucket.bulk
        self._queues = queues
        self._clock = bucket.clock
        self._config = bucket.config
        self._uses: Lru[_Use] = Lru(_SUBJECTS)
        self._full_until = 0.0
        self._told = SeldomLog(self._timings.log_s)

    async def way(self, subject: str, queue: str, *, much: bool = False) -> Way:
        """How to pull from a subject now; makes its durable when it has become busy, if there is `much` to be pulled,
        or if its jobs pass a gate.

        A fetch that loses a race for such a job may have used up its leave; a durable delivers it to one fetch only.
        What is put aside for other workers is there for a while, and has none: a pause needn't know of such lanes.
        """
        if handled_by_lane(lane_of(subject)) is not None:
            return "head"
        now = asyncio.get_running_loop().time()
        use = self._use(subject)
        if use.durable_at is not None and now - use.durable_at < self._timings.known_s:
            use.durable_at = now
            return "durable"
        if now - use.since > self._timings.window_s:
            use.since, use.pulls = now, 0
        use.pulls += 1
        gated = use.gated or self._queues.gate(queue) is not None
        if (use.pulls <= self._timings.busy_pulls and not much and not gated) or now < self._full_until:
            return "head"
        return await self.make(subject, queue)

    def serve(self, subject: str) -> bool:
        """Whether a durable of the subject is believed to be there."""
        use = self._uses.get(subject)
        return use is not None and use.durable_at is not None

    def gated(self, subject: str) -> None:
        """Note that jobs of a subject ask for a gate."""
        self._use(subject).gated = True

    def _use(self, subject: str) -> _Use:
        use = self._uses.get(subject)
        if use is None:
            use = _Use(asyncio.get_running_loop().time())
            self._uses.put(subject, use, 1)
        return use

    async def make(self, subject: str, queue: str) -> Way:
        """Make the one durable of a ready subject, if there may be more.

        It begins paused and is let go when the queue's record was read after it was made: a pause that was stored
        before that is seen here, and one that was stored later deletes the consumer.
        """
        stream, name = self._config.ready_stream, self._config.ready_consumer(subject)
        use = self._use(subject)
        use.durable_at = None
        for _ in range(_TRIES):
            made = await self.create(subject)
            if made is None:
                return "head"
            if made:
                if await self._queues.surely_held(queue):
                    await remove(self._nats, stream, [name])
                    return "held"
                if not await let_go(self._nats, stream, name):
                    continue
                await self._until_let_go(name)
            use.durable_at = asyncio.get_running_loop().time()  # if somebody else made it, he answers for it
            return "durable"
        raise unavailable("the queue is being paused and resumed")

    async def _until_let_go(self, name: str) -> None:
        """On a cluster the answer comes before the consumer's leader acts on it: 15 of 40 first fetches of a queue
        that held a job came back empty.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timings.let_go_s
        while self._config.replicas > 1 and loop.time() < deadline:
            if not await is_paused(self._nats, self._config.ready_stream, name):
                return
            await asyncio.sleep(0.002)

    async def create(self, subject: str) -> bool | None:
        """Make a durable that is paused for a moment; False if there is one, None if there can't be more."""
        config: dict[str, Any] = {
            "durable_name": self._config.ready_consumer(subject),
            "filter_subject": subject,
            "ack_wait": 3 * SECOND_NS,
            "max_ack_pending": 10_000,
            "inactive_threshold": self._timings.idle_s * SECOND_NS,
            "pause_until": format_ms(self._clock.now() + self._timings.newborn_ms),
        }
        try:
            error = await make_in_memory(self._nats, self._config.ready_stream, config, "create")
        except OjsError as failure:  # on a cluster it takes more to make a consumer than to read tokens
            error = ApiError(description=failure.message)
        if error is None:
            return True
        if error.err_code in _EXISTS:
            return False
        self._refused(error.description, full=error.err_code in _TOO_MANY)
        return None

    def _refused(self, reason: str, *, full: bool) -> None:
        """Tokens can be had without a durable, so nobody waits; whoever looks after nats-server hears of it."""
        self._full_until = asyncio.get_running_loop().time() + self._timings.rest_s
        metrics.CONSUMERS_REFUSED.inc()
        if self._told.due():
            remedy = "raise the stream's max_consumers, or the account's, if busy queues are slow" if full else None
            log.warning("NATS refused a consumer; its queue is served without one", reason=reason, remedy=remedy)
