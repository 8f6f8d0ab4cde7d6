"""Cron entries in the bucket: `cron.<encoded name>`, one timer each.

A run is stored in its entry's record first, with the next timer ahead of it; then its job is created; then the due
message goes. Whoever gets the message again creates the job again, which an existing one refuses. So each run has
exactly one job, with any number of schedulers and whoever dies in between.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Final, NamedTuple

import msgspec
import structlog

from ojs_engine.base.errors import OjsError, not_found, unless_moved_on
from ojs_engine.base.portions import in_portions
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import Moment
from ojs_engine.domain.transitions.retention import TOMBSTONE_S
from ojs_engine.jetstream.due_messages import DueMessages, DueTimings
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import ANY, StoreConfig, encode_token
from ojs_engine.store.enqueue.enqueue import Push
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.documents import Beside, Documents
from ojs_engine.store.records.records import check_draft
from ojs_engine.store.records.writer import Conflict, Hint, alarm
from ojs_engine.store.store import Store
from ojs_features.crons import changes
from ojs_features.crons.changes import Registration
from ojs_features.crons.expression import parse_expression
from ojs_features.crons.record import Cron, CronRun, CronTimer
from ojs_features.crons.run import job_of_run
from ojs_features.crons.schedule import check_zone
from ojs_features.crons.step import Step
from ojs_features.crons.subjects import CONSUMER, cron_subject, due_subject, timer_subject
from ojs_features.crons.timings import CronTimings
from ojs_runtime import tracing

log = structlog.get_logger(__name__)

_LEADER_READS: Final = 128

DecideCron = Callable[[Cron, Moment], Step | None]
JobCheck = Callable[[Job], Awaitable[object]]
"""Raises OjsError for a job that isn't taken."""


_Placed = tuple[Job, Push]
"""A job whose place in its queue is held, and what pushes it there."""


@lru_cache(maxsize=4_096)
def _check_times(expression: str, zone: str) -> None:
    parse_expression(expression)
    check_zone(zone)


def _sound(token: str, cron: Cron) -> None:
    if encode_token(cron.name) != token:
        raise ValueError("it is the record of another entry")
    _check_times(cron.expression, cron.timezone)
    check_draft(cron.draft)


cron_reader: Final = RecordReader(
    "cron",
    msgspec.json.Decoder(Cron).decode,
    _sound,
    belongings=lambda config, token: [timer_subject(config, token, ANY)],
)


class StoredCron(NamedTuple):
    """An entry's record with its sequence (0: nothing); tombstones are records, too."""

    sequence: int
    cron: Cron | None


class CronDue(NamedTuple):
    """The words in the subject of an entry's due message: its encoded name, and the op of the timer."""

    token: str
    op: str

    @classmethod
    def of(cls, key: str) -> CronDue:
        token, _, op = key.rpartition("_")  # names can't hold underscores
        return cls(token, op)


class Ran(NamedTuple):
    """An entry after a run by hand; `run` is None where it waits for the job before it. Its job may not be `created` yet."""

    cron: Cron
    run: CronRun | None
    created: bool


class Crons:
    """Reads and changes entries, and creates the jobs of their runs."""

    def __init__(self, store: Store) -> None:
        bucket = store.bucket
        self._tick_s = bucket.timings(CronTimings).tick_s
        self._nats = bucket.nats
        self._bulk = bucket.bulk
        self._records = bucket.records
        self._jobs = store.jobs
        self._enqueue = store.enqueue
        self._room = store.room
        self._spawner = store.spawner
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._config = bucket.config
        self._writer = bucket.writer
        self._documents = Documents(bucket, partial(cron_subject, bucket.config), cron_reader, _carries)

    def due_messages(self) -> DueMessages:
        """The timers of entries that fired; `Due.job_id` is what `CronDue.of` takes apart."""
        return DueMessages(self._nats, self._bulk, self._config, CONSUMER, DueTimings(ack_wait_s=self._tick_s))

    async def get(self, name: str) -> Cron:
        """The entry as the leader has it. Raises OjsError not_found."""
        return _existing(name, (await self._read(encode_token(name))).cron)

    async def all(self) -> list[Cron]:
        """Every entry, by name. Their number is that of what people registered, so it is read as a whole."""
        subjects = await self._records.subjects(cron_subject(self._config, ANY))
        prefix = len(cron_subject(self._config, ""))
        found = await self.many([subject[prefix:] for subject in subjects])
        crons = [stored.cron for stored in found.values() if stored.cron is not None and not stored.cron.deleted]
        return sorted(crons, key=lambda cron: cron.name)

    async def many(self, tokens: Sequence[str]) -> dict[str, StoredCron]:
        """The records under some encoded names, as the leader has them; those that can't be read are left out."""
        if not self._records.nearest_is_leader:
            read = await in_portions(
                tokens, lambda token: self._records.leader_raw(cron_subject(self._config, token)), _LEADER_READS
            )
            return self._readable(dict(zip(tokens, read, strict=True)))
        raw = await self._records.many_raw([cron_subject(self._config, token) for token in tokens])
        return self._readable({token: raw.get(cron_subject(self._config, token)) for token in tokens})

    async def register(self, wanted: Registration) -> tuple[bool, Cron]:
        """Create or replace an entry: whether it is new, and how it stands. Raises OjsError storage_full."""
        self._room.check()
        return await self._change(wanted.name, lambda old, moment: changes.register(old, wanted, moment))

    async def change(self, name: str, decide: DecideCron) -> Cron:
        """Apply a pure decision to an entry; `decide` returns None to leave it as it is. Raises OjsError not_found."""

        def decided(old: Cron | None, moment: Moment) -> Step | None:
            return decide(_existing(name, old), moment)

        return (await self._change(name, decided))[1]

    async def _change(self, name: str, decide: Callable[[Cron | None, Moment], Step | None]) -> tuple[bool, Cron]:
        async for _ in self._tries():
            stored = await self._read(encode_token(name))
            moment = self._clock.moment()
            step = decide(stored.cron, moment)
            if step is None:
                return False, _existing(name, stored.cron)
            try:
                await self.commit(step, stored.sequence, moment.op)
            except Conflict:
                continue
            return stored.cron is None or stored.cron.deleted, step.record
        raise contended(f"cron {name!r}")

    async def run_now(self, name: str, check: JobCheck) -> Ran:
        """Run an entry outside its schedule.

        Raises OjsError not_found, conflict where the overlap policy forbids it now, or whatever the job is refused
        for, a full queue included: nothing is stored then, and nothing will be. Once the run is stored its job will
        be created, whatever happens.
        """
        self._room.check()
        async for _ in self._tries():
            stored = await self._read(encode_token(name))
            found = _existing(name, stored.cron)
            previous = await self.previous(found, check)
            moment = self._clock.moment()
            step = changes.run_now(found, moment, previous)
            try:
                async with self._placed(step, check) as placed:
                    await self.commit(step, stored.sequence, moment.op)
                    created = step.run is not None and await self._created(step.record, step.run, check, placed)
            except Conflict:
                continue
            if created:
                self._writer.purge(timer_subject(self._config, encode_token(name), moment.op))
            return Ran(step.record, step.run, created)
        raise contended(f"cron {name!r}")

    @asynccontextmanager
    async def _placed(self, step: Step, check: JobCheck) -> AsyncIterator[_Placed | None]:
        """Check the job of a run, if there is a run, and hold its place.

        A run that ends the job before may get that one's place, so it isn't refused: its job waits for room if it must.
        """
        if step.run is not None:
            draft = job_of_run(step.record, step.run)
            await check(draft)
            if step.run.cancels is None:
                async with self._enqueue.place(draft) as placed:
                    yield placed
                return
        yield None

    async def _created(self, cron: Cron, run: CronRun, check: JobCheck, placed: _Placed | None) -> bool:
        """Create the job of a run by hand; if that fails now, the schedulers do it when the timer of the run fires."""
        try:
            await self.ensure(cron, run, check, placed)
        except OjsError as error:
            log.info("the job of a run by hand waits", cron=cron.name, job_id=run.job_id, reason=error.message)
            return False
        return True

    async def commit(self, step: Step, expected: int, op: str) -> int:
        """Store one step over the record's revision `expected`; returns the new sequence. Raises Conflict, OjsError."""
        token = encode_token(step.record.name)
        beside = Beside(
            arm=None if step.arm is None else self._alarm(token, step.arm),
            cancel=None if step.cancel is None else timer_subject(self._config, token, step.cancel),
            ttl_s=step.ttl_s,
        )
        return await self._documents.write(token, step.record, expected, op, beside)

    async def rearm(self, name: str, timer: CronTimer) -> None:
        """Set a fired timer again on its own subject."""
        await self._writer.set(self._alarm(encode_token(name), timer))

    async def waits(self, name: str, timer: CronTimer) -> bool:
        """Whether a timer is live, or its message waits for a scheduler."""
        token = encode_token(name)
        live = timer_subject(self._config, token, timer.op)
        # One of them is always there; a scheduler that sets the timer again lets the message go after that.
        for subject in (live, due_subject(self._config, token, timer.op), live):
            if await self._records.leader_raw(subject) is not None:
                return True
        return False

    async def previous(self, cron: Cron, check: JobCheck) -> Job | None:
        """The job of the last run; None if there is none any more.

        One that is missing though its run is fresh is created now: the scheduler that decided it died, or is about to
        do it.
        """
        if cron.last_job is None:
            return None
        found = (await self._records.surely([cron.last_job]))[cron.last_job]
        if found.sequence == 0:
            run = next((run for run in reversed(cron.log) if run.job_id == cron.last_job), None)
            # Every record of a job stays so long: one that isn't there so soon after the decision was never created.
            if run is not None and run.outcome == "triggered" and self._clock.now() - run.at < TOMBSTONE_S * 1_000:
                await self.ensure(cron, run, check)
                found = (await self._records.surely([cron.last_job]))[cron.last_job]
        return found.job

    async def ensure(self, cron: Cron, run: CronRun, check: JobCheck, placed: _Placed | None = None) -> None:
        """Create the job of a run, after cancelling the one that gives way to it; to be repeated until it returns.

        One that exists is left alone, and so is one that its schema, its queue or a uniqueness rule refuses for good.
        """
        if run.cancels is not None:
            cancel = partial(transitions.cancel, reason=f"the next run of cron {cron.name!r} is due")
            await unless_moved_on(self._jobs.change(run.cancels, cancel))
        draft, store = placed or (job_of_run(cron, run), self._enqueue.push)

        async def push(draft: Job) -> Job:
            await check(draft)
            return await tracing.enqueued(draft, store)

        for _, refusal in await self._spawner.ensure([draft], push):
            log.warning("job of a cron entry refused", cron=cron.name, job_id=run.job_id, reason=refusal.message)

    async def _read(self, token: str) -> StoredCron:
        return StoredCron(*await self._documents.read(token))

    def _readable(self, found: Mapping[str, tuple[int, bytes] | None]) -> dict[str, StoredCron]:
        """Return those of many that can be read: the others must not keep them waiting."""
        readable: dict[str, StoredCron] = {}
        for token, raw in found.items():
            with contextlib.suppress(OjsError):
                readable[token] = StoredCron(*self._documents.found(token, raw))
        return readable

    def _alarm(self, token: str, timer: CronTimer) -> Hint:
        return cron_alarm(self._config, token, timer)


def cron_alarm(config: StoreConfig, token: str, timer: CronTimer) -> Hint:
    """Return the message with which an entry's timer fires; `token` is its encoded name."""
    return alarm(timer_subject(config, token, timer.op), due_subject(config, token, timer.op), timer.at)


def _existing(name: str, found: Cron | None) -> Cron:
    if found is None or found.deleted:
        raise not_found("cron", name)
    return found


def _carries(cron: Cron, op: str) -> bool:
    """Whether a stored entry is, or comes after, the change `op`."""
    return cron.op == op or any(run.hint == op for run in cron.log)
