"""Operations on cron entries: jobs on a schedule (docs/cron.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Any

from ojs_api import words
from ojs_api.crons import (
    COMING,
    DELETE,
    GET,
    HISTORY,
    LIST,
    PAUSE,
    PREVIEW,
    REGISTER,
    RESUME,
    TRIGGER,
    UPDATE,
    Cron,
    CronRun,
    PreviewCron,
    RegisterCron,
    TriggeredCron,
    UpdateCron,
)
from ojs_nats._hooks import ClientHooks
from ojs_nats._operations import Request
from ojs_nats._requests import check_is_job, template
from ojs_nats._transport import Transport
from ojs_nats.jobs import JobRequest
from ojs_nats.operations._subject import Subject, parameters, sent

__all__ = ["Crons", "Overlap"]

Overlap = words.Overlap


class Crons(Subject):
    """The operations on cron entries, as `client.crons`. Those on one entry raise NotFoundError if it doesn't exist.

    Example:
        ```python
        await client.crons.register("weekly", "0 9 * * MON", send_report.job("all"), timezone="Europe/Berlin")
        ```
    """

    def __init__(self, transport: Transport, hooks: ClientHooks) -> None:
        super().__init__(transport)
        self._hooks = hooks

    def list(self, *, enabled: bool | None = None, limit: int | None = None) -> AsyncIterator[Cron]:
        """List cron entries by name.

        Args:
            enabled: Whether the entries run. None means all entries.
            limit: How many at most. None means all.
        """
        return self._each(Cron, "crons", LIST, limit, parameters(enabled=enabled))

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
        """Register a cron entry, or replace the one of that name.

        Args:
            name: The entry's name.
            expression: Five or six fields of cron, `"@daily"`, or `"@every 5m"`.
            job: The job to push, as `send_report.job("daily")` makes it.
            timezone: The IANA name of the time zone. None means UTC.
            overlap: What happens if the last run hasn't ended: `"skip"` leaves the run out, `"allow"` runs it beside
                the last, `"cancel_previous"` cancels the last, `"enqueue"` runs it behind the last. None means
                `"skip"`.
            enabled: Whether the entry runs. None means that it does.
            description: A text for people.

        Raises:
            InvalidRequestError: The expression or the time zone isn't valid.
        """
        asked = RegisterCron(
            name=name,
            expression=expression,
            job_template=await self._template(job),
            timezone=timezone,
            overlap_policy=overlap,
            enabled=enabled,
            description=description,
        )
        return await self._asked(Cron, Request(REGISTER, body=sent(asked)), "cron")

    async def get(self, name: str) -> Cron:
        """Return a cron entry.

        Raises:
            NotFoundError: There is no such entry.
        """
        return await self._asked(Cron, Request(GET, {"cron": name}), "cron")

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
        """Change a cron entry. Values that are None stay as they are.

        Args:
            name: The entry's name.
            expression: Five or six fields of cron, `"@daily"`, or `"@every 5m"`.
            job: The job to push.
            timezone: The IANA name of the time zone.
            overlap: What happens if the last run hasn't ended, as of `register`.
            enabled: Whether the entry runs.
            description: A text for people.

        Raises:
            NotFoundError: There is no such entry.
        """
        asked = UpdateCron(
            expression=expression,
            job_template=None if job is None else await self._template(job),
            timezone=timezone,
            overlap_policy=overlap,
            enabled=enabled,
            description=description,
        )
        return await self._asked(Cron, Request(UPDATE, {"cron": name}, sent(asked)), "cron")

    async def delete(self, name: str) -> Cron:
        """Delete a cron entry, and return what it was.

        Raises:
            NotFoundError: There is no such entry.
        """
        return await self._asked(Cron, Request(DELETE, {"cron": name}), "cron")

    async def trigger(self, name: str) -> TriggeredCron:
        """Run a cron entry now, besides its schedule.

        Raises:
            NotFoundError: There is no such entry.
        """
        return await self._asked(TriggeredCron, Request(TRIGGER, {"cron": name}, repeatable=False))

    async def pause(self, name: str) -> Cron:
        """Pause a cron entry.

        Raises:
            NotFoundError: There is no such entry.
        """
        return await self._asked(Cron, Request(PAUSE, {"cron": name}), "cron")

    async def resume(self, name: str) -> Cron:
        """End the pause of a cron entry.

        Raises:
            NotFoundError: There is no such entry.
        """
        return await self._asked(Cron, Request(RESUME, {"cron": name}), "cron")

    async def coming(self, name: str, *, count: int | None = None) -> Sequence[datetime]:
        """Return when a cron entry runs next. For a paused one, it is when it would run.

        Args:
            name: The entry's name.
            count: How many times. None means the server's default.

        Raises:
            NotFoundError: There is no such entry.
        """
        return await self._asked(list[datetime], Request(COMING, {"cron": name, **parameters(count=count)}), "runs")

    async def preview(self, expression: str, *, timezone: str | None = None, count: int | None = None) -> Sequence[datetime]:
        """Return when an expression would run. Nothing is stored.

        Args:
            expression: Five or six fields of cron, `"@daily"`, or `"@every 5m"`.
            timezone: The IANA name of the time zone. None means UTC.
            count: How many times. None means the server's default.

        Raises:
            InvalidRequestError: The expression or the time zone isn't valid.
        """
        asked = PreviewCron(expression=expression, timezone=timezone, count=count)
        return await self._asked(list[datetime], Request(PREVIEW, body=sent(asked)), "runs")

    async def history(self, name: str, *, limit: int | None = None) -> Sequence[CronRun]:
        """Return the last runs of a cron entry, the newest first.

        Args:
            name: The entry's name.
            limit: How many at most. None means the server's default.

        Raises:
            NotFoundError: There is no such entry.
        """
        return await self._asked(list[CronRun], Request(HISTORY, {"cron": name, **parameters(limit=limit)}), "executions")

    async def _template(self, job: JobRequest[Any]) -> dict[str, Any]:
        check_is_job(job, "what a cron entry runs is a job, as send_report.job(…) makes it")
        return template(await self._hooks.prepared(job))
