"""Keys where they are stored, without a server between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from ojs_command.client.nats_address import operators_address
from ojs_command.client.on_nats import told_plainly
from ojs_command.client.problems import CommandFailed
from ojs_engine.jetstream.grants import KEYS
from ojs_engine.jetstream.subjects import config_of
from ojs_nats._durations import Duration, milliseconds
from ojs_nats.models.keys import Key, KeyLimits, MadeKey

T = TypeVar("T")


class KeysOnNats:
    """What `client.keys` does."""

    def __init__(self, work: Any) -> None:
        """`work` is what a feature does on NATS for this command."""
        self._work = work

    @property
    def untold(self) -> str | None:
        """Why the audit doesn't have what was done, if so. It is done nevertheless."""
        reason: str | None = self._work.untold
        return reason

    @classmethod
    @asynccontextmanager
    async def at(cls, url: str, namespace: str | None) -> AsyncIterator[KeysOnNats]:
        """Those of a namespace of the NATS at a URL. Raises CommandFailed."""
        with told_plainly():
            from ojs_engine.store.store import Store, StoreFeatures  # noqa: PLC0415  # takes what only a server needs
            from ojs_features.all import FEATURES, ON_NATS  # noqa: PLC0415  # the same

            if "keys" not in ON_NATS:
                raise CommandFailed("ojs-nats was installed here without keys.")
            nothing = StoreFeatures()  # no job is touched
            store = await Store.open(operators_address(url), config_of(namespace), role=KEYS, features=nothing)
            try:
                yield cls(ON_NATS["keys"](store, FEATURES))
            finally:
                await store.close()

    async def list(self, *, every: bool = False) -> Sequence[Key]:
        return [self._told(key, Key) for key in await self._work.list(every=every)]

    async def create(
        self,
        name: str,
        role: str,
        *,
        permissions: Sequence[str] = (),
        queues: Sequence[str] = (),
        types: Sequence[str] = (),
        limits: KeyLimits | None = None,
        expires_at: datetime | None = None,
    ) -> MadeKey:
        asked = {"name": name, "role": role, "permissions": permissions, "queues": queues, "types": types}
        sent: dict[str, Any] = {member: value for member, value in asked.items() if value}
        if limits is not None:
            sent["limits"] = limits
        if expires_at is not None:
            sent["expires_at"] = expires_at.isoformat()
        return self._told(await self._work.create(msgspec.json.encode(sent)), MadeKey)

    async def rotate(self, key_id: str, *, overlap: Duration) -> MadeKey:
        return self._told(await self._work.rotate(key_id, milliseconds(overlap)), MadeKey)

    async def limit(self, key_id: str, limits: KeyLimits) -> Key:
        return self._told(await self._work.limit(key_id, msgspec.json.encode(limits)), Key)

    async def revoke(self, key_id: str) -> Key:
        return self._told(await self._work.revoke(key_id), Key)

    def _told(self, answer: object, kind: type[T]) -> T:
        """Return an answer as a client reads it."""
        return msgspec.json.decode(msgspec.json.encode(answer), type=kind)
