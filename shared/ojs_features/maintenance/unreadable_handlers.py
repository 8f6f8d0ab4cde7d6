"""Handlers of records that can't be read (docs/admin.md)."""

from __future__ import annotations

from ojs_api.maintenance import RemovedRecord
from ojs_engine.api.call import Call, Response
from ojs_engine.wire.pages import DEFAULT_PAGE, parse_page
from ojs_features.context import HandlerContext
from ojs_features.maintenance.answers import unreadable_page
from ojs_features.maintenance.unreadable import UnreadableRecords
from ojs_index.asking.messages import UnreadableAsk


class UnreadableHandlers:
    """Handlers under /admin/unreadable."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._queries = context.queries
        self._known = context.known

    async def list(self, call: Call) -> Response:
        """GET /admin/unreadable, of one `kind` if it is named."""
        asked = parse_page(call.queries, numbered=True, default=DEFAULT_PAGE)
        kind = call.query("kind") or None
        page = await self._queries.unreadable(
            UnreadableAsk(kind=kind, limit=asked.limit, cursor=asked.cursor, offset=asked.offset)
        )
        return Response(200, unreadable_page(page, asked))

    async def remove(self, call: Call) -> Response:
        """DELETE /admin/unreadable/{kind}/{key}: 409 if it can be read."""
        kind, key = call.parameters
        await self._store.of(UnreadableRecords).remove(kind, key, self._known.records)
        if (after := self._known.removed.get(kind)) is not None:
            await after(self._store, key)
        return Response(200, RemovedRecord(removed=True, kind=kind, key=key))
