"""How much one key may ask of one gateway: pushes a second, streams, and requests that wait (docs/adr/072)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Final

from msgspec import Meta, Struct

from ojs_api import keys
from ojs_engine.access.admission import Places
from ojs_engine.base.errors import OjsError
from ojs_engine.base.token_bucket import TokenBucket

STREAMS: Final = 200
"""Streams and WebSockets that a key may have open at a gateway, unless it has a limit of its own."""
WAITING: Final = 2_000
"""Requests that may wait at a gateway for a key, likewise."""
_PLACE_AGAIN_S: Final = 5
"""When somebody may ask again for whom there was no place."""

Limit = Annotated[int, Meta(ge=0, le=keys.MOST)]
_HELD: Final[dict[Places, str]] = {
    "streams": "streams and WebSockets open",
    "waiting": "requests waiting for jobs or results",
}
_OPTIONS: Final = {"pushes_per_second": "--pushes-per-second", "streams": "--streams", "waiting": "--waiting"}


class KeyLimits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Limits of one key at each gateway. 0 is any number, None what the gateway's settings say."""

    pushes_per_second: Limit | None = None
    streams: Limit | None = None
    waiting: Limit | None = None

    def filled(self, defaults: KeyLimits) -> KeyLimits:
        """Return the same limits with `defaults` for those that it leaves open."""
        return KeyLimits(
            **{name: getattr(defaults if getattr(self, name) is None else self, name) for name in self.__struct_fields__}
        )


BY_SETTINGS: Final = KeyLimits()
UNLIMITED: Final = KeyLimits(pushes_per_second=0, streams=0, waiting=0)


class Allowance:
    """The use of one key's limits at this gateway, over HTTP and NATS together. `clock` counts seconds."""

    def __init__(self, key_id: str, name: str, limits: KeyLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._key_id = key_id
        self._name = name
        self._pushes = TokenBucket(clock)
        self._taken: dict[Places, int] = {"streams": 0, "waiting": 0}
        self.limits = limits
        """The limits that count from now on. What is open stays open."""

    def count_pushes(self, number: int) -> None:
        """Count jobs of one request. Raises rate_limited if those before it were too many."""
        rate = self.limits.pushes_per_second
        if rate and (wait := self._pushes.take(rate, number)):
            raise self._refused("pushes_per_second", rate, f"has pushed its {rate:,} jobs a second", wait)

    def pushes_left(self) -> tuple[int, int, int] | None:
        """Return the limit of pushes, how many may be made now, and in how many seconds one may; None for no limit."""
        rate = self.limits.pushes_per_second
        return (rate, *self._pushes.left(rate)) if rate else None

    @contextmanager
    def place(self, kind: Places) -> Iterator[None]:
        """Hold one of the key's places. Raises rate_limited if all are taken."""
        most = getattr(self.limits, kind)
        if most and self._taken[kind] >= most:
            raise self._refused(kind, most, f"has its {most:,} {_HELD[kind]}", _PLACE_AGAIN_S)
        self._taken[kind] += 1
        try:
            yield
        finally:
            self._taken[kind] -= 1

    def _refused(self, limit: str, most: int, has: str, retry_after: int) -> OjsError:
        return OjsError(
            "rate_limited",
            f"key {self._name!r} {has} at this gateway, which is its limit `{limit}`",
            hint="Ask again after Retry-After, ask for less, or have the limit raised: "
            f"ojs-nats keys limit {self._key_id} {_OPTIONS[limit]} N.",
            details={"limit": limit, "allowed": most, "key": self._key_id},
            retry_after=retry_after,
        )
