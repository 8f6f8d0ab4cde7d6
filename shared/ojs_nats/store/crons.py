"""Cron entries in the bucket: `cron.<encoded name>`, one timer each (architecture §6).

A run is stored in its entry's record first, with the next timer ahead of it; then its job is created; then the due message
goes. Whoever gets the message again creates the job again, which an existing one refuses. So each run has exactly one job,
with any number of schedulers and whoever dies in between.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, NamedTuple

import msgspec
import structlog

from ojs_nats import cron as pure
from ojs_nats import tracing, transitions
from ojs_nats.cron import Cron, CronTimer, Registration, Run, Step, newborn
from ojs_nats.errors import OjsError, not_found
from ojs_nats.job import Job, State
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.commit import Conflict
from ojs_nats.store.due import DueMessages
from ojs_nats.store.jobs import MAX_TRIES, Jobs
from ojs_nats.store.link import Link
from ojs_nats.store.names import ANY, StoreConfig, encode_token
from ojs_nats.store.records import Records, Stored
from ojs_nats.store.stepback import step_back
from ojs_nats.store.swap import Alarm, Swap, Swapper
from ojs_nats.transitions import Moment

__all__ = ["CronDue", "Crons", "Prepare", "Ran", "StoredCron"]

log = structlog.get_logger(__name__)

_SERVICE: Final = "cron"
_ACK_WAIT_S: Final = 2
"""How long a scheduler may take over a tick before another gets it; short, so that the next tick of an entry that runs every
second isn't lost with the one that dies."""
_UNBORN_MS: Final = 3_600_000
"""A job that isn't there so soon after its run was decided was never created: every record stays at least this long."""
_LEADER_READS: Final = 128

Decide = Callable[[Cron, Moment], Step | None]
Prepare = Callable[[Job], Awaitable[Job | None]]
"""What a job goes through before it is enqueued (middleware); None drops it."""

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder(Cron).decode


class StoredCron(NamedTuple):
    """An entry's record with its sequence (0: nothing); tombstones are records, too."""

    sequence: int
    cron: Cron | None


class CronDue(NamedTuple):
    """What the subject of a cron entry's due message says: whose it is, and which timer it was."""

    token: str
    op: str

    @classmethod
    def of(cls, key: str) -> CronDue:
        token, _, op = key.rpartition("_")  # names can't hold underscores
        return cls(token, op)


class Ran(NamedTuple):
    """An entry after a run by hand; `run` is None where it waits for the job before it. Its job may not be `created` yet."""

    cron: Cron
    run: Run | None
    created: bool


class Crons:
    """Reads and changes entries, and creates the jobs of their runs."""

    def __init__(self, link: Link, bulk: Link, records: Records, jobs: Jobs, clock: ServerClock, config: StoreConfig) -> None:
        self._link = link
        self._bulk = bulk
        self._records = records
        self._jobs = jobs
        self._clock = clock
        self._config = config
        self._swapper = Swapper(link, records, config.records_stream)

    def due_messages(self) -> DueMessages:
        """The timers of entries that fired; `Due.job_id` is what `CronDue.of` takes apart."""
        return DueMessages(self._link, self._bulk, self._config, _SERVICE, _ACK_WAIT_S)

    async def get(self, name: str) -> Cron:
        """The entry as the leader has it. Raises OjsError not_found."""
        return _existing(name, (await self._read(encode_token(name))).cron)

    async def all(self) -> list[Cron]:
        """Every entry, by name. Their number is that of what people registered, so it is read as a whole."""
        subjects = await self._records.subjects(self._config.cron(ANY))
        prefix = len(self._config.cron(""))
        found = await self.many([subject[prefix:] for subject in subjects])
        crons = [stored.cron for stored in found.values() if stored.cron is not None and not stored.cron.deleted]
        return sorted(crons, key=lambda cron: cron.name)

    async def many(self, tokens: Sequence[str]) -> dict[str, StoredCron]:
        """The records under some encoded names, as the leader has them; those that can't be read are left out."""
        if not self._records.nearest_is_leader:
            found: dict[str, tuple[int, bytes] | None] = {}
            for start in range(0, len(tokens), _LEADER_READS):
                chunk = tokens[start : start + _LEADER_READS]
                reads = [self._records.leader_raw(self._config.cron(token)) for token in chunk]
                found |= zip(chunk, await asyncio.gather(*reads), strict=True)
            return _readable(found)
        raw = await self._records.many_raw([self._config.cron(token) for token in tokens])
        return _readable({token: raw.get(self._config.cron(token)) for token in tokens})

    async def register(self, wanted: Registration) -> tuple[bool, Cron]:
        """Create or replace an entry: whether it is new, and how it stands."""
        return await self._change(wanted.name, lambda old, moment: pure.register(old, wanted, moment))

    async def change(self, name: str, decide: Decide) -> Cron:
        """Apply a pure decision to an entry; `decide` returns None to leave it as it is. Raises OjsError not_found."""

        def decided(old: Cron | None, moment: Moment) -> Step | None:
            return decide(_existing(name, old), moment)

        return (await self._change(name, decided))[1]

    async def _change(self, name: str, decide: Callable[[Cron | None, Moment], Step | None]) -> tuple[bool, Cron]:
        for tries in range(1, MAX_TRIES + 1):
            stored = await self._read(encode_token(name))
            moment = self._clock.moment()
            step = decide(stored.cron, moment)
            if step is None:
                return False, _existing(name, stored.cron)
            try:
                await self.commit(step, stored.sequence, moment.op)
            except Conflict:
                await step_back(self._clock, tries)
                continue
            return stored.cron is None or stored.cron.deleted, step.record
        raise _contended(name)

    async def run_now(self, name: str, prepare: Prepare) -> Ran:
        """Run an entry outside its schedule.

        Raises OjsError not_found, conflict where the overlap policy forbids it now, or whatever the job is refused for, a full
        queue included: nothing is stored then, and nothing will be. Once the run is stored its job will be created, whatever
        happens.
        """
        for tries in range(1, MAX_TRIES + 1):
            stored = await self._read(encode_token(name))
            found = _existing(name, stored.cron)
            previous = await self.previous(found, prepare)
            moment = self._clock.moment()
            step = pure.run_now(found, moment, previous)
            try:
                async with self._placed(step, prepare) as (draft, placed):
                    await self.commit(step, stored.sequence, moment.op)
                    created = step.run is not None and await self._created(step.record, step.run, draft, placed)
            except Conflict:
                await step_back(self._clock, tries)
                continue
            if created:
                self._swapper.unset(self._config.cron_timer(encode_token(name), moment.op))
            return Ran(step.record, step.run, created)
        raise _contended(name)

    @asynccontextmanager
    async def _placed(self, step: Step, prepare: Prepare) -> AsyncIterator[tuple[Job | None, bool]]:
        """The job of a run, if one is to be created, and whether its place is held.

        A run that ends the job before may get that one's place, so it isn't refused: its job waits for room if it must.
        """
        draft = None if step.run is None else await prepare(newborn(step.record, step.run))
        if step.run is None or draft is None or step.run.cancels is not None:
            yield draft, False
            return
        async with self._jobs.place(draft) as placed:
            yield draft, placed

    async def _created(self, cron: Cron, run: Run, draft: Job | None, placed: bool) -> bool:
        """Create the job of a run by hand; if that fails now, the schedulers do it when the timer of the run fires."""
        push = partial(self._jobs.push, placed=placed)
        try:
            await self._make_way(cron, run)
            with _for_good(cron, run):
                if draft is not None:
                    await tracing.enqueued(draft, push)
        except OjsError as error:
            log.info("the job of a run by hand waits", cron=cron.name, job_id=run.job_id, reason=error.message)
            return False
        return True

    async def commit(self, step: Step, expected: int, op: str) -> int:
        """Store one step over the record's revision `expected`; returns the new sequence. Raises Conflict, OjsError."""
        token = encode_token(step.record.name)
        return await self._swapper.swap(
            Swap(
                subject=self._config.cron(token),
                body=_encode(step.record),
                expected=expected,
                mine=lambda body: _carries(token, body, op),
                arm=None if step.arm is None else self._alarm(token, step.arm),
                cancel=None if step.cancel is None else self._config.cron_timer(token, step.cancel),
                ttl_s=step.ttl_s,
            )
        )

    async def rearm(self, name: str, timer: CronTimer) -> None:
        """Set a fired timer again on its own subject."""
        await self._swapper.set(self._alarm(encode_token(name), timer))

    async def waits(self, name: str, timer: CronTimer) -> bool:
        """Whether a timer is live, or its message waits for a scheduler."""
        alarm = self._alarm(encode_token(name), timer)
        # One of them is always there; a scheduler that sets the timer again lets the message go after that.
        for subject in (alarm.subject, alarm.target, alarm.subject):
            if await self._records.leader_raw(subject) is not None:
                return True
        return False

    async def previous(self, cron: Cron, prepare: Prepare) -> State | None:
        """The state of the job of the last run; None if there is none any more.

        One that is missing though its run is fresh is created now: the scheduler that decided it died, or is about to do it.
        """
        if cron.last_job is None:
            return None
        found = await self._job(cron.last_job)
        if found.sequence == 0:
            run = next((run for run in reversed(cron.log) if run.job_id == cron.last_job), None)
            if run is not None and run.outcome == "triggered" and self._clock.now() - run.at < _UNBORN_MS:
                await self.deliver(cron, run, prepare)
                found = await self._job(cron.last_job)
        return None if found.job is None else found.job.state

    async def deliver(self, cron: Cron, run: Run, prepare: Prepare) -> None:
        """Create the job of a run, after cancelling the one that gives way to it; to be repeated until it returns.

        One that exists is left alone, and so is one that middleware or a uniqueness rule refuses: that is its answer.
        """
        await self._make_way(cron, run)
        with _for_good(cron, run):
            prepared = await prepare(newborn(cron, run))
            if prepared is not None:
                await tracing.enqueued(prepared, self._jobs.push)

    async def _make_way(self, cron: Cron, run: Run) -> None:
        if run.cancels is not None:
            await self._cancel(cron, run.cancels)

    async def _cancel(self, cron: Cron, job_id: str) -> None:
        reason = f"the next run of cron {cron.name!r} is due"
        try:
            await self._jobs.change(job_id, lambda job, moment: transitions.cancel(job, moment, reason))
        except OjsError as error:
            if error.code not in {"conflict", "not_found"}:  # it has ended by itself
                raise

    async def _job(self, job_id: str) -> Stored:
        """The last word on a job, by the cheapest way to it."""
        if self._records.nearest_is_leader:
            return (await self._records.many([job_id]))[job_id]
        return await self._records.leader_for_hint(job_id)

    async def _read(self, token: str) -> StoredCron:
        return _stored(token, await self._records.leader_raw(self._config.cron(token)))

    def _alarm(self, token: str, timer: CronTimer) -> Alarm:
        target = self._config.due(_SERVICE, f"{token}_{timer.op}")
        return Alarm(self._config.cron_timer(token, timer.op), target, timer.at)


def _stored(token: str, found: tuple[int, bytes] | None) -> StoredCron:
    sequence, data = found or (0, b"")
    if not data:  # nothing, or a marker
        return StoredCron(sequence, None)
    try:
        return StoredCron(sequence, _decode(data))
    except (msgspec.DecodeError, ValueError) as error:
        log.error("cron record can't be read", token=token, sequence=sequence, error=str(error))
        raise OjsError("backend_error", f"the record of cron {token!r} can't be read; see the server's log") from None


def _readable(found: Mapping[str, tuple[int, bytes] | None]) -> dict[str, StoredCron]:
    """Those of many that can be read: the others must not keep them waiting."""
    readable: dict[str, StoredCron] = {}
    for token, raw in found.items():
        with contextlib.suppress(OjsError):
            readable[token] = _stored(token, raw)
    return readable


@contextlib.contextmanager
def _for_good(cron: Cron, run: Run) -> Iterator[None]:
    """A job that is there, or is refused for good, needs no second try; any other refusal is raised."""
    try:
        yield
    except OjsError as error:
        if error.info.retryable:
            raise
        if error.code != "duplicate" or error.details.get("existing_job_id") != run.job_id:
            log.warning("job of a cron entry refused", cron=cron.name, job_id=run.job_id, reason=error.message)


def _existing(name: str, found: Cron | None) -> Cron:
    if found is None or found.deleted:
        raise not_found("cron", name)
    return found


def _contended(name: str) -> OjsError:
    message = f"cron {name!r} changed {MAX_TRIES} times while this request tried to change it; try again"
    return OjsError("backend_timeout", message, retry_after=1)


def _carries(token: str, body: bytes, op: str) -> bool:
    """Whether a stored entry is, or comes after, the change `op`."""
    cron = _stored(token, (0, body)).cron
    return cron is not None and (cron.op == op or any(run.hint == op for run in cron.log))
