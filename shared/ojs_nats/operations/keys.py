"""Operations on API keys, which say who may do what (docs/security.md)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from ojs_api import words
from ojs_nats._durations import Duration, milliseconds, moment
from ojs_nats._operations import Operation, Request
from ojs_nats.models.keys import Key, KeyLimits, MadeKey
from ojs_nats.operations._subject import Subject, body, parameters

__all__ = ["Keys", "Role"]

Role = words.Role

_LIST: Final = Operation("listKeys", "GET", "/admin/keys")
_CREATE: Final = Operation("createKey", "POST", "/admin/keys")
_GET: Final = Operation("getKey", "GET", "/admin/keys/{key_id}")
_ROTATE: Final = Operation("rotateKey", "POST", "/admin/keys/{key_id}/rotate")
_LIMIT: Final = Operation("limitKey", "PUT", "/admin/keys/{key_id}/limits")
_REVOKE: Final = Operation("revokeKey", "DELETE", "/admin/keys/{key_id}")


class Keys(Subject):
    """The operations on API keys, as `client.keys`. They raise PermissionDeniedError if the client's own key may not
    manage keys, and those on one key raise NotFoundError if it doesn't exist.
    """

    async def list(self, *, every: bool = False) -> Sequence[Key]:
        """Return the keys, in the order that they were made in.

        Args:
            every: Whether keys that have ended are included.
        """
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
        """Make a key. Only this answer has its token.

        Args:
            name: A name for people.
            role: The role, such as `"producer"`.
            permissions: The permissions, for the role `"custom"`.
            queues: The queues that the key is for. A name may have `*` in it. Empty means all queues.
            types: The job types that the key is for. A type may have `*` in it. Empty means all types.
            limits: What the key may ask of each gateway. None means the gateway's settings.
            expires_at: When the key ends, with a time zone. None means that it doesn't end by itself.
        """
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
        """Return a key.

        Raises:
            NotFoundError: There is no such key.
        """
        return await self._asked(Key, Request(_GET, {"key_id": key_id}), "key")

    async def rotate(self, key_id: str, *, overlap: Duration | None = None) -> MadeKey:
        """Make a new key with the same permissions. Only this answer has its token.

        Args:
            key_id: The old key's id.
            overlap: How long the old key goes on, in seconds or as `"1h"`. None means a day.

        Raises:
            NotFoundError: There is no such key.
            ConflictError: The old key has ended, or was rotated before.
        """
        asked = body(overlap=None if overlap is None else milliseconds(overlap) / 1_000)
        return await self._asked(MadeKey, Request(_ROTATE, {"key_id": key_id}, asked))

    async def limit(self, key_id: str, limits: KeyLimits) -> Key:
        """Replace all limits of a key. Requests that are under way go on.

        Args:
            key_id: The key's id.
            limits: The new limits.

        Raises:
            NotFoundError: There is no such key.
            ConflictError: The key has ended.
        """
        asked = body(**msgspec.structs.asdict(limits))
        return await self._asked(Key, Request(_LIMIT, {"key_id": key_id}, asked), "key")

    async def revoke(self, key_id: str) -> Key:
        """Revoke a key. Requests with it are refused from now on.

        Raises:
            NotFoundError: There is no such key.
        """
        return await self._asked(Key, Request(_REVOKE, {"key_id": key_id}), "key")
