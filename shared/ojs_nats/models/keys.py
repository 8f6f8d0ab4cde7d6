"""API keys and their limits."""

from __future__ import annotations

from datetime import datetime

import msgspec

__all__ = ["Key", "KeyLimits", "MadeKey"]


class KeyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a key at each gateway. 0 means any number, None what the gateway's settings say.

    Attributes:
        pushes_per_second: Pushes a second.
        streams: Streams of events that are open at once.
        waiting: Requests that wait for a result at once.
    """

    pushes_per_second: int | None = None
    streams: int | None = None
    waiting: int | None = None


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """An API key, without its secret.

    Attributes:
        queues: The queues that it is for. Empty means all.
        types: The job types that it is for. Empty means all.
        used_at: When it was used last, to a quarter of an hour.
        replaced_by: The id of the key that took its place.
        webhooks: The subscriptions that were paused when it was revoked.
        crons: The cron entries that it registered. They go on after it was revoked.
    """

    id: str
    name: str
    role: str
    permissions: list[str]
    state: str
    created_at: datetime
    queues: list[str] = []
    types: list[str] = []
    limits: KeyLimits = KeyLimits()
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None
    replaced_by: str | None = None
    webhooks: list[str] = []
    crons: list[str] = []


class MadeKey(msgspec.Struct, frozen=True):
    """A new API key.

    Attributes:
        token: The secret. The server doesn't show it again.
    """

    key: Key
    token: str

    def __repr__(self) -> str:
        return f"MadeKey({self.key.id})"
