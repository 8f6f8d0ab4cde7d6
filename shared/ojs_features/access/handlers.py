"""Keys (docs/security.md)."""

from __future__ import annotations

from msgspec.structs import replace

from ojs_api.keys import KeyList, MadeKey, OneKey
from ojs_engine.api.call import Call, Response
from ojs_engine.api.keyed import refuse_key
from ojs_engine.store.callers import key_lives
from ojs_features.access.bodies import key_answer, parse_key, parse_limits, parse_rotation
from ojs_features.access.store import Keys
from ojs_features.context import HandlerContext


class KeyHandlers:
    """Handlers under /admin/keys."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._keys = context.store.of(Keys)
        self._clock = context.store.clock
        self._limits = context.limits
        self._ends = context.key_ends

    async def list(self, call: Call) -> Response:
        """GET /admin/keys: those that have not ended, or all of them."""
        now = self._clock.now()
        every = call.query("all") == "true"
        found = [key_answer(key, now) for key in await self._keys.all() if every or not key.ended(now)]
        return Response(200, KeyList(found))

    async def create(self, call: Call) -> Response:
        """POST /admin/keys."""
        refuse_key(call, "list the keys before you send it again")
        new = await call.read(parse_key, self._clock.now(), self._limits)
        key = await self._keys.create(new)
        return Response(201, MadeKey(key_answer(key, self._clock.now()), new.token))

    async def read(self, call: Call) -> Response:
        """GET /admin/keys/{key_id}."""
        key = await self._keys.get(call.parameters[0])
        return Response(200, OneKey(key_answer(key, self._clock.now())))

    async def rotate(self, call: Call) -> Response:
        """POST /admin/keys/{key_id}/rotate."""
        overlap_ms = await call.read(parse_rotation, self._limits)
        new = await self._keys.rotate(call.parameters[0], overlap_ms)
        return Response(201, MadeKey(key_answer(new.key, self._clock.now()), new.token))

    async def limit(self, call: Call) -> Response:
        """PUT /admin/keys/{key_id}/limits."""
        limits = await call.read(parse_limits)
        key = await self._keys.limit(call.parameters[0], limits)
        return Response(200, OneKey(key_answer(key, self._clock.now())))

    async def revoke(self, call: Call) -> Response:
        """DELETE /admin/keys/{key_id}. What features do in its name ends, or is named."""
        key = await self._keys.revoke(call.parameters[0])
        answer = key_answer(key, self._clock.now())
        if not await key_lives(self._store.bucket, key.id):  # else what it has left is of the key that it was rotated to
            ended = {end.member: await end.change(self._store, key.id) for end in self._ends}
            answer = replace(answer, **ended)
        return Response(200, OneKey(answer))
