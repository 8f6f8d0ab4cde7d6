"""Limits of keys that jobs name, and operators' words over them (docs/queues.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Final

from ojs_nats._durations import moment
from ojs_nats._operations import Operation, Request
from ojs_nats.models.rate_limits import Limit
from ojs_nats.operations.subject import Subject, body
from ojs_nats.options import Rate

_LIST: Final = Operation("listRateLimits", "GET", "/rate-limits")
_GET: Final = Operation("getRateLimit", "GET", "/rate-limits/{key}")
_OVERRIDE: Final = Operation("overrideRateLimit", "PUT", "/rate-limits/{key}/override")
_RESTORE: Final = Operation("restoreRateLimit", "DELETE", "/rate-limits/{key}/override")


class RateLimits(Subject):
    """`client.rate_limits`. What is about one key raises NotFoundError."""

    def list(self, *, limit: int | None = None) -> AsyncIterator[Limit]:
        return self._each(Limit, "items", _LIST, limit, {})

    async def get(self, key: str) -> Limit:
        return await self._asked(Limit, Request(_GET, {"key": key}))

    async def override(
        self,
        key: str,
        *,
        concurrency: int | None = None,
        rate: Rate | None = None,
        throttle: Rate | None = None,
        expires_at: datetime | None = None,
    ) -> Limit:
        """What holds in place of what its jobs say, until `expires_at` or `restore`. At least one limit is needed."""
        asked = body(
            concurrency=concurrency,
            rate=rate and rate.wire(),
            throttle=throttle and throttle.wire(),
            expires_at=expires_at and moment(expires_at, "expires_at"),
        )
        return await self._asked(Limit, Request(_OVERRIDE, {"key": key}, asked))

    async def restore(self, key: str) -> Limit:
        """What its jobs say holds again."""
        return await self._asked(Limit, Request(_RESTORE, {"key": key}))
