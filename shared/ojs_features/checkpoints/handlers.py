"""Checkpoints of jobs: saved by workers, read by the next attempt."""

from __future__ import annotations

from ojs_api.checkpoints import DeletedCheckpoint
from ojs_engine.api.call import Call, Response
from ojs_engine.base.errors import not_found
from ojs_engine.base.ids import job_id_of
from ojs_engine.store.announce import tell_of_job
from ojs_features.checkpoints.bodies import one_checkpoint, parse_checkpoint, resume, saved_checkpoint
from ojs_features.checkpoints.store import Checkpoints
from ojs_features.context import HandlerContext


class CheckpointHandlers:
    """Handlers of checkpoints."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._checkpoints = context.store.of(Checkpoints)
        self._limits = context.limits

    async def save(self, call: Call) -> Response:
        """PUT and POST /jobs/{id}/checkpoint, /checkpoints/{id}."""
        ask = await call.read_jobs(parse_checkpoint, self._limits, call.parameters[0])
        await call.require_job(ask.job_id, self._store.jobs.get)
        job, checkpoint = await self._checkpoints.save(ask.job_id, ask.saved, ask.holder)
        told = {"job_id": job.id, "job_type": job.type, "queue": job.queue, "attempt": job.attempt}
        told["sequence"] = checkpoint.sequence
        tell_of_job(self._store, "job.checkpointed", job, told)
        return Response(200, saved_checkpoint(checkpoint))

    async def read(self, call: Call) -> Response:
        """GET /jobs/{id}/checkpoint, /checkpoints/{id}: 404 if there is none."""
        job_id = await self._job(call)
        checkpoint = await self._checkpoints.get(job_id)
        if checkpoint is None:
            raise not_found("checkpoint", job_id)
        return Response(200, one_checkpoint(checkpoint))

    async def resume(self, call: Call) -> Response:
        """GET /checkpoints/{id}/resume."""
        job_id = await self._job(call)
        return Response(200, resume(job_id, await self._checkpoints.get(job_id)))

    async def delete(self, call: Call) -> Response:
        """DELETE /jobs/{id}/checkpoint, /checkpoints/{id}: done twice, it is done."""
        job_id = await self._job(call)
        existed = await self._checkpoints.delete(job_id)
        return Response(200, DeletedCheckpoint(deleted=True, job_id=job_id, existed=existed))

    async def _job(self, call: Call) -> str:
        """Return the id of the path's job, if the request may be about it."""
        job_id = job_id_of(call.parameters[0])
        await call.require_job(job_id, self._store.jobs.get)
        return job_id
