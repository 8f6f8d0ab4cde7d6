"""Limits of keys: what they are, who holds them, and an operator's word over them (ojs-rate-limiting §10)."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from typing import Any

from ojs_gateway.call import Answer, Call
from ojs_gateway.context import Context
from ojs_nats.errors import not_found
from ojs_nats.limits import LimitRecord, parse_key
from ojs_nats.store.limits import key_of_scope, key_scope
from ojs_nats.wire.limiting import limit_view, parse_override
from ojs_nats.wire.output import encode
from ojs_nats.wire.pages import DEFAULT_PAGE, pagination, parse_page

__all__ = ["RateLimits"]


class RateLimits:
    """Handlers under /rate-limits."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._limits = context.limits

    async def list(self, call: Call) -> Answer:
        """GET /rate-limits: every key that was used within a month, in order; only those of the page are read."""
        asked = parse_page(call.queries, numbered=True, default=DEFAULT_PAGE)
        scopes = await self._store.limits.known()
        first = asked.offset if asked.cursor is None else bisect_right(scopes, asked.cursor)
        page = scopes[first : first + asked.limit]
        found = await asyncio.gather(*(self._view(scope, call) for scope in page))
        views = [view for view in found if view is not None]
        more = page[-1] if first + asked.limit < len(scopes) else None
        body = {"items": views, "rate_limits": views, "pagination": pagination(asked, len(scopes), more)}
        return Answer(200, encode(body))

    async def read(self, call: Call) -> Answer:
        """GET /rate-limits/{key}: 404 if no job ever named the key."""
        return await self._answer(_scope(call), call)

    async def override(self, call: Call) -> Answer:
        """PUT /rate-limits/{key}, …/override: limits in place of the jobs' own, until `expires_at` if there is one."""
        wanted = parse_override(await call.body(), self._store.clock.now(), self._limits)
        scope = _scope(call)
        await self._store.limits.override(scope, wanted)
        return await self._answer(scope, call)

    async def restore(self, call: Call) -> Answer:
        """DELETE /rate-limits/{key}/override: 404 if no job ever named the key."""
        scope = _scope(call)
        sequence, _ = await self._store.limits.read(scope)
        if sequence:
            await self._store.limits.override(scope, None)
        return await self._answer(scope, call)

    async def _answer(self, scope: str, call: Call) -> Answer:
        view = await self._view(scope, call)
        if view is None:
            raise not_found("rate_limit", key_of_scope(scope))
        return Answer(200, encode(view))

    async def _view(self, scope: str, call: Call) -> dict[str, Any] | None:
        """None if there is no such limit, or none any more."""
        record: LimitRecord | None
        record, waiting = await asyncio.gather(self._store.limits.inspect(scope), self._store.held.count(scope))
        if record is None:
            return None
        return limit_view(key_of_scope(scope), record, waiting, self._store.clock.now(), as_number=call.dialect.plain)


def _scope(call: Call) -> str:
    """Raises invalid_request for what can't be a key."""
    return key_scope(parse_key(call.parameters[0], "key"))
