"""Keys where they are stored, without a server between."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from getpass import getuser
from socket import gethostname
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from ojs_command.client.nats_address import operators_address
from ojs_command.client.on_nats import told_plainly
from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.jetstream.grants import KEYS, OPERATOR
from ojs_engine.jetstream.subjects import config_of
from ojs_engine.wire.access import key_answer, parse_key, parse_limits
from ojs_nats._durations import Duration, milliseconds
from ojs_nats.models.keys import Key, KeyLimits, MadeKey

if TYPE_CHECKING:
    from ojs_engine.store.store import Store


class KeysOnNats:
    """What `client.keys` does."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.untold: str | None = None
        """Why the audit doesn't have what was done, if so. It is done nevertheless."""

    @classmethod
    @asynccontextmanager
    async def at(cls, url: str, namespace: str | None) -> AsyncIterator[KeysOnNats]:
        """Those of a namespace of the NATS at a URL. Raises CommandFailed."""
        with told_plainly():
            from ojs_engine.store.store import Store, StoreFeatures  # noqa: PLC0415  # takes what only a server needs

            nothing = StoreFeatures()  # keys are the engine's
            store = await Store.open(operators_address(url), config_of(namespace), role=KEYS, features=nothing)
            try:
                yield cls(store)
            finally:
                await store.close()

    async def list(self, *, every: bool = False) -> Sequence[Key]:
        now = self._store.clock.now()
        return [self._told(key_answer(key, now)) for key in await self._store.keys.all() if every or not key.ended(now)]

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
        now = self._store.clock.now()
        new = parse_key(msgspec.json.encode(sent), now, DEFAULT_LIMITS)
        key = await self._store.keys.create(new)
        await self._told_of("key_created", key.id)
        return MadeKey(self._told(key_answer(key, now)), new.token)

    async def rotate(self, key_id: str, *, overlap: Duration) -> MadeKey:
        new = await self._store.keys.rotate(key_id, milliseconds(overlap))
        await self._told_of("key_rotated", key_id, made_key=new.key.id)
        return MadeKey(self._told(key_answer(new.key, self._store.clock.now())), new.token)

    async def limit(self, key_id: str, limits: KeyLimits) -> Key:
        key = await self._store.keys.limit(key_id, parse_limits(msgspec.json.encode(limits)))
        await self._told_of("key_limited", key_id)
        return self._told(key_answer(key, self._store.clock.now()))

    async def revoke(self, key_id: str) -> Key:
        key = await self._store.keys.revoke(key_id)
        await self._told_of("key_revoked", key_id)
        answer = key_answer(key, self._store.clock.now())
        if not await self._store.keys.lives(key_id):
            from ojs_features.all import NAMED_ENDS  # noqa: PLC0415  # takes what only a server needs

            answer = replace(answer, **{end.member: await end.change(self._store, key_id) for end in NAMED_ENDS})
        return self._told(answer)

    async def _told_of(self, what: str, key_id: str, **more: str) -> None:
        """Have it written down. NATS says nothing of who somebody is: the entry has what this machine says."""
        from ojs_engine.api.witness import Deed  # noqa: PLC0415  # takes what only a server needs, as the next
        from ojs_features.all import WITNESSES  # noqa: PLC0415

        if not WITNESSES:
            self.untold = "That wasn't written down: this installation is without the audit."
        deed = Deed(
            event_type=f"auth.{what}",
            operation="keys --nats",
            target={"key_id": key_id} | more,
            principal=OPERATOR,
            program=f"ojs-nats keys ({getuser()} on {gethostname()})",
        )
        try:
            for witness in WITNESSES:
                await witness.write(self._store, deed)
        except OjsError as error:
            self.untold = f"That couldn't be written into the audit: {error.message}."

    def _told(self, answer: Key) -> Key:
        """Return a key as a client reads it."""
        return msgspec.json.decode(msgspec.json.encode(answer), type=Key)
