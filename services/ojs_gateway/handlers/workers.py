"""The worker's side: fetch, ack, nack, heartbeat, register and deregister."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
import structlog
from msgspec import Struct
from msgspec.structs import replace

from ojs_api.work import AcksAnswer, DeregisteredWorker, FetchedJobs
from ojs_engine.api.call import Call, Response
from ojs_engine.api.pressure import refusal_headers
from ojs_engine.base.errors import OjsError, not_found, require_backend
from ojs_engine.base.fields import short_text, shown
from ojs_engine.base.ids import is_job_id
from ojs_engine.base.lru import Lru
from ojs_engine.base.times import format_ms
from ojs_engine.domain import transitions
from ojs_engine.domain.job import State
from ojs_engine.domain.worker import Worker
from ojs_engine.jetstream.reading import RECORD_ERRORS
from ojs_engine.store.announce import announce, tell, tell_of_job
from ojs_engine.store.workers.presence import STOPPED, WorkerRecord
from ojs_engine.wire.errors import error_view
from ojs_engine.wire.members import encode
from ojs_engine.wire.workers.answers import (
    Along,
    acknowledged,
    acks_answer,
    fetched_jobs,
    heartbeat_answer,
    nacked,
    registered,
)
from ojs_engine.wire.workers.requests import (
    Ack,
    Deregistration,
    Fetch,
    Nack,
    parse_ack,
    parse_acks,
    parse_deregister,
    parse_fetch,
    parse_heartbeat,
    parse_nack,
    parse_register,
)
from ojs_gateway.context import Context
from ojs_index.asking.messages import JobsAsk
from ojs_index.asking.walk import walk
from ojs_index.lists.fleet import worker_health
from ojs_runtime import tracing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ojs_engine.domain.job import Job
    from ojs_engine.domain.worker import Mark

log = structlog.get_logger(__name__)

_FETCHED_BYTES: Final = 4_000_000
"""What a gateway keeps of the queues that workers fetch from."""
_ENTRY_BYTES: Final = 200
_ASKED_TO: Final = ("terminate", "quiet")


class _Metadata(Struct):
    test_directive: str | None = None


class WorkerHandlers:
    """Handlers under /workers, and the same under /jobs/{id}."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._extras = [extras for feature in context.features for extras in feature.jobs]
        self._inputs_of = [feature.inputs for feature in context.features if feature.inputs is not None]
        self._limits = context.limits
        self._fetched: Lru[tuple[str, ...]] = Lru(_FETCHED_BYTES)
        """The queues that workers named in their last fetch from this gateway: not all name them in heartbeats.

        By their caller's reach and their id, as anybody may fetch under another's id.
        """

    async def fetch(self, call: Call) -> Response:
        """POST /workers/fetch. What is claimed for a client that left meanwhile is given back.

        Acks are carried out first, and answered whatever becomes of the rest. The place of a refused one may still be
        taken, so each of those lets the fetch bring one job fewer.
        """
        ask = await call.read_jobs(parse_fetch, self._limits)
        if ask.pool is not None and self._store.order is None:
            message = "pool is not supported: this server runs without the feature; leave it out"
            raise OjsError("unsupported", message, details={"field": "pool"})
        call.require_entry(*ask.queues)
        if ask.worker is not None:
            self._fetched.put((call.principal.reach, ask.worker), ask.queues, sum(map(len, ask.queues)) + _ENTRY_BYTES)
        if not ask.acks:
            return Response(200, await self._fetched_jobs(ask, call))
        acks = acks_answer(ask.acks, await self._refused_acks(ask.acks, call))
        left = ask.count - acks.failed
        if left <= 0:
            return Response(200, FetchedJobs([], acks))
        try:
            return Response(200, await self._fetched_jobs(replace(ask, count=left), call, acks))
        except OjsError as error:
            return Response(200, FetchedJobs([], acks, error_view(error)))

    async def _fetched_jobs(self, ask: Fetch, call: Call, acks: AcksAnswer | None = None) -> bytes:
        """The answer to a fetch, with what became of its acks."""
        with call.waiting() if ask.wait_ms > 0 else nullcontext():
            jobs = await self._work(ask, call)
        room = self._limits.max_fetch_bytes if call.room is None else min(call.room, self._limits.max_fetch_bytes)
        with self._store.dispatcher.returning(jobs) as undelivered:
            along = await self._along(jobs, undelivered, room)
            shown = [job for job in jobs if job.id in along]
            try:
                body = encode(fetched_jobs(shown, along, acks))
            except RECORD_ERRORS:  # not the others' fault
                shown = [job for job in shown if self._can_be_shown(job, along, undelivered)]
                body = encode(fetched_jobs(shown, along, acks))
            if len(body) > room:
                shown, body = self._what_fits(shown, along, acks, undelivered, call.room, room)
            if not call.gone:
                call.if_lost = partial(self._store.dispatcher.take_back, shown) if shown else None
                tracing.handed_out(shown)
                undelivered.difference_update(job.id for job in shown)
        return body

    def _what_fits(
        self,
        jobs: list[Job],
        along: Mapping[str, Sequence[Along]],
        acks: AcksAnswer | None,
        undelivered: set[str],
        most: int | None,
        room: int,
    ) -> tuple[list[Job], bytes]:
        """Return the first of the jobs, as many as go into `room` bytes, with their answer.

        A single one may have up to `most`; None for any number. What goes along with it is brief where it would be too
        much otherwise.
        """
        while len(body := encode(fetched_jobs(jobs, along, acks))) > room and jobs:
            if len(jobs) == 1:
                if most is None or len(body) <= most:
                    break
                if len(body := encode(fetched_jobs(jobs, along, acks, brief=True))) <= most:
                    break
                if (size := len(encode(fetched_jobs(jobs, along, brief=True)))) > most:
                    reason = f"the job is {size} bytes with what belongs to it, and NATS takes {most}: fetch it over HTTP"
                    self._fail(jobs[0], reason, undelivered)
            jobs = jobs[: len(jobs) // 2]
        return jobs, body

    def _can_be_shown(self, job: Job, along: Mapping[str, Sequence[Along]], undelivered: set[str]) -> bool:
        try:
            encode(fetched_jobs([job], along))
        except RECORD_ERRORS as error:
            log.exception("a job can't be shown to a worker", job_id=job.id)
            self._fail(job, f"the job can't be shown to a worker: {error}", undelivered)
            return False
        return True

    def _fail(self, job: Job, reason: str, undelivered: set[str]) -> None:
        """End the attempt of a job that can't be handed out for a reason of its own: given back, it would be next again."""
        undelivered.discard(job.id)
        self._store.dispatcher.fail(job, reason)

    async def _along(self, jobs: list[Job], undelivered: set[str], room: int) -> dict[str, Sequence[Along]]:
        """Return what goes along with each job that can be handed out: with as many as fill `room`, in order.

        Raises OjsError backend_unavailable if NATS is in the way of all of them.
        """
        along: dict[str, Sequence[Along]] = {}
        failure: OjsError | None = None
        size = 0
        for job in jobs:
            if size > room:
                break
            size += len(job.args)
            try:
                along[job.id] = found = await self._along_with(job)
                size += sum(one.size for one in found)
            except OjsError as error:
                if error.info.retryable:
                    failure = error
                else:
                    self._fail(job, error.message, undelivered)
        if failure is not None and not along:
            raise failure
        return along

    async def _along_with(self, job: Job) -> Sequence[Along]:
        """Return what goes along with one job. Raises OjsError."""
        found: list[Along] = []
        for source in self._inputs_of:
            if source.asks(job):
                try:
                    one = await source.of(self._store, job)
                except RECORD_ERRORS:  # a record that is none, or not of this job
                    log.exception("what goes along with a job can't be told", job_id=job.id)
                    message = f"{source.what} can't be told; see the server's log"
                    raise OjsError("unreadable_record", message) from None
                if one is not None:
                    found.append(one)
        return found

    async def _work(self, ask: Fetch, call: Call) -> list[Job]:
        wait_ms = ask.wait_ms
        while await self._leaving(ask.worker):
            if wait_ms <= 0 or self._context.stopping or call.gone:
                return []
            pause_ms = min(wait_ms, self._context.timings.leaving_ms)
            await self._context.unless_stopping(asyncio.sleep(pause_ms / 1_000))
            wait_ms -= pause_ms

        async def given_up() -> bool:
            return await call.has_left() or await self._leaving(ask.worker)

        handled = ask.handled
        if handled is None and ask.worker is not None:
            notes = self._context.worker_notes
            handled = await (notes.declared(ask.worker) if ask.declared else notes.handled(ask.worker))
        for job_type in (None,) if handled is None else {handler.type for handler in handled.declared} or (None,):
            call.require_queue(*ask.queues, job_type=job_type)
        if call.gone:  # a claim would have to be undone, and its attempt's number is used up
            return []
        fetch = self._store.dispatcher.fetch
        return await fetch(ask.queues, ask.count, ask.worker, ask.lease_ms, wait_ms, ask.pool, given_up, handled)

    async def _leaving(self, worker: str | None) -> bool:
        return worker is not None and await self._context.worker_notes.leaving(worker)

    async def ack(self, call: Call) -> Response:
        """POST /workers/ack, POST /jobs/{id}/ack."""
        ask = await call.read_jobs(parse_ack, self._limits, _from_path(call))
        done = await self._acked(ask, call)
        if done.result_blob is not None and not done.result:
            done = replace(done, result=ask.result)
        return Response(200, acknowledged(done))

    async def ack_many(self, call: Call) -> Response:
        """POST /workers/acks: each job by itself."""
        asked = await call.read_jobs(parse_acks, self._limits)
        refused = await self._refused_acks(asked, call)
        require_backend([refused.get(index) for index in range(len(asked))])
        return Response(207 if refused else 200, acks_answer(asked, refused), refusal_headers(refused.values()))

    async def _refused_acks(self, asked: Sequence[Ack | OjsError], call: Call) -> dict[int, OjsError]:
        """Carry out the acks, each by itself, and return why some were refused, by their places."""
        refused: dict[int, OjsError] = {}
        call.held = True  # about each job; there may be none

        async def ack(index: int, ask: Ack | OjsError) -> None:
            try:
                if isinstance(ask, OjsError):
                    raise ask
                await self._acked(ask, call)
            except OjsError as error:
                refused[index] = error

        await asyncio.gather(*(ack(index, ask) for index, ask in enumerate(asked)))
        return refused

    async def _acked(self, ask: Ack, call: Call) -> Job:
        seen: Job | None = None

        def decide(job: Job, moment: transitions.Moment) -> transitions.Transition:
            nonlocal seen
            seen = call.own(job)
            return transitions.ack(seen, ask.result, ask.holder, moment)

        try:
            return (await tracing.settled("ojs.ack", ask.job_id, self._store.jobs.change(ask.job_id, decide))).after
        except OjsError as error:
            # What was refused is the leader's last word on the job, so it needn't be read once more.
            if error.code != "conflict" or seen is None or not transitions.acked_before(seen, ask.holder):
                raise
        return await self._store.blobs.whole(seen)

    async def nack(self, call: Call) -> Response:
        """POST /workers/nack, /workers/fail, POST /jobs/{id}/nack, /jobs/{id}/fail."""
        ask = await call.read_jobs(parse_nack, self._limits, _from_path(call))
        closed_until = await self._close_limit(ask, call) if ask.closed_until is not None else None

        def decide(job: Job, moment: transitions.Moment) -> transitions.Transition:
            return transitions.nack(call.own(job), ask.failure, ask.holder, moment)

        done = await tracing.settled("ojs.nack", ask.job_id, self._store.jobs.change(ask.job_id, decide))
        return Response(200, nacked(done.after, closed_until, ask.warnings))

    async def _close_limit(self, ask: Nack, call: Call) -> int | None:
        """Let no other such job start before a time that the handler was given, before the nack lets another go.

        Return until when that is; None if it has no effect. Raises OjsError where the nack would be refused.
        """
        job = call.own(await self._store.jobs.get(ask.job_id))
        transitions.nack(job, ask.failure, ask.holder, self._store.clock.moment())
        closed: int | None = None
        for extras in self._extras:
            if ask.closed_until is not None and extras.asks(job):
                closed = await extras.close(self._store, job, ask.closed_until, ask.failure.message)
        return closed

    async def heartbeat(self, call: Call) -> Response:
        """POST /workers/heartbeat: a sign of life for the worker and for the jobs that it names."""
        beat = await call.read(parse_heartbeat, self._limits)
        held = [job_id for job_id in beat.job_ids if is_job_id(job_id)]
        held = await self._own_jobs(call, held)
        record = await self._own_worker(call, _record(beat.worker))
        if not record.queues:
            record = replace(record, queues=self._fetched.get((call.principal.reach, record.id)) or ())
        if record.handlers is not None:
            await self._context.worker_notes.declare(record.id, record.handlers)
        elif (handled := await self._context.worker_notes.handled(record.id)) is not None:
            record = replace(record, handlers=handled.declared)
        mark, outcome, directive, quieted = await asyncio.gather(
            self._store.workers.beat(record),
            self._store.jobs.extend(held, beat.worker.id, beat.lease_ms),
            self._context.worker_notes.unmet(record),
            self._context.worker_notes.heard(record),
        )
        state = beat.worker.state if beat.worker.state in _ASKED_TO else "running"
        if directive is not None and state != "terminate":
            state = directive.wish
        if self._context.settings.test_mode:
            state = _directed(outcome.jobs) or state
        for job in outcome.jobs:
            self._tell_of(job)
        await self._tell_of_worker(record, quieted=quieted)
        return Response(200, heartbeat_answer(state, outcome.extended, outcome.cancelled, mark, beat.warnings))

    def _tell_of(self, job: Job) -> None:
        told = {"job_id": job.id, "job_type": job.type, "queue": job.queue, "attempt": job.attempt}
        if job.worker is not None:
            told["worker_id"] = job.worker
        if job.visible_until is not None:
            told["visible_until"] = format_ms(job.visible_until)
        tell_of_job(self._store, "job.heartbeat", job, told)

    async def _tell_of_worker(self, worker: WorkerRecord, *, quieted: bool) -> None:
        told = {"worker_id": worker.id, "active_jobs": worker.active_jobs}
        if quieted:
            await announce(self._store, "worker.quiet", scope="worker", subject=worker.id, data=told)
        told |= {"queues": worker.queues, "state": worker.state}
        tell(self._store, "worker.heartbeat", scope="worker", subject=worker.id, data=told)

    async def health(self, call: Call) -> Response:
        """GET /workers/{id}/health: 200 while it takes jobs; 503 if it is about to leave, or was not heard of for 30 s."""
        worker_id = short_text(call.parameters[0], "the worker's id", self._limits)
        worker = await self._store.workers.get(worker_id)
        if worker is None or worker.state == STOPPED:
            raise not_found("worker", worker_id)
        answer = worker_health(worker, self._store.clock.now())
        return Response(200 if answer.status == "healthy" else 503, answer)

    async def register(self, call: Call) -> Response:
        """POST /workers/register."""
        worker = await call.read(parse_register, self._limits)
        mark = await self._store.workers.beat(await self._own_worker(call, _record(worker)))
        await self._context.worker_notes.withdraw(worker.id, worker.handlers or ())
        started = {"worker_id": worker.id, "queues": worker.queues, "concurrency": worker.concurrency or 1}
        await announce(self._store, "worker.started", scope="worker", subject=worker.id, data=started)
        return Response(200, registered(worker.id, mark))

    async def deregister(self, call: Call) -> Response:
        """POST /workers/deregister, DELETE /workers/{id}. What the worker still holds is given back."""
        if (named := _from_path(call)) is not None:
            ask = Deregistration(short_text(named, "the worker's id", self._limits))
        else:
            ask = await call.read(parse_deregister, self._limits)
        worker_id = ask.worker
        await self._own_worker(call, WorkerRecord(id=worker_id))
        left = await self._store.workers.remove(worker_id, signed_off=True, pid=ask.pid, started_at=ask.started_at)
        if left is None:
            raise not_found("worker", worker_id)
        await self._context.worker_notes.withdraw(worker_id)
        stopped = {"worker_id": worker_id, "reason": ask.reason}
        await announce(self._store, "worker.stopped", scope="worker", subject=worker_id, data=stopped)
        await self._take_back(call, worker_id, left)
        return Response(200, DeregisteredWorker(True, worker_id))

    async def _own_worker(self, call: Call, record: WorkerRecord) -> WorkerRecord:
        """Return the record as a worker of the caller's. Raises permission_denied for queues that the caller doesn't
        reach.

        The same if a caller of another reach has a worker of this id. A key of the same reach goes on with its
        worker, as one does that another was rotated to.
        """
        if not call.principal.narrowed:
            return record
        call.require_entry(*record.queues)
        known = await self._store.workers.get(record.id)
        if known is not None and known.state != STOPPED and known.reach != call.principal.reach:
            raise OjsError(
                "permission_denied",
                f"worker {shown(record.id)} belongs to a caller that reaches other jobs, so this request can't speak for it",
                hint="Give the worker an id of its own.",
                details={"field": "worker_id"},
            )
        return replace(record, reach=call.principal.reach)

    async def _own_jobs(self, call: Call, ids: list[str]) -> list[str]:
        """Those that the request may be about."""
        if not call.bounded or not ids:
            return ids
        found = await self._store.records.many(ids)
        return [name for name, one in found.items() if one.job is not None and call.sees(one.job.queue, one.job.type)]

    async def _take_back(self, call: Call, worker_id: str, left: Mark) -> None:
        """Give back what a worker has left behind of the caller's jobs.

        The index tells it soon; the reaper finds the rest.
        """
        held = JobsAsk(worker=worker_id, state=State.ACTIVE)
        try:
            async with asyncio.timeout(self._context.timings.goodbye_s):
                async for page in walk(self._context.queries.jobs, held):
                    found = await self._store.records.many([row.id for row in page.jobs]) if page.jobs else {}
                    jobs = [
                        stored.job
                        for stored in found.values()
                        if stored.job is not None
                        and (stored.job.state, stored.job.worker) == (State.ACTIVE, worker_id)
                        and left.follows(stored.job, stored.sequence)
                        and call.sees(stored.job.queue, stored.job.type)
                    ]
                    self._store.dispatcher.take_back(jobs, "its worker has deregistered")
        except (OjsError, TimeoutError) as error:
            log.info("what a worker left behind waits for the reaper", worker_id=worker_id, reason=str(error))


def _from_path(call: Call) -> str | None:
    return call.parameters[0] if call.parameters else None


def _record(worker: Worker) -> WorkerRecord:
    return WorkerRecord(**msgspec.structs.asdict(worker))


def _directed(jobs: Iterable[Job]) -> str | None:
    """Test mode: a held job whose `metadata.test_directive` is quiet or terminate decides the answered state."""
    for job in jobs:
        if job.metadata:
            try:
                directive = msgspec.json.decode(job.metadata, type=_Metadata).test_directive
            except msgspec.ValidationError:
                continue
            if directive in _ASKED_TO:
                return directive
    return None
