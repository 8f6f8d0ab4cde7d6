"""Keys as the server tells of them."""

from __future__ import annotations

from datetime import datetime

import msgspec


class KeyLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a key may ask of each gateway: pushes a second, streams open, requests waiting. 0 is any number, None what the
    gateway's settings say.
    """

    pushes_per_second: int | None = None
    streams: int | None = None
    waiting: int | None = None


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key without its secret. `used_at` is right to a quarter of an hour. One without `queues` or `types` isn't narrowed.

    Once it is revoked, `webhooks` are the subscriptions that were paused by that, and `crons` its entries, which go on.
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
    """A new key, and its `token`, which the server never tells again."""

    key: Key
    token: str

    def __repr__(self) -> str:
        return f"MadeKey({self.key.id})"
