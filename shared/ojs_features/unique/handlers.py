"""Unique jobs as operators list them."""

from __future__ import annotations

from ojs_api.unique import UniqueJobPage
from ojs_engine.api.call import Call, Response
from ojs_engine.wire.pages import pagination, parse_page
from ojs_features.context import HandlerContext
from ojs_features.unique.index import QUESTION, UniqueAsk, UniquePage
from ojs_index.lists.progress import progress


class UniqueHandlers:
    """Handlers of unique jobs."""

    def __init__(self, context: HandlerContext) -> None:
        self._queries = context.queries

    async def list(self, call: Call) -> Response:
        """GET /unique-jobs: the fingerprints that jobs hold which have not ended, in order."""
        asked = parse_page(call.queries, numbered=True)
        ask = UniqueAsk(limit=asked.limit, cursor=asked.cursor, offset=asked.offset)
        page = await self._queries.ask(QUESTION, ask, UniquePage)
        place = pagination(asked, page.total, page.next_cursor)
        return Response(200, UniqueJobPage(items=page.locks, pagination=place, **progress(page)))
