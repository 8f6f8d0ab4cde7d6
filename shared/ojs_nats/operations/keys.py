"""Keys: who may do what (docs/security.md)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from ojs_nats._durations import Duration, milliseconds, moment
from ojs_nats._operations import Operation, Request
from ojs_nats.models.keys import Key, KeyLimits, MadeKey
from ojs_nats.operations.subject import Subject, body, parameters

Role = Literal["producer", "worker", "viewer", "operator", "admin", "custom"]

_LIST: Final = Operation("listKeys", "GET", "/admin/keys")
_CREATE: Final = Operation("createKey", "POST", "/admin/keys")
_GET: Final = Operation("getKey", "GET", "/admin/keys/{key_id}")
_ROTATE: Final = Operation("rotateKey", "POST", "/admin/keys/{key_id}/rotate")
_LIMIT: Final = Operation("limitKey", "PUT", "/admin/keys/{key_id}/limits")
_REVOKE: Final = Operation("revokeKey", "DELETE", "/admin/keys/{key_id}")


class Keys(Subject):
    """`client.keys`. What is about one key raises NotFoundError; who may not see keys gets PermissionDeniedError."""

    async def list(self, *, every: bool = False) -> Sequence[Key]:
        """Those that have not ended, or `every` one, by the time they were made."""
        return await self._asked(list[Key], Request(_LIST, parameters(all=every or None)), "keys")

    async def create(
        self,
        name: str,
        role: Role,
        *,
        permissions: Sequence[str] = (),
        queues: Sequence[str] = (),
        types: Sequence[str] = (),
        limits: KeyLimits | None = None,
        expires_at: datetime | None = None,
    ) -> MadeKey:
        """Make one. `permissions` are for the role `custom`; `queues` and `types` narrow it, and may have `*` in them."""
        asked = body(
            name=name,
            role=role,
            permissions=[*permissions] or None,
            queues=[*queues] or None,
            types=[*types] or None,
            limits=None if limits is None else body(**msgspec.structs.asdict(limits)),
            expires_at=None if expires_at is None else moment(expires_at, "expires_at"),
        )
        return await self._asked(MadeKey, Request(_CREATE, body=asked))

    async def get(self, key_id: str) -> Key:
        return await self._asked(Key, Request(_GET, {"key_id": key_id}), "key")

    async def rotate(self, key_id: str, *, overlap: Duration | None = None) -> MadeKey:
        """Make a new one for the same; the old one goes on for `overlap`, a day if it isn't named. Raises ConflictError."""
        asked = body(overlap=None if overlap is None else milliseconds(overlap) / 1_000)
        return await self._asked(MadeKey, Request(_ROTATE, {"key_id": key_id}, asked))

    async def limit(self, key_id: str, limits: KeyLimits) -> Key:
        """Change all of its limits; what is under way goes on. Raises ConflictError for one that has ended."""
        asked = body(**msgspec.structs.asdict(limits))
        return await self._asked(Key, Request(_LIMIT, {"key_id": key_id}, asked), "key")

    async def revoke(self, key_id: str) -> Key:
        """It lets nobody in from now on."""
        return await self._asked(Key, Request(_REVOKE, {"key_id": key_id}), "key")
