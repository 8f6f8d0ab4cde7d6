"""The worker's side: fetch, ack, nack, heartbeat, register and deregister (requirements §6)."""

from __future__ import annotations

import asyncio
import math
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ojs_gateway.call import Answer, Call
from ojs_gateway.context import Context
from ojs_nats import tracing, transitions
from ojs_nats.errors import OjsError, not_found
from ojs_nats.events.announce import announce, tell
from ojs_nats.limits import policy_of
from ojs_nats.store import WorkerRecord
from ojs_nats.store.limits import key_scope
from ojs_nats.store.presence import STOPPED
from ojs_nats.wire.admin import worker_health
from ojs_nats.wire.fields import short_text
from ojs_nats.wire.ids import is_job_id
from ojs_nats.wire.output import ack_body, encode, fetch_body, heartbeat_body, nack_body, registered_body
from ojs_nats.wire.times import format_ms
from ojs_nats.wire.worker import (
    Fetch,
    Nack,
    Worker,
    parse_ack,
    parse_deregister,
    parse_fetch,
    parse_heartbeat,
    parse_nack,
    parse_register,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from msgspec import Raw

    from ojs_nats.job import Job

__all__ = ["Workers"]

_LOOK_UP_S: Final = 1.0
"""How often a long poll looks whether its client is still there; the store looks for missed work as often anyway."""
_LONGEST_CLOSED_MS: Final = 7 * 86_400_000
"""A failure can't stop a key for longer; the next one can do so again."""
_ASKED_TO: Final = ("terminate", "quiet")


class _Metadata(Struct):
    test_directive: str | None = None


class Workers:
    """Handlers under /workers, and the same under /jobs/{id}."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._limits = context.limits

    async def fetch(self, call: Call) -> Answer:
        """POST /workers/fetch. What is claimed for a client that left meanwhile is given back."""
        jobs = await self._work(parse_fetch(await call.body(), self._limits), call)
        if jobs and call.gone:
            for job in jobs:
                self._store.handout.give_back(job, "the client left before it was answered")
        inputs = await self._inputs(jobs)
        tracing.handed_out(jobs)
        return Answer(200, fetch_body(jobs, inputs))

    async def _inputs(self, jobs: list[Job]) -> Mapping[str, Sequence[Raw]]:
        """What earlier steps hand on to those that are members of workflows; without it they can't be handed out."""
        if not any(job.workflow is not None and job.workflow.inputs for job in jobs):
            return {}
        try:
            return await self._store.workflows.results.inputs(jobs)
        except OjsError:
            for job in jobs:
                self._store.handout.give_back(job, "the results of earlier steps could not be read")
            raise

    async def _work(self, ask: Fetch, call: Call) -> list[Job]:
        loop = asyncio.get_running_loop()
        until = loop.time() + ask.wait_ms / 1_000
        while True:
            left = max(0.0, until - loop.time())
            wait_ms = math.ceil(min(left, _LOOK_UP_S) * 1_000)
            if ask.worker is not None and await self._context.directives.leaving(ask.worker):
                jobs: list[Job] = []
                await self._context.unless_stopping(asyncio.sleep(wait_ms / 1_000))
            else:
                jobs = await self._store.handout.fetch(ask.queues, ask.count, ask.worker, ask.lease_ms, wait_ms, ask.pool)
            if jobs or left <= _LOOK_UP_S or self._context.stopping or call.gone:
                return jobs

    async def ack(self, call: Call) -> Answer:
        """POST /workers/ack, POST /jobs/{id}/ack."""
        ask = parse_ack(await call.body(), self._limits, _from_path(call))
        change = self._store.jobs.change(ask.job_id, lambda job, moment: transitions.ack(job, ask.result, ask.holder, moment))
        done = (await tracing.settled("ojs.ack", ask.job_id, change)).after
        return Answer(200, ack_body(done if done.result_blob is None else replace(done, result=ask.result)))

    async def nack(self, call: Call) -> Answer:
        """POST /workers/nack, /workers/fail, POST /jobs/{id}/nack, /jobs/{id}/fail."""
        ask = parse_nack(await call.body(), self._limits, _from_path(call))
        closed_until = await self._close_limit(ask) if ask.closed_until is not None else None
        change = self._store.jobs.change(ask.job_id, lambda job, moment: transitions.nack(job, ask.failure, ask.holder, moment))
        done = await tracing.settled("ojs.nack", ask.job_id, change)
        return Answer(200, nack_body(done.after, closed_until))

    async def _close_limit(self, ask: Nack) -> int | None:
        """Let nothing start under the job's key before a time that its handler was told; before the nack lets another go.

        Until when that is; None if the job has no key or the time is past. Raises OjsError where the nack would be refused.
        """
        job = await self._store.jobs.get(ask.job_id)
        moment = self._store.clock.moment()
        transitions.nack(job, ask.failure, ask.holder, moment)
        policy = policy_of(job)
        if policy is None or policy.key is None or ask.closed_until is None or ask.closed_until <= moment.now:
            return None
        until = min(ask.closed_until, moment.now + _LONGEST_CLOSED_MS)
        if await self._store.limits.close_until(key_scope(policy.key), policy, until):
            told = {"key": policy.key, "until": format_ms(until), "reason": ask.failure.message}
            await announce(self._store, "rate_limit.dynamic_adjusted", scope="limit", subject=policy.key, data=told)
        return until

    async def heartbeat(self, call: Call) -> Answer:
        """POST /workers/heartbeat: a sign of life for the worker and for the jobs that it names."""
        beat = parse_heartbeat(await call.body(), self._limits)
        held = [job_id for job_id in beat.job_ids if is_job_id(job_id)]
        record = _record(beat.worker)
        _, outcome, directive, _ = await asyncio.gather(
            self._store.workers.beat(record),
            self._store.jobs.extend(held, beat.worker.id, beat.lease_ms),
            self._context.directives.of(record),
            self._context.directives.heard(record),
        )
        state = beat.worker.state if beat.worker.state in _ASKED_TO else "running"
        if directive is not None and state != "terminate":
            state = directive.wish
        if self._context.test_mode:
            state = _directed(outcome.jobs) or state
        for job in outcome.jobs:
            self._tell_of(job)
        return Answer(200, heartbeat_body(state, outcome.extended, outcome.cancelled, self._store.clock.now()))

    def _tell_of(self, job: Job) -> None:
        told = {"job_id": job.id, "job_type": job.type, "queue": job.queue, "attempt": job.attempt}
        if job.worker is not None:
            told["worker_id"] = job.worker
        if job.visible_until is not None:
            told["visible_until"] = format_ms(job.visible_until)
        tell(self._store, "job.heartbeat", scope=job.queue, subject=job.id, data=told)

    async def health(self, call: Call) -> Answer:
        """GET /workers/{id}/health: 200 while it takes jobs; 503 if it is about to leave, or was not heard of for 30 s."""
        worker_id = short_text(call.parameters[0], "the worker's id", self._limits)
        worker = await self._store.workers.get(worker_id)
        if worker is None or worker.state == STOPPED:
            raise not_found("worker", worker_id)
        status, view = worker_health(worker, self._store.clock.now())
        return Answer(status, encode(view))

    async def register(self, call: Call) -> Answer:
        """POST /workers/register."""
        worker = parse_register(await call.body(), self._limits)
        await self._store.workers.beat(_record(worker))
        await self._context.directives.withdraw(worker.id)
        started = {"worker_id": worker.id, "queues": worker.queues, "concurrency": worker.concurrency or 1}
        await announce(self._store, "worker.started", scope="worker", subject=worker.id, data=started)
        return Answer(200, registered_body(worker.id, self._store.clock.now()))

    async def deregister(self, call: Call) -> Answer:
        """POST /workers/deregister, DELETE /workers/{id}."""
        if (named := _from_path(call)) is not None:
            worker_id = short_text(named, "the worker's id", self._limits)
        else:
            worker_id = parse_deregister(await call.body(), self._limits)
        if not await self._store.workers.remove(worker_id):
            raise not_found("worker", worker_id)
        await self._context.directives.withdraw(worker_id)
        stopped = {"worker_id": worker_id, "reason": "shutdown"}
        await announce(self._store, "worker.stopped", scope="worker", subject=worker_id, data=stopped)
        return Answer(200, encode({"ok": True, "worker_id": worker_id}))


def _from_path(call: Call) -> str | None:
    return call.parameters[0] if call.parameters else None


def _record(worker: Worker) -> WorkerRecord:
    return WorkerRecord(**msgspec.structs.asdict(worker))


def _directed(jobs: Iterable[Job]) -> str | None:
    """Test mode: a held job whose `metadata.test_directive` is quiet or terminate decides the answered state (§25.3)."""
    for job in jobs:
        if job.metadata:
            try:
                directive = msgspec.json.decode(job.metadata, type=_Metadata).test_directive
            except msgspec.ValidationError:
                continue
            if directive in _ASKED_TO:
                return directive
    return None
