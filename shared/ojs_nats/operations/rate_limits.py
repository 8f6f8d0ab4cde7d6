"""Operations on limits that jobs share by a key, and on overrides of them (docs/queues.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

from ojs_api.limits import GET, LIST, OVERRIDE, RESTORE, Limit
from ojs_nats._durations import moment
from ojs_nats._operations import Request
from ojs_nats._options import policy
from ojs_nats.operations._subject import Subject, body
from ojs_nats.options import Rate

__all__ = ["RateLimits"]


class RateLimits(Subject):
    """The operations on limits, as `client.rate_limits`. Those on one key raise NotFoundError if it doesn't exist."""

    def list(self, *, limit: int | None = None) -> AsyncIterator[Limit]:
        """List limits by key.

        Args:
            limit: How many at most. None means all.
        """
        return self._each(Limit, "items", LIST, limit, {})

    async def get(self, key: str) -> Limit:
        """Return a limit.

        Raises:
            NotFoundError: No job has a limit of this key.
        """
        return await self._asked(Limit, Request(GET, {"key": key}))

    async def override(
        self,
        key: str,
        *,
        concurrency: int | None = None,
        rate: Rate | None = None,
        throttle: Rate | None = None,
        expires_at: datetime | None = None,
    ) -> Limit:
        """Override a limit. At least one of the three is needed.

        Args:
            key: The limit's key.
            concurrency: How many jobs may run at once.
            rate: How many may start in a period.
            throttle: The same, with the starts evenly spaced.
            expires_at: When the override ends, with a time zone. None means that it holds until `restore`.

        Raises:
            NotFoundError: No job has a limit of this key.
        """
        asked = body(
            concurrency=concurrency,
            rate=rate and policy(rate),
            throttle=throttle and policy(throttle),
            expires_at=expires_at and moment(expires_at, "expires_at"),
        )
        return await self._asked(Limit, Request(OVERRIDE, {"key": key}, asked))

    async def restore(self, key: str) -> Limit:
        """End an override, so that the limit of the jobs holds again.

        Raises:
            NotFoundError: No job has a limit of this key.
        """
        return await self._asked(Limit, Request(RESTORE, {"key": key}))
