"""Keys where they are stored, without a server between: the work of `ojs-nats keys --nats`."""

from __future__ import annotations

from collections.abc import Sequence
from getpass import getuser
from socket import gethostname

from msgspec.structs import replace

from ojs_api.keys import Key, MadeKey
from ojs_engine.api.witness import Deed
from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.jetstream.grants import OPERATOR
from ojs_engine.store.callers import key_lives
from ojs_engine.store.store import Store
from ojs_features.access.bodies import key_answer, parse_key, parse_limits
from ojs_features.access.store import Keys
from ojs_features.plug import Feature


class KeysOnNats:
    """Changes keys, and has that written down. Bodies are those of the API."""

    def __init__(self, store: Store, features: Sequence[Feature]) -> None:
        self._store = store
        self._keys = store.of(Keys)
        self._witnesses = [feature.witness for feature in features if feature.witness is not None]
        self._ends = [end for feature in features for end in feature.key_ends if end.only_names]
        self.untold: str | None = None
        """Why the audit doesn't have what was done, if so. It is done nevertheless."""

    async def list(self, *, every: bool) -> list[Key]:
        """Return keys, without those that have ended unless `every` is set."""
        now = self._store.clock.now()
        return [key_answer(key, now) for key in await self._keys.all() if every or not key.ended(now)]

    async def create(self, body: bytes) -> MadeKey:
        """Make a key."""
        now = self._store.clock.now()
        new = parse_key(body, now, DEFAULT_LIMITS)
        key = await self._keys.create(new)
        await self._tell("key_created", key.id)
        return MadeKey(key_answer(key, now), new.token)

    async def rotate(self, key_id: str, overlap_ms: int) -> MadeKey:
        """Make a key in place of one, which goes on for a while."""
        new = await self._keys.rotate(key_id, overlap_ms)
        await self._tell("key_rotated", key_id, made_key=new.key.id)
        return MadeKey(key_answer(new.key, self._store.clock.now()), new.token)

    async def limit(self, key_id: str, body: bytes) -> Key:
        """Give a key other limits."""
        key = await self._keys.limit(key_id, parse_limits(body))
        await self._tell("key_limited", key_id)
        return key_answer(key, self._store.clock.now())

    async def revoke(self, key_id: str) -> Key:
        """Revoke a key. The answer names what goes on in its name."""
        key = await self._keys.revoke(key_id)
        await self._tell("key_revoked", key_id)
        answer = key_answer(key, self._store.clock.now())
        if not await key_lives(self._store.bucket, key_id):
            answer = replace(answer, **{end.member: await end.change(self._store, key_id) for end in self._ends})
        return answer

    async def _tell(self, what: str, key_id: str, **more: str) -> None:
        """Have it written down. NATS says nothing of who somebody is: the entry has what this machine says."""
        if not self._witnesses:
            self.untold = "That wasn't written down: this installation is without the audit."
        deed = Deed(
            event_type=f"auth.{what}",
            operation="keys --nats",
            target={"key_id": key_id} | more,
            principal=OPERATOR,
            program=f"ojs-nats keys ({getuser()} on {gethostname()})",
        )
        try:
            for witness in self._witnesses:
                await witness.write(self._store, deed)
        except OjsError as error:
            self.untold = f"That couldn't be written into the audit: {error.message}."
