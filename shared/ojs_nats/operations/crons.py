"""Cron entries: jobs on a schedule (docs/cron.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any, Final, Literal

from ojs_nats._hooks import ClientHooks
from ojs_nats._operations import Operation, Request
from ojs_nats._transport import Transport
from ojs_nats.jobs import JobRequest, a_job
from ojs_nats.models.crons import Cron, CronRun, TriggeredCron
from ojs_nats.operations.subject import Subject, body, parameters

_LIST: Final = Operation("listCronJobs", "GET", "/cron")
_REGISTER: Final = Operation("registerCronJob", "POST", "/cron")
_GET: Final = Operation("getCronJob", "GET", "/cron/{cron}")
_UPDATE: Final = Operation("updateCronJob", "PATCH", "/cron/{cron}")
_DELETE: Final = Operation("deleteCronJob", "DELETE", "/cron/{cron}")
_TRIGGER: Final = Operation("triggerCronJob", "POST", "/cron/{cron}/trigger")
_PAUSE: Final = Operation("pauseCronJob", "POST", "/cron/{cron}/pause")
_RESUME: Final = Operation("resumeCronJob", "POST", "/cron/{cron}/resume")
_COMING: Final = Operation("listCronNextRuns", "GET", "/cron/{cron}/next")
_PREVIEW: Final = Operation("previewCron", "POST", "/admin/cron/preview")
_HISTORY: Final = Operation("listCronRuns", "GET", "/cron/{cron}/history")

Overlap = Literal["skip", "allow", "cancel_previous", "enqueue"]


class Crons(Subject):
    """`client.crons`. What is about one entry raises NotFoundError."""

    def __init__(self, transport: Transport, hooks: ClientHooks) -> None:
        super().__init__(transport)
        self._surroundings = hooks

    def list(self, *, enabled: bool | None = None, limit: int | None = None) -> AsyncIterator[Cron]:
        """By name."""
        return self._each(Cron, "crons", _LIST, limit, parameters(enabled=enabled))

    async def register(
        self,
        name: str,
        expression: str,
        job: JobRequest[Any],
        *,
        timezone: str | None = None,
        overlap: Overlap | None = None,
        enabled: bool | None = None,
        description: str | None = None,
    ) -> Cron:
        """Run `job`, as `send_report.job("daily")` makes it, by `expression`: five or six fields, `@daily`, `@every 5m`.

        An entry of that name is replaced. `timezone` is an IANA name, else UTC; `overlap` is what is done while the run before
        hasn't ended.
        """
        asked = await self._members(expression, job, timezone, overlap, enabled, description)
        return await self._asked(Cron, Request(_REGISTER, body={"name": name, **asked}), "cron")

    async def get(self, name: str) -> Cron:
        return await self._asked(Cron, Request(_GET, {"cron": name}), "cron")

    async def update(
        self,
        name: str,
        *,
        expression: str | None = None,
        job: JobRequest[Any] | None = None,
        timezone: str | None = None,
        overlap: Overlap | None = None,
        enabled: bool | None = None,
        description: str | None = None,
    ) -> Cron:
        """Change what is named."""
        asked = await self._members(expression, job, timezone, overlap, enabled, description)
        return await self._asked(Cron, Request(_UPDATE, {"cron": name}, asked), "cron")

    async def delete(self, name: str) -> Cron:
        """What it was."""
        return await self._asked(Cron, Request(_DELETE, {"cron": name}), "cron")

    async def trigger(self, name: str) -> TriggeredCron:
        """Run it now, besides its schedule."""
        return await self._asked(TriggeredCron, Request(_TRIGGER, {"cron": name}, repeatable=False))

    async def pause(self, name: str) -> Cron:
        return await self._asked(Cron, Request(_PAUSE, {"cron": name}), "cron")

    async def resume(self, name: str) -> Cron:
        return await self._asked(Cron, Request(_RESUME, {"cron": name}), "cron")

    async def coming(self, name: str, *, count: int | None = None) -> Sequence[datetime]:
        """When it runs next, or would if it weren't paused."""
        return await self._asked(list[datetime], Request(_COMING, {"cron": name, **parameters(count=count)}), "runs")

    async def preview(self, expression: str, *, timezone: str | None = None, count: int | None = None) -> Sequence[datetime]:
        """When an expression would fire; nothing is stored."""
        asked = body(expression=expression, timezone=timezone, count=count)
        return await self._asked(list[datetime], Request(_PREVIEW, body=asked), "runs")

    async def history(self, name: str, *, limit: int | None = None) -> Sequence[CronRun]:
        """Its last runs, the newest first."""
        return await self._asked(list[CronRun], Request(_HISTORY, {"cron": name, **parameters(limit=limit)}), "executions")

    async def _members(
        self,
        expression: str | None,
        job: JobRequest[Any] | None,
        timezone: str | None,
        overlap: Overlap | None,
        enabled: bool | None,
        description: str | None,
    ) -> dict[str, object]:
        if job is not None:
            a_job(job, "what a cron entry runs is a job, as send_report.job(…) makes it")
        template = None if job is None else (await self._surroundings.prepared(job)).template()
        return body(
            expression=expression,
            job_template=template,
            timezone=timezone,
            overlap_policy=overlap,
            enabled=enabled,
            description=description,
        )
