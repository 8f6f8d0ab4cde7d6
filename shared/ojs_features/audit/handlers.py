"""The audit (docs/audit.md)."""

from __future__ import annotations

from ojs_engine.api.call import Call, Response
from ojs_features.audit.reading import AuditReader
from ojs_features.audit.requests import audit_page, parse_audit
from ojs_features.audit.trail import AuditTimings
from ojs_features.context import HandlerContext


class AuditHandlers:
    """Handlers of /admin/audit."""

    def __init__(self, context: HandlerContext) -> None:
        store = context.store
        self._reader = AuditReader(store.bulk, store.config, store.bucket.timings(AuditTimings))

    async def list(self, call: Call) -> Response:
        """GET /admin/audit: the newest first; with `after` what came later, the oldest first."""
        asked = parse_audit(call.queries)
        limit = asked.page.limit
        if asked.after is not None:
            found = await self._reader.newer(asked.after, asked.wanted, limit)
        else:
            found = await self._reader.older(asked.before, asked.wanted, limit)
        return Response(200, audit_page(found, asked))
