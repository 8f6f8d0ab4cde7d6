"""Queue records: read, changed and known by heart, and the pause that holds on every gateway at once (architecture §5).

While a queue is paused its durables do not exist. Who makes one makes it paused, reads the record on the leader and only then
lets it go or takes it away again; the pause deletes all of them after its record is stored, so a durable that was being made
meanwhile is gone before anybody can let it go (docs/adr/005).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
import structlog

from ojs_nats.errors import OjsError, unavailable
from ojs_nats.job import Job
from ojs_nats.queues import (
    DEFAULT_QUEUE,
    MAINTENANCE,
    NOT_SET,
    Maintenance,
    QueueConfig,
    QueueRecord,
    Settings,
    admitted,
    layered,
    maintained,
    paused,
    resumed,
)
from ojs_nats.store.api import ask
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Conflict
from ojs_nats.store.link import Failed, Link
from ojs_nats.store.names import ANY, StoreConfig
from ojs_nats.store.records import Records
from ojs_nats.store.stepback import step_back
from ojs_nats.store.swap import Swap, Swapper
from ojs_nats.store.watch import Watch
from ojs_nats.transitions import Moment

__all__ = ["Queues"]

log = structlog.get_logger(__name__)

MAX_TRIES: Final = 12
_DELETED_TTL_S: Final = 3_600
_CONSUMER_NOT_FOUND: Final = 10014
_PRIORITIES: Final = range(-100, 101)

Decide = Callable[[QueueRecord | None, Moment], QueueRecord | None]
"""What becomes of a record; None leaves it as it is."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(QueueRecord).decode


class _Deletion(msgspec.Struct):
    error: dict[str, object] | None = None


class Queues:
    """The queues that somebody configured. `went_on` hears the name of each that is resumed, by whomever."""

    def __init__(self, link: Link, records: Records, clock: ServerClock, config: StoreConfig, instance: str) -> None:
        self._link = link
        self._records = records
        self._clock = clock
        self._config = config
        self._swapper = Swapper(link, records, config.records_stream)
        self._watch = Watch(link, config, f"queues-{instance}", [config.queue(ANY)], self._changed)
        self._known: dict[str, QueueRecord] = {}
        self._settings: dict[str, Settings] = {}
        self._default: Settings | None = None
        self._maintenance: QueueRecord | None = None
        self.went_on: Callable[[str], None] = lambda _queue: None

    # Known by heart

    async def settings(self, queue: str) -> Settings | None:
        """How a queue stands, as of some milliseconds ago; None if nothing is set for it."""
        if not self._watch.loaded:
            await self._watch.begin()
        return self._settings.get(queue, self._default)

    def config(self, queue: str) -> QueueConfig:
        """What is set for a queue, of what `settings` or `admit` have found before."""
        settings = self._settings.get(queue, self._default)
        return NOT_SET if settings is None else settings.config

    def bound(self, queue: str) -> int:
        """How many jobs of a queue may wait, 0 if any number; as `config`."""
        settings = self._settings.get(queue, self._default)
        return 0 if settings is None else settings.config.max_size or 0

    async def admit(self, draft: Job) -> Job:
        """A job that is about to be pushed, with what it leaves to its queue. Raises OjsError for what its queue refuses."""
        settings = await self.settings(draft.queue)
        return draft if settings is None else admitted(draft, settings)

    async def held(self, queue: str) -> bool:
        """Whether nothing may be fetched from a queue, as of at most three seconds ago."""
        if not self._watch.loaded:
            await self._watch.begin()
        if self._watch.fresh:
            return self._held_now(queue) or self._under_maintenance()
        return await self.surely_held(queue)

    async def surely_held(self, queue: str) -> bool:
        """The same on the leader's word."""
        now = self._clock.now()
        records = await asyncio.gather(self.get(queue), self.get(MAINTENANCE))
        return any(record is not None and record.holds_at(now) for record in records)

    async def under_maintenance(self) -> bool:
        """Whether all queues are held, as of at most three seconds ago."""
        if not self._watch.loaded:
            await self._watch.begin()
        if self._watch.fresh:
            return self._under_maintenance()
        record = await self.get(MAINTENANCE)
        return record is not None and record.holds_at(self._clock.now())

    async def all(self) -> Mapping[str, QueueRecord]:
        """Every queue that has a record and is not deleted, by name, as of some milliseconds ago.

        Their number is that of what people set up.
        """
        await self.settings(DEFAULT_QUEUE)
        return self._known

    async def reset(self) -> None:
        await self._watch.reset()

    async def stop(self) -> None:
        await self._watch.stop()

    # Reading and changing

    async def get(self, queue: str) -> QueueRecord | None:
        """The record as the leader has it; None if there is none or it is deleted."""
        record = (await self._read(queue))[1]
        return None if record is None or record.state == "deleted" else record

    async def change(self, queue: str, decide: Decide) -> QueueRecord | None:
        """Apply a pure decision to a record; what stands afterwards. Raises whatever `decide` raises."""
        for tries in range(1, MAX_TRIES + 1):
            sequence, old = await self._read(queue)
            moment = self._clock.moment()
            new = decide(old, moment)
            if new is None:
                return old
            try:
                await self._write(new, sequence)
            except Conflict:
                await step_back(self._clock, tries)
                continue
            return new
        message = f"queue {queue!r} changed {MAX_TRIES} times while this request tried to change it; try again"
        raise OjsError("backend_timeout", message, retry_after=1)

    async def pause(self, queue: str) -> QueueRecord:
        """Return when no gateway can fetch from the queue any more. To be repeated if it fails."""
        record = await self.change(queue, lambda old, moment: paused(old, queue, moment))
        assert record is not None
        await self._take_durables(queue)
        return record

    async def hold_all(self, plan: Maintenance) -> QueueRecord:
        """Return when no gateway can fetch from any queue any more. To be repeated if it fails."""
        record = await self.change(MAINTENANCE, lambda old, moment: maintained(old, moment, plan))
        assert record is not None
        while names := await self._durables():
            await self._take(names)
        return record

    async def resume(self, queue: str) -> QueueRecord | None:
        """Let a queue go on; None if there is nothing to know of it. Gateways hear of it within milliseconds."""
        return await self.change(queue, lambda old, moment: resumed(old, queue, moment))

    async def _take_durables(self, queue: str) -> None:
        """Delete every durable of a queue; returns when none is left that could hand out a token.

        Tokens in somebody's hands are handed out again by the next durable, and found to be stale if they were claimed.
        """
        subjects = [self._config.ready(queue, priority, front=front) for priority in _PRIORITIES for front in (False, True)]
        await self._take([self._config.ready_consumer(subject) for subject in subjects])

    async def _durables(self) -> list[str]:
        """Some of the durables that there are; none if there is none."""
        answer = await ask(self._link, f"CONSUMER.NAMES.{self._config.ready_stream}", None, "to list the queues' consumers")
        return answer.get("consumers") or []

    async def _take(self, names: Sequence[str]) -> None:
        stream = self._config.ready_stream
        answers = [self._link.request(f"$JS.API.CONSUMER.DELETE.{stream}.{name}") for name in names]
        for answer in await asyncio.gather(*answers):
            if isinstance(answer, Failed):
                raise unavailable(f"the queue's consumers can't be stopped now: {answer.reason}")
            error = msgspec.json.decode(answer.data, type=_Deletion).error
            if error is not None and error.get("err_code") != _CONSUMER_NOT_FOUND:
                raise unavailable(f"NATS refused to stop a consumer of the queue: {error.get('description')}")

    async def _read(self, queue: str) -> tuple[int, QueueRecord | None]:
        sequence, body = await self._records.leader_raw(self._config.queue(queue)) or (0, b"")
        return sequence, _record(queue, body) if body else None

    async def _write(self, record: QueueRecord, expected: int) -> None:
        body = _encode(record)
        subject = self._config.queue(record.name)
        swap = Swap(
            subject=subject,
            body=body,
            expected=expected,
            mine=lambda found: _record(record.name, found).op == record.op,
            ttl_s=_DELETED_TTL_S if record.state == "deleted" else None,
        )
        sequence = await self._swapper.swap(swap)
        self._watch.put(subject, sequence, body)

    # Following

    def _changed(self) -> None:
        """Lay the layers over each other anew. There are as many records as people made, and they change seldom."""
        before = self._known
        records = [_readable(body) for _, body in self._watch.entries.values()]
        self._known = {record.name: record for record in records if record is not None and record.state != "deleted"}
        policy = self._known.pop(DEFAULT_QUEUE, None)
        self._maintenance = self._known.pop(MAINTENANCE, None)
        common = NOT_SET if policy is None else policy.config
        self._default = None if common == NOT_SET else Settings("active", common)
        self._settings = {name: Settings(record.state, layered(common, record.config)) for name, record in self._known.items()}
        for name, record in before.items():
            if record.held and not self._held_now(name):
                self.went_on(name)

    def _under_maintenance(self) -> bool:
        return self._maintenance is not None and self._maintenance.holds_at(self._clock.now())

    def _held_now(self, queue: str) -> bool:
        record = self._known.get(queue)
        return record is not None and record.held


def _record(queue: str, body: bytes) -> QueueRecord:
    try:
        return _decode(body)
    except (msgspec.DecodeError, ValueError) as error:
        log.error("queue record can't be read", queue=queue, error=str(error))
        raise OjsError("backend_error", f"the record of queue {queue!r} can't be read; see the server's log") from None


def _readable(body: bytes) -> QueueRecord | None:
    try:
        return _decode(body)
    except (msgspec.DecodeError, ValueError) as error:
        log.error("queue record can't be read", error=str(error))
        return None
