"""Limits of keys: what they are, who holds them, and an operator's word over them (ojs-rate-limiting §10)."""

from __future__ import annotations

import asyncio
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
        page = scopes[asked.offset : asked.offset + asked.limit]
        views = await asyncio.gather(*(self._view(scope, call) for scope in page))
        more = str(asked.offset + asked.limit) if asked.offset + asked.limit < len(scopes) else None
        body = {"items": views, "rate_limits": views, "pagination": pagination(asked, len(scopes), more)}
        return Answer(200, encode(body))

    async def read(self, call: Call) -> Answer:
        """GET /rate-limits/{key}: 404 if no job ever named the key."""
        return Answer(200, encode(await self._view(_scope(call), call)))

    async def override(self, call: Call) -> Answer:
        """PUT /rate-limits/{key}, …/override: limits in place of the jobs' own, until `expires_at` if there is one."""
        wanted = parse_override(await call.body(), self._limits)
        scope = _scope(call)
        await self._store.limits.override(scope, wanted)
        return Answer(200, encode(await self._view(scope, call)))

    async def restore(self, call: Call) -> Answer:
        """DELETE /rate-limits/{key}/override."""
        scope = _scope(call)
        await self._store.limits.override(scope, None)
        return Answer(200, encode(await self._view(scope, call)))

    async def _view(self, scope: str, call: Call) -> dict[str, Any]:
        record: LimitRecord | None
        record, waiting = await asyncio.gather(self._store.limits.inspect(scope), self._store.held.count(scope))
        key = key_of_scope(scope)
        if record is None:
            raise not_found("rate_limit", key)
        return limit_view(key, record, waiting, self._store.clock.now(), as_number=call.dialect.plain)


def _scope(call: Call) -> str:
    """Raises invalid_request for what can't be a key."""
    return key_scope(parse_key(call.parameters[0], "key"))
