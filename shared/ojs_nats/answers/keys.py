"""Keys as the server tells of them."""

from __future__ import annotations

from datetime import datetime

import msgspec


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """A key without its secret. `used_at` is right to a quarter of an hour; without `queues` or `types` it isn't narrowed."""

    id: str
    name: str
    role: str
    permissions: list[str]
    state: str
    created_at: datetime
    queues: list[str] = []
    types: list[str] = []
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    used_at: datetime | None = None
    replaced_by: str | None = None


class MadeKey(msgspec.Struct, frozen=True):
    """A new key, and its `token`, which the server never tells again."""

    key: Key
    token: str

    def __repr__(self) -> str:
        return f"MadeKey({self.key.id})"
