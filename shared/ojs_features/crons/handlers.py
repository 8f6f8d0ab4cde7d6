"""Cron entries: register, list, read, pause, resume, run, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from ojs_api.crons import DeletedCron, OneCron, TriggeredCron
from ojs_engine.api.call import Call, Response
from ojs_engine.api.keyed import refuse_key
from ojs_engine.api.pressure import pressure_headers
from ojs_engine.base.errors import OjsError, invalid, not_found
from ojs_engine.base.fields import shown
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import Moment
from ojs_engine.operations.job_checks import JobWarning
from ojs_engine.wire.members import AnswerWarning, warnings_of
from ojs_engine.wire.pages import parse_page
from ojs_features.context import HandlerContext
from ojs_features.crons import changes, schedule, step
from ojs_features.crons.answers import cron_answer, cron_coming, cron_history, cron_page, cron_preview, remarked
from ojs_features.crons.record import Cron
from ojs_features.crons.remarks import remarks
from ojs_features.crons.requests import cron_name, parse_count, parse_patch, parse_preview, parse_registration, parse_switch
from ojs_features.crons.step import Step
from ojs_features.crons.store import Crons

_LOCATION: Final = "/ojs/v1/jobs/"


class CronHandlers:
    """Handlers under /cron and /crons."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._crons = context.store.of(Crons)
        self._limits = context.limits
        self._check = context.check
        self._refusals = context.refusals

    async def register(self, call: Call) -> Response:
        """POST /cron: 201 for a new entry, 200 for one that was there (CRON-26)."""
        told: list[AnswerWarning] = []
        wanted = await call.read_jobs(parse_registration, self._limits, told)
        call.admit(wanted.draft)
        await self._require_free(call, wanted.name)
        told += warnings_of(await self._check_job(wanted.draft))
        told += remarked(await self._remarks(wanted.expression, wanted.timezone))
        created, found = await self._crons.register(replace(wanted, key=call.key_id))
        return Response(201 if created else 200, OneCron(cron_answer(found), told or None))

    async def _check_job(self, draft: Job) -> Sequence[JobWarning]:
        """Return the warnings for an entry's owner. Raises OjsError job_type_not_allowed and schema_validation;
        whatever else a queue may refuse will pass.
        """
        told = await self._check(draft)
        try:
            await self._store.queues.admit(draft)
        except OjsError as error:
            if error.code == "job_type_not_allowed":
                raise
        return told

    async def list(self, call: Call) -> Response:
        """GET /cron?enabled=true, with the paging of all lists; sorted by name."""
        page = parse_page(call.queries)
        enabled = call.query("enabled")
        if enabled and enabled not in {"true", "false"}:
            raise invalid("enabled", f"enabled must be true or false, not {shown(enabled)}")
        call.held = True  # about each entry; there may be none
        crons = [cron for cron in await self._crons.all() if call.sees(cron.draft.queue, cron.draft.type)]
        if enabled:
            crons = [cron for cron in crons if cron.enabled == (enabled == "true")]
        return Response(200, cron_page(crons, page))

    async def read(self, call: Call) -> Response:
        """GET /cron/{name}."""
        return Response(200, OneCron(cron_answer(await self._own(call))))

    async def patch(self, call: Call) -> Response:
        """PATCH /cron/{name}: `{"enabled": false}`, or any other members to change."""
        body = await call.body(self._limits.max_control_bytes)
        enabled = parse_switch(body)
        if enabled is not None:
            return await self._switch(call, enabled=enabled)
        name = cron_name(call.parameters[0])
        told: list[AnswerWarning] = []
        draft = parse_patch(body, await self._own(call), self._limits, told).draft
        call.admit(draft)
        told += warnings_of(await self._check_job(draft))

        def decide(cron: Cron, moment: Moment) -> Step:
            wanted = replace(parse_patch(body, _owned(cron, call), self._limits), key=call.key_id)
            return changes.register(cron, wanted, moment)

        changed = await self._crons.change(name, decide)
        told += remarked(await self._remarks(changed.expression, changed.timezone))
        return Response(200, OneCron(cron_answer(changed), told or None))

    async def pause(self, call: Call) -> Response:
        """POST /cron/{name}/pause."""
        return await self._switch(call, enabled=False)

    async def resume(self, call: Call) -> Response:
        """POST /cron/{name}/resume."""
        return await self._switch(call, enabled=True)

    async def _switch(self, call: Call, *, enabled: bool) -> Response:
        name = cron_name(call.parameters[0])
        found = await self._crons.change(name, lambda cron, moment: changes.switch(_owned(cron, call), enabled, moment))
        return Response(200, OneCron(cron_answer(found)))

    async def delete(self, call: Call) -> Response:
        """DELETE /cron/{name}; jobs that it has created stay."""
        gone = await self._crons.change(
            cron_name(call.parameters[0]), lambda cron, moment: changes.delete(_owned(cron, call), moment)
        )
        return Response(200, DeletedCron(cron_answer(gone), deleted=True))

    async def run(self, call: Call) -> Response:
        """POST /cron/{name}/trigger: a run outside the schedule. 202 if its job is still to be created; after any
        refusal there will be none.
        """
        refuse_key(call, "read the entry's history before you send it again")
        name = cron_name(call.parameters[0])
        draft = (await self._own(call)).draft
        await self._store.queues.admit(draft)
        try:
            cron, run, created = await self._crons.run_now(name, self._check)
        except OjsError as error:
            await self._refusals.tell(error, [draft])
            raise
        job_id = step.job_id_of(cron.name, cron.waiting[-1]) if run is None or run.job_id is None else run.job_id
        answer = TriggeredCron(job_id=job_id, cron=cron_answer(cron))
        if not created:
            return Response(202, answer)
        return Response(201, answer, (("Location", _LOCATION + job_id), *pressure_headers(self._store, [draft.queue])))

    async def coming(self, call: Call) -> Response:
        """GET /cron/{name}/next?count: its next runs; of a paused entry those that it would have."""
        count = parse_count(call.query("count"))
        cron = await self._own(call)
        ticks = await self._ticks(cron.expression, cron.timezone, cron.anchor, count)
        return Response(200, cron_coming(cron, ticks, await self._remarks(cron.expression, cron.timezone)))

    async def preview(self, call: Call) -> Response:
        """POST /admin/cron/preview: the next runs of an expression, refused as a registration with it is."""
        wanted = await call.parsed(await call.body(self._limits.max_control_bytes), parse_preview)
        ticks = await self._ticks(wanted.expression, wanted.timezone, self._store.clock.now(), wanted.count)
        said = await self._remarks(wanted.expression, wanted.timezone)
        return Response(200, cron_preview(wanted.timezone, ticks, said))

    async def _ticks(self, expression: str, timezone: str, anchor: int, count: int) -> Sequence[int]:
        """Work out ticks beside the loop: an expression that seldom fires takes a while."""
        return await asyncio.to_thread(schedule.coming, expression, timezone, anchor, self._store.clock.now(), count)

    async def _remarks(self, expression: str, timezone: str) -> Sequence[str]:
        return await asyncio.to_thread(remarks, expression, timezone, self._store.clock.now())

    async def history(self, call: Call) -> Response:
        """GET /cron/{name}/history?limit: the last occurrences, up to 50, newest first."""
        limit = parse_page(call.queries).limit
        cron = await self._own(call)
        ids = [run.job_id for run in cron.log[-limit:] if run.job_id is not None]
        found = await self._store.records.many(ids)
        jobs = {
            job_id: stored.job
            for job_id, stored in found.items()
            if stored.job is not None and call.sees(stored.job.queue, stored.job.type)
        }
        return Response(200, cron_history(cron, jobs, limit))

    async def _own(self, call: Call) -> Cron:
        """The entry of the path, if the request may be about it. Raises not_found."""
        return _owned(await self._crons.get(cron_name(call.parameters[0])), call)

    async def _require_free(self, call: Call, name: str) -> None:
        """Raises permission_denied for an entry that stands already and that the request may not be about."""
        if not call.bounded:
            return
        try:
            _owned(await self._crons.get(name), call)
        except OjsError as error:
            if error.code != "not_found":
                raise
            if any(cron.name == name for cron in await self._crons.all()):
                raise OjsError(
                    "permission_denied",
                    f"this key can't register a cron entry under the name {name!r}",
                    hint="Use another name.",
                    details={"field": "name"},
                ) from None


def _owned(cron: Cron, call: Call) -> Cron:
    """Raises not_found for an entry whose jobs the request may not be about."""
    if not call.sees(cron.draft.queue, cron.draft.type):
        raise not_found("cron", cron.name)
    return cron
