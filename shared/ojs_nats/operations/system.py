"""Operations on the server itself: health, statistics, settings, maintenance, audit."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final

from ojs_api.audit import LIST as LIST_AUDIT
from ojs_api.findings import LIST as LIST_FINDINGS
from ojs_api.history import FAILURES
from ojs_api.maintenance import GET as GET_MAINTENANCE
from ojs_api.maintenance import LIST_UNREADABLE, REMOVE_UNREADABLE, SetMaintenance
from ojs_api.maintenance import SET as SET_MAINTENANCE
from ojs_api.statistics import HISTORY, TOTALS
from ojs_nats._durations import Duration, milliseconds
from ojs_nats._operations import Operation, Request
from ojs_nats.models.jobs import Failure
from ojs_nats.models.statistics import Statistics
from ojs_nats.models.system import (
    AuditEntry,
    AuditPage,
    DebugStatus,
    Findings,
    Health,
    Maintenance,
    Manifest,
    MiddlewareEntry,
    Service,
    SystemConfig,
    SystemStats,
    UnreadableRecord,
)
from ojs_nats.operations._subject import Subject, parameters, sent
from ojs_nats.operations.queues import Period

__all__ = ["ServerSystem"]

_MANIFEST: Final = Operation("getManifest", "GET", "/ojs/manifest")
_HEALTH: Final = Operation("getHealth", "GET", "/health")
_SERVICES: Final = Operation("listServices", "GET", "/admin/services")
_CONFIG: Final = Operation("getConfig", "GET", "/admin/system/config")
_MIDDLEWARE: Final = Operation("listMiddleware", "GET", "/middleware")
_STATUS: Final = Operation("debugStatus", "GET", "/debug/status")


class ServerSystem(Subject):
    """The operations on the server itself, as `client.system`."""

    async def manifest(self) -> Manifest:
        """Return what the server supports."""
        return await self._asked(Manifest, Request(_MANIFEST))

    async def health(self) -> Health:
        """Return whether the server can work: `status` is `ok` or `degraded`. Neither raises an error."""
        return await self._asked(Health, Request(_HEALTH, answered_as_well=frozenset({503})))

    async def stats(self) -> SystemStats:
        """Return the totals of the whole system."""
        return await self._asked(SystemStats, Request(TOTALS))

    async def findings(self) -> Findings:
        """Return the problems that the server has found, the worst first."""
        return await self._asked(Findings, Request(LIST_FINDINGS))

    async def services(self) -> Sequence[Service]:
        """Return the processes of the system that sent a sign of life lately, by role."""
        return await self._asked(list[Service], Request(_SERVICES), "services")

    async def history(
        self,
        *,
        period: Period = "1h",
        since: datetime | None = None,
        until: datetime | None = None,
        queue: str | None = None,
    ) -> Statistics:
        """Return what happened in the system, period by period.

        Args:
            period: The length of a period.
            since: The beginning, with a time zone. None means the server's default.
            until: The end, with a time zone. None means now.
            queue: The queue. None means all queues.
        """
        asked = parameters(period=period, since=since, until=until, queue=queue)
        return await self._asked(Statistics, Request(HISTORY, asked, queue=queue))

    async def config(self) -> SystemConfig:
        """Return the settings of the gateway that answers."""
        return await self._asked(SystemConfig, Request(_CONFIG))

    async def status(self) -> DebugStatus:
        """Return the state of the gateway that answers, and of the services that it knows of."""
        return await self._asked(DebugStatus, Request(_STATUS))

    async def middleware(self) -> Sequence[MiddlewareEntry]:
        """Return the server's middleware around pushes, the outermost first."""
        return await self._asked(list[MiddlewareEntry], Request(_MIDDLEWARE), "enqueue")

    def failures(self, *, queue: str | None = None, limit: int | None = None) -> AsyncIterator[Failure]:
        """List failed attempts of all jobs, the latest first, for as long as events are kept.

        Args:
            queue: The queue. None means all queues.
            limit: How many at most. None means all.
        """
        return self._each(Failure, "failures", FAILURES, limit, parameters(queue=queue), queue)

    # The audit

    def audit(
        self,
        *,
        event_type: str | None = None,
        principal: str | None = None,
        operation: str | None = None,
        target: str | None = None,
        outcome: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[AuditEntry]:
        """List the audit's entries, the newest first. None doesn't narrow the list.

        Args:
            event_type: The kind of act. It may end in `.*`.
            principal: Who did it.
            operation: The name of the operation.
            target: The thing that it was done to.
            outcome: `success` or `failure`.
            since: The beginning, with a time zone.
            until: The end, with a time zone.
            limit: How many at most. None means all.
        """
        asked = parameters(
            event_type=event_type,
            principal=principal,
            operation=operation,
            target=target,
            outcome=outcome,
            since=since,
            until=until,
        )
        return self._each(AuditEntry, "entries", LIST_AUDIT, limit, asked)

    async def audit_page(
        self,
        *,
        after: str | None = None,
        event_type: str | None = None,
        principal: str | None = None,
        operation: str | None = None,
        target: str | None = None,
        outcome: str | None = None,
        limit: int | None = None,
    ) -> AuditPage:
        """Return one page of the audit: the newest entries, or those that came `after` an earlier page, the oldest
        first.

        Args:
            after: `after` of an earlier page. None means the newest entries.
            event_type: The kind of act. It may end in `.*`.
            principal: Who did it.
            operation: The name of the operation.
            target: The thing that it was done to.
            outcome: `success` or `failure`.
            limit: How many at most. None means the server's default.
        """
        asked = parameters(
            after=after,
            event_type=event_type,
            principal=principal,
            operation=operation,
            target=target,
            outcome=outcome,
            limit=limit,
        )
        return await self._asked(AuditPage, Request(LIST_AUDIT, asked))

    # Maintenance

    async def maintenance(self) -> Maintenance:
        """Return whether the system is under maintenance."""
        return await self._asked(Maintenance, Request(GET_MAINTENANCE))

    async def begin_maintenance(
        self, *, reason: str | None = None, duration: Duration | None = None, estimated: Duration | None = None
    ) -> Maintenance:
        """Begin maintenance.

        Args:
            reason: A text for those who are refused.
            duration: After how long it ends by itself, in seconds or as `"1h"`. None means that it goes on until
                `end_maintenance`.
            estimated: How long it will probably take, for those who are refused.
        """
        asked = SetMaintenance(enabled=True, reason=reason, duration=_seconds(duration), estimated_duration=_seconds(estimated))
        return await self._asked(Maintenance, Request(SET_MAINTENANCE, body=sent(asked)))

    async def end_maintenance(self) -> Maintenance:
        """End maintenance."""
        return await self._asked(Maintenance, Request(SET_MAINTENANCE, body={"enabled": False}))

    # Records that can't be read

    def unreadable(self, *, kind: str | None = None, limit: int | None = None) -> AsyncIterator[UnreadableRecord]:
        """List stored records that can't be read, by kind and key.

        Args:
            kind: The kind of record. None means all kinds.
            limit: How many at most. None means all.
        """
        return self._each(UnreadableRecord, "items", LIST_UNREADABLE, limit, parameters(kind=kind))

    async def remove_unreadable(self, kind: str, key: str) -> None:
        """Delete a stored record that can't be read.

        Args:
            kind: The kind of record.
            key: Its key.

        Raises:
            NotFoundError: There is no such record.
            ConflictError: The record can be read.
        """
        await self._transport.send(Request(REMOVE_UNREADABLE, {"kind": kind, "record": key}))


def _seconds(duration: Duration | None) -> float | None:
    return None if duration is None else milliseconds(duration) / 1_000
