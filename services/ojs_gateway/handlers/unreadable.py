"""Records that can't be read: which there are, and removing them (docs/admin.md)."""

from __future__ import annotations

from ojs_engine.api.call import Call, Response
from ojs_engine.read.messages import UnreadableAsk
from ojs_engine.wire.pages import DEFAULT_PAGE, parse_page
from ojs_engine.wire.system.unreadable import RemovedRecord, unreadable_page
from ojs_gateway.context import Context


class UnreadableHandlers:
    """Handlers under /admin/unreadable."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._queries = context.queries
        self._of_features = [reader for feature in context.features for reader in feature.records]
        self._removed = {kind: after for feature in context.features for kind, after in feature.removed.items()}

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
        await self._store.unreadable.remove(kind, key, self._of_features)
        if (after := self._removed.get(kind)) is not None:
            await after(self._store, key)
        return Response(200, RemovedRecord(True, kind, key))
