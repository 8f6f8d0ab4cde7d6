"""The dead letter queue: manual retry and deletion (requirements §14)."""

from __future__ import annotations

from ojs_gateway.call import Answer, Call
from ojs_gateway.context import Context
from ojs_nats import transitions
from ojs_nats.errors import not_found
from ojs_nats.job import Job
from ojs_nats.transitions import Moment, Transition
from ojs_nats.wire.ids import job_id_of
from ojs_nats.wire.output import encode, job_body
from ojs_nats.wire.worker import parse_override

__all__ = ["DeadLetter"]


class DeadLetter:
    """Handlers under /dead-letter. A job that is not there is `not_found`, whatever else it is."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._limits = context.limits

    async def retry(self, call: Call) -> Answer:
        """POST /dead-letter/{id}/retry: a new life under the same id, changed by `override` if the body has one."""
        override = parse_override(await call.body(), self._limits)

        def decide(job: Job, moment: Moment) -> Transition:
            return transitions.retry_discarded(_dead(job), override, moment)

        change = await self._store.jobs.change(job_id_of(call.parameters[0]), decide)
        return Answer(200, job_body(change.after))

    async def delete(self, call: Call) -> Answer:
        """DELETE /dead-letter/{id}."""
        job_id = job_id_of(call.parameters[0])
        await self._store.jobs.change(job_id, lambda job, moment: transitions.delete(_dead(job), moment))
        return Answer(200, encode({"deleted": True, "job_id": job_id}))


def _dead(job: Job) -> Job:
    if not job.dead_letter:
        raise not_found("dead_letter", job.id)
    return job
