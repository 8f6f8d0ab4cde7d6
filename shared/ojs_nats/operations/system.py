"""The server: what it is, how it is, what it is set to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import Final

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
from ojs_nats.operations.queues import Period
from ojs_nats.operations.subject import Subject, body, parameters

_MANIFEST: Final = Operation("getManifest", "GET", "/ojs/manifest")
_HEALTH: Final = Operation("getHealth", "GET", "/health")
_STATS: Final = Operation("adminStats", "GET", "/admin/stats")
_HISTORY: Final = Operation("getStatsHistory", "GET", "/admin/stats/history")
_FINDINGS: Final = Operation("listFindings", "GET", "/admin/findings")
_SERVICES: Final = Operation("listServices", "GET", "/admin/services")
_CONFIG: Final = Operation("getConfig", "GET", "/admin/system/config")
_GET_MAINTENANCE: Final = Operation("getMaintenance", "GET", "/admin/system/maintenance")
_SET_MAINTENANCE: Final = Operation("setMaintenance", "POST", "/admin/system/maintenance")
_MIDDLEWARE: Final = Operation("listMiddleware", "GET", "/middleware")
_UNREADABLE: Final = Operation("listUnreadableRecords", "GET", "/admin/unreadable")
_REMOVE_UNREADABLE: Final = Operation("removeUnreadableRecord", "DELETE", "/admin/unreadable/{kind}/{record}")
_AUDIT: Final = Operation("listAuditEntries", "GET", "/admin/audit")
_STATUS: Final = Operation("debugStatus", "GET", "/debug/status")
_FAILURES: Final = Operation("debugListFailures", "GET", "/debug/failures")


class ServerSystem(Subject):
    """`client.system`."""

    async def manifest(self) -> Manifest:
        """What the server supports."""
        return await self._asked(Manifest, Request(_MANIFEST))

    async def health(self) -> Health:
        """Whether it can work: `status` is `ok` or `degraded`, and that is an answer, not an error."""
        return await self._asked(Health, Request(_HEALTH, answered_as_well=frozenset({503})))

    async def stats(self) -> SystemStats:
        """Its totals."""
        return await self._asked(SystemStats, Request(_STATS))

    async def findings(self) -> Findings:
        """What is wrong with it, the worst first."""
        return await self._asked(Findings, Request(_FINDINGS))

    async def services(self) -> Sequence[Service]:
        """The processes that were heard of lately, by role."""
        return await self._asked(list[Service], Request(_SERVICES), "services")

    async def history(
        self,
        *,
        period: Period = "1h",
        since: datetime | None = None,
        until: datetime | None = None,
        queue: str | None = None,
    ) -> Statistics:
        """What happened in each `period` of that time."""
        asked = parameters(period=period, since=since, until=until, queue=queue)
        return await self._asked(Statistics, Request(_HISTORY, asked, queue=queue))

    async def config(self) -> SystemConfig:
        """What the gateway that answers is set to."""
        return await self._asked(SystemConfig, Request(_CONFIG))

    async def status(self) -> DebugStatus:
        """How the gateway that answers is, and what it sees of other services."""
        return await self._asked(DebugStatus, Request(_STATUS))

    async def middleware(self) -> Sequence[MiddlewareEntry]:
        """The chain around pushes, the outermost first."""
        return await self._asked(list[MiddlewareEntry], Request(_MIDDLEWARE), "enqueue")

    def failures(self, *, queue: str | None = None, limit: int | None = None) -> AsyncIterator[Failure]:
        """Failed attempts of all jobs, the latest first, as long as events are kept."""
        return self._each(Failure, "failures", _FAILURES, limit, parameters(queue=queue), queue)

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
        """Who did what, the newest first; `event_type` may end in `.*`."""
        asked = parameters(
            event_type=event_type,
            principal=principal,
            operation=operation,
            target=target,
            outcome=outcome,
            since=since,
            until=until,
        )
        return self._each(AuditEntry, "entries", _AUDIT, limit, asked)

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
        """The newest entries, or those `after` an earlier page, the oldest first: for who follows the audit."""
        asked = parameters(
            after=after,
            event_type=event_type,
            principal=principal,
            operation=operation,
            target=target,
            outcome=outcome,
            limit=limit,
        )
        return await self._asked(AuditPage, Request(_AUDIT, asked))

    # Maintenance

    async def maintenance(self) -> Maintenance:
        """Whether there is any."""
        return await self._asked(Maintenance, Request(_GET_MAINTENANCE))

    async def begin_maintenance(
        self, *, reason: str | None = None, duration: Duration | None = None, estimated: Duration | None = None
    ) -> Maintenance:
        """It ends by itself after `duration`; `estimated` is what is told of how long it takes."""
        asked = body(enabled=True, reason=reason, duration=_seconds(duration), estimated_duration=_seconds(estimated))
        return await self._asked(Maintenance, Request(_SET_MAINTENANCE, body=asked))

    async def end_maintenance(self) -> Maintenance:
        return await self._asked(Maintenance, Request(_SET_MAINTENANCE, body={"enabled": False}))

    # Records that can't be read

    def unreadable(self, *, kind: str | None = None, limit: int | None = None) -> AsyncIterator[UnreadableRecord]:
        """By kind and key."""
        return self._each(UnreadableRecord, "items", _UNREADABLE, limit, parameters(kind=kind))

    async def remove_unreadable(self, kind: str, key: str) -> None:
        """Raises NotFoundError, ConflictError for one that can be read."""
        await self._transport.send(Request(_REMOVE_UNREADABLE, {"kind": kind, "record": key}))


def _seconds(duration: Duration | None) -> float | None:
    return None if duration is None else milliseconds(duration) / 1_000
