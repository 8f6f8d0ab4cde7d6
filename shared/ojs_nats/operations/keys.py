"""Operations on API keys, which say who may do what (docs/security.md)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import cast

from msgspec.structs import asdict

from ojs_api import words
from ojs_api.keys import (
    CREATE,
    GET,
    LIMIT,
    LIST,
    REVOKE,
    ROTATE,
    CreateKey,
    Key,
    KeyLimits,
    KeyLimitsBody,
    MadeKey,
    RotateKey,
)
from ojs_api.operations import Permission
from ojs_nats._durations import Duration, milliseconds, moment
from ojs_nats._operations import Request
from ojs_nats.operations._subject import Subject, parameters, sent

__all__ = ["Keys", "Role"]

Role = words.Role


class Keys(Subject):
    """The operations on API keys, as `client.keys`. They raise PermissionDeniedError if the client's own key may not
    manage keys, and those on one key raise NotFoundError if it doesn't exist.
    """

    async def list(self, *, every: bool = False) -> Sequence[Key]:
        """Return the keys, in the order that they were made in.

        Args:
            every: Whether keys that have ended are included.
        """
        return await self._asked(list[Key], Request(LIST, parameters(all=every or None)), "keys")

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
        asked = CreateKey(
            name=name,
            role=role,
            permissions=cast("list[Permission]", [*permissions]) or None,
            queues=[*queues] or None,
            types=[*types] or None,
            limits=None if limits is None else KeyLimitsBody(**asdict(limits)),
            expires_at=None if expires_at is None else moment(expires_at, "expires_at"),
        )
        return await self._asked(MadeKey, Request(CREATE, body=sent(asked)))

    async def get(self, key_id: str) -> Key:
        """Return a key.

        Raises:
            NotFoundError: There is no such key.
        """
        return await self._asked(Key, Request(GET, {"key_id": key_id}), "key")

    async def rotate(self, key_id: str, *, overlap: Duration | None = None) -> MadeKey:
        """Make a new key with the same permissions. Only this answer has its token.

        Args:
            key_id: The old key's id.
            overlap: How long the old key goes on, in seconds or as `"1h"`. None means a day.

        Raises:
            NotFoundError: There is no such key.
            ConflictError: The old key has ended, or was rotated before.
        """
        asked = sent(RotateKey(overlap=None if overlap is None else milliseconds(overlap) / 1_000))
        return await self._asked(MadeKey, Request(ROTATE, {"key_id": key_id}, asked))

    async def limit(self, key_id: str, limits: KeyLimits) -> Key:
        """Replace all limits of a key. Requests that are under way go on.

        Args:
            key_id: The key's id.
            limits: The new limits.

        Raises:
            NotFoundError: There is no such key.
            ConflictError: The key has ended.
        """
        asked = sent(KeyLimitsBody(**asdict(limits)))
        return await self._asked(Key, Request(LIMIT, {"key_id": key_id}, asked), "key")

    async def revoke(self, key_id: str) -> Key:
        """Revoke a key. Requests with it are refused from now on.

        Raises:
            NotFoundError: There is no such key.
        """
        return await self._asked(Key, Request(REVOKE, {"key_id": key_id}), "key")
