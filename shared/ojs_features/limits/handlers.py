"""Limits of keys: what they are, who holds them, and an operator's word over them (ojs-rate-limiting §10)."""

from __future__ import annotations

import asyncio
from bisect import bisect_right

from ojs_api.limits import Limit
from ojs_engine.api.call import Call, Response
from ojs_engine.api.queries import searched
from ojs_engine.base.errors import OjsError, not_found
from ojs_engine.domain.rate_limits.policy import parse_key
from ojs_engine.wire.pages import DEFAULT_PAGE, parse_page
from ojs_features.context import HandlerContext
from ojs_features.limits.answers import limit_answer, limit_page, parse_override
from ojs_features.limits.limits import Limits
from ojs_features.limits.permits import key_of_scope, key_scope
from ojs_features.limits.rules import LimitRecord


class RateLimitHandlers:
    """Handlers under /rate-limits."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        limits = context.store.of(Limits)
        self._permits, self._blocked = limits.permits, limits.blocked
        self._limits = context.limits

    async def list(self, call: Call) -> Response:
        """GET /rate-limits?search: every key that was used within a month, in order; only those of the page are read."""
        asked = parse_page(call.queries, numbered=True, default=DEFAULT_PAGE)
        scopes = await self._permits.known()
        if (part := searched(call, self._limits)) is not None:
            scopes = [scope for scope in scopes if part.lower() in key_of_scope(scope).lower()]
        first = asked.offset if asked.cursor is None else bisect_right(scopes, asked.cursor)
        page = scopes[first : first + asked.limit]
        found = await asyncio.gather(*(self._readable(scope) for scope in page))
        limits = [limit for limit in found if limit is not None]
        more = page[-1] if first + asked.limit < len(scopes) else None
        return Response(200, limit_page(limits, asked, len(scopes), more))

    async def read(self, call: Call) -> Response:
        """GET /rate-limits/{key}: 404 if no job ever named the key."""
        return await self._answer(_scope(call))

    async def override(self, call: Call) -> Response:
        """PUT /rate-limits/{key}, …/override: limits in place of the jobs' own, until `expires_at` if there is one."""
        wanted = await call.parsed(
            await call.body(self._limits.max_control_bytes), parse_override, self._store.clock.now(), self._limits
        )
        scope = _scope(call)
        await self._permits.override(scope, wanted)
        return await self._answer(scope)

    async def restore(self, call: Call) -> Response:
        """DELETE /rate-limits/{key}/override: 404 if no job ever named the key."""
        scope = _scope(call)
        sequence, _ = await self._permits.read(scope)
        if sequence:
            await self._permits.override(scope, None)
        return await self._answer(scope)

    async def _answer(self, scope: str) -> Response:
        limit = await self._limit(scope)
        if limit is None:
            raise not_found("rate_limit", key_of_scope(scope))
        return Response(200, limit)

    async def _readable(self, scope: str) -> Limit | None:
        """Return as `_limit`; None for a record that can't be read."""
        try:
            return await self._limit(scope)
        except OjsError as error:
            if error.code != "unreadable_record":
                raise
            return None

    async def _limit(self, scope: str) -> Limit | None:
        """None if there is no such limit, or none any more."""
        record: LimitRecord | None
        record, waiting = await asyncio.gather(self._permits.inspect(scope), self._blocked.count(scope))
        if record is None:
            return None
        return limit_answer(key_of_scope(scope), record, waiting, self._store.clock.now())


def _scope(call: Call) -> str:
    """Raises invalid_request for what can't be a key."""
    return key_scope(parse_key(call.parameters[0], "key"))
