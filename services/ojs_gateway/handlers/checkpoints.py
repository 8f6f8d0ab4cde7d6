"""Checkpoints of jobs: saved by workers, read by the next attempt."""

from __future__ import annotations

from ojs_engine.api.call import Call, Response
from ojs_engine.base.errors import not_found
from ojs_engine.base.ids import job_id_of
from ojs_engine.store.announce import tell_of_job
from ojs_engine.wire.jobs.checkpoints import DeletedCheckpoint, one_checkpoint, parse_checkpoint, resume, saved_checkpoint
from ojs_gateway.context import Context


class CheckpointHandlers:
    """Handlers of checkpoints."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._limits = context.limits

    async def save(self, call: Call) -> Response:
        """PUT and POST /jobs/{id}/checkpoint, /checkpoints/{id}."""
        ask = await call.read_jobs(parse_checkpoint, self._limits, call.parameters[0])
        await call.require_job(ask.job_id, self._store.jobs.get)
        job, checkpoint = await self._store.checkpoints.save(ask.job_id, ask.saved, ask.holder)
        told = {"job_id": job.id, "job_type": job.type, "queue": job.queue, "attempt": job.attempt}
        told["sequence"] = checkpoint.sequence
        tell_of_job(self._store, "job.checkpointed", job, told)
        return Response(200, saved_checkpoint(checkpoint))

    async def read(self, call: Call) -> Response:
        """GET /jobs/{id}/checkpoint, /checkpoints/{id}: 404 if there is none."""
        job_id = job_id_of(call.parameters[0])
        await call.require_job(job_id, self._store.jobs.get)
        checkpoint = await self._store.checkpoints.get(job_id)
        if checkpoint is None:
            raise not_found("checkpoint", job_id)
        return Response(200, one_checkpoint(checkpoint))

    async def resume(self, call: Call) -> Response:
        """GET /checkpoints/{id}/resume."""
        job_id = job_id_of(call.parameters[0])
        await call.require_job(job_id, self._store.jobs.get)
        return Response(200, resume(job_id, await self._store.checkpoints.get(job_id)))

    async def delete(self, call: Call) -> Response:
        """DELETE /jobs/{id}/checkpoint, /checkpoints/{id}: done twice, it is done."""
        job_id = job_id_of(call.parameters[0])
        await call.require_job(job_id, self._store.jobs.get)
        return Response(200, DeletedCheckpoint(True, job_id, await self._store.checkpoints.delete(job_id)))
