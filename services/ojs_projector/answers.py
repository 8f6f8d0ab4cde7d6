"""Answering queries that come over NATS: each waits until the index has reached the asker's barrier."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import structlog
from msgspec import Raw

from ojs_engine.base.loops import stop_tasks
from ojs_engine.jetstream.connection import Reply
from ojs_engine.jetstream.inboxes import Inboxes
from ojs_engine.store.store import Store
from ojs_index.asking.messages import (
    BEHIND,
    FAILED,
    AskOutcome,
    ConcernsAsk,
    DeadLettersAsk,
    DispatchesAsk,
    JobsAsk,
    ProjectorStatus,
    QueueAsk,
    QueuesAsk,
    RelayedAnswer,
    StatsAsk,
    UnreadableAsk,
    WorkersAsk,
)
from ojs_index.followed import Question
from ojs_index.reading import jobs, lists
from ojs_index.reading.concerns import concerns
from ojs_index.reading.dispatches import dispatches
from ojs_index.relaying.relay import Relay
from ojs_index.safety_net.pruning import next_round
from ojs_index.sqlite import workers
from ojs_index.sqlite.model import Model
from ojs_index.sqlite.unreadable import unreadable
from ojs_index.sqlite.watermark import Watermark
from ojs_link.address import INBOX

log = structlog.get_logger(__name__)

_GROUP: Final = "projector"
_INBOXES: Final = Inboxes([INBOX])
_encode: Final = msgspec.json.Encoder().encode


class _Query(NamedTuple):
    ask: type[Any]
    answer: Callable[[Any], msgspec.Struct]


class Answers:
    """The queries of one replica; each question goes to one of the replicas, `relayed` to all, and the relay answers.

    While this one builds its index, it is asked only if no other has a whole one.
    """

    def __init__(
        self,
        store: Store,
        model: Model,
        reached: Watermark,
        relay: Relay,
        status: Callable[[], ProjectorStatus],
        dead_letters: int,
        round_ms: int,
        wait_s: float,
        partial_wait_s: float,
        questions: Mapping[str, Question],
    ) -> None:
        """`wait_s` is how long a question waits until the index has come so far; whoever asks waits a little longer.

        While the index is built, `partial_wait_s` is for how long that is not looked after. `questions` are those of
        features.
        """
        self._wait_s = wait_s
        self._partial_wait_s = partial_wait_s
        self._nats = store.bulk
        self._config = store.config
        self._model = model
        self._reached = reached
        self._relay = relay
        self._stops: list[Callable[[], Awaitable[None]]] = []
        self._stop_whole: list[Callable[[], Awaitable[None]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

        def now() -> int:
            return store.clock.now()

        self._queries: dict[str, _Query] = {
            "queue": _Query(QueueAsk, lambda ask: lists.queue(model, ask.name, now())),
            "levels": _Query(QueueAsk, lambda ask: lists.levels(model, ask.name)),
            "queues": _Query(QueuesAsk, lambda ask: lists.queues(model, ask, now())),
            "totals": _Query(StatsAsk, lambda _ask: lists.totals(model, now())),
            "jobs": _Query(JobsAsk, lambda ask: jobs.jobs(model, ask)),
            "dead_letters": _Query(DeadLettersAsk, lambda ask: lists.dead_letters(model, ask)),
            "dead_letter_stats": _Query(
                StatsAsk,
                lambda ask: msgspec.structs.replace(
                    lists.dead_letter_stats(model, ask.queue), max_count=dead_letters, next_prune_at=next_round(now(), round_ms)
                ),
            ),
            "dispatches": _Query(DispatchesAsk, lambda ask: dispatches(model, ask, now())),
            "concerns": _Query(ConcernsAsk, lambda ask: concerns(model, ask, now())),
            "workers": _Query(WorkersAsk, lambda ask: workers.page(model, ask, now())),
            "unreadable": _Query(UnreadableAsk, lambda ask: unreadable(model, ask)),
            "status": _Query(StatsAsk, lambda _ask: status()),
            **{name: _Query(one.ask, partial(one.answer, model)) for name, one in questions.items()},
        }

    async def start(self) -> None:
        self._stops = await self._listen(building=True)
        await self.fit()
        relayed = self._config.query("relayed")
        self._stops.append(await self._nats.listen(relayed, partial(self._spawn, self._answer_relayed)))

    async def fit(self) -> None:
        """To be called whenever the index has become whole, or no longer is."""
        if not self._model.partial and not self._stop_whole:
            self._stop_whole = await self._listen(building=False)
        elif self._model.partial:
            stops, self._stop_whole = self._stop_whole, []
            for stop in stops:
                await stop()

    async def _listen(self, *, building: bool) -> list[Callable[[], Awaitable[None]]]:
        return await asyncio.gather(
            *(
                self._nats.listen(self._config.query(name, building=building), self._handler(query), group=_GROUP)
                for name, query in self._queries.items()
            )
        )

    async def stop(self) -> None:
        for stop in self._stops + self._stop_whole:
            await stop()
        await stop_tasks(self._tasks)

    def _handler(self, query: _Query) -> Callable[[Reply], None]:
        return partial(self._spawn, partial(self._answer, query))

    def _spawn(self, answered: Callable[[Reply], Coroutine[Any, Any, None]], message: Reply) -> None:
        if not _INBOXES.admit(message):
            return
        task = asyncio.create_task(answered(message), name="query")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, query: _Query, message: Reply) -> None:
        try:
            ask = msgspec.json.decode(message.data, type=query.ask)
            partial = self._model.partial
            reached = await self._reached.until(ask.barrier, self._partial_wait_s if partial else self._wait_s)
            if not reached and partial and not self._model.partial:  # it has become whole: now it is worth waiting for
                reached = await self._reached.until(ask.barrier, self._wait_s - self._partial_wait_s)
            # While the index is built anew nobody waits for long: what is there is answered, and marked.
            if reached or self._model.partial:
                self._send(message, AskOutcome(answer=Raw(_encode(query.answer(ask)))))
            else:
                self._send(message, AskOutcome(error=BEHIND))
        except Exception:
            log.exception("query failed")
            self._send(message, AskOutcome(error=FAILED))

    async def _answer_relayed(self, message: Reply) -> None:
        """All replicas are asked; the one that relays answers, or the one that comes to relay meanwhile."""
        ask = msgspec.json.decode(message.data, type=StatsAsk)
        try:
            async with asyncio.timeout(self._wait_s):
                await self._relay.until_relayed(ask.barrier)
        except TimeoutError:
            if self._relay.leading:
                self._send(message, AskOutcome(error=BEHIND))
        else:
            self._send(message, AskOutcome(answer=Raw(_encode(RelayedAnswer(self._relay.relayed)))))

    def _send(self, message: Reply, outcome: AskOutcome) -> None:
        self._nats.publish(message.reply.decode(), _encode(outcome))
