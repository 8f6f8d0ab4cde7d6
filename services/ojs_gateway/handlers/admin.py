"""Single jobs as operators change them (ojs-admin-api §7)."""

from __future__ import annotations

from ojs_api.jobs import AdminChangedJob
from ojs_engine.api.call import Call, Response
from ojs_engine.base.ids import job_id_of
from ojs_engine.domain import transitions
from ojs_engine.wire.jobs.job import job_view
from ojs_engine.wire.workers.requests import parse_cancel
from ojs_gateway.context import Context


class AdminHandlers:
    """Handlers under /admin that are about one job."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._limits = context.limits

    async def retry(self, call: Call) -> Response:
        """POST /admin/jobs/{id}/retry: a discarded or cancelled job gets a new life, one that waits for its next
        attempt gets it now.
        """
        change = await self._store.jobs.revive(
            job_id_of(call.parameters[0]), lambda job, moment: transitions.retry_one(call.own(job), moment)
        )
        return Response(200, AdminChangedJob(job_view(change.after, previous_state=change.before.state)))

    async def run(self, call: Call) -> Response:
        """POST /admin/jobs/{id}/run: one that is scheduled, pending, or waits for its next attempt runs now."""
        change = await self._store.jobs.change(
            job_id_of(call.parameters[0]), lambda job, moment: transitions.run_now(call.own(job), moment)
        )
        return Response(200, AdminChangedJob(job_view(change.after, previous_state=change.before.state)))

    async def cancel(self, call: Call) -> Response:
        """POST /admin/jobs/{id}/cancel."""
        reason = await call.read(parse_cancel, self._limits)
        job_id = job_id_of(call.parameters[0])
        change = await self._store.jobs.change(job_id, lambda job, moment: transitions.cancel(call.own(job), moment, reason))
        return Response(200, AdminChangedJob(job_view(change.after, previous_state=change.before.state)))
