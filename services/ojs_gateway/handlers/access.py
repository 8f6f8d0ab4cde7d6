"""Keys, and the sessions of browsers (docs/security.md)."""

from __future__ import annotations

from typing import Final

from ojs_core.access.known_keys import unauthenticated
from ojs_core.access.sessions import LASTS_S
from ojs_core.base.errors import OjsError
from ojs_core.wire.access import KeyList, MadeKey, OneKey, key_answer, parse_key, parse_rotation, session_answer
from ojs_gateway.context import Context
from ojs_gateway.http.call import Call, Response
from ojs_gateway.http.request import SESSION_COOKIE, HttpCall

_NO_STORE: Final = (("Cache-Control", "no-store"),)


class KeyHandlers:
    """Handlers under /admin/keys."""

    def __init__(self, context: Context) -> None:
        self._keys = context.store.keys
        self._clock = context.store.clock
        self._limits = context.limits

    async def list(self, call: Call) -> Response:
        """GET /admin/keys: those that have not ended, or all of them."""
        now = self._clock.now()
        every = call.query("all") == "true"
        found = [key_answer(key, now) for key in await self._keys.all() if every or not key.ended(now)]
        return Response(200, KeyList(found), _NO_STORE)

    async def create(self, call: Call) -> Response:
        """POST /admin/keys."""
        new = await call.read(parse_key, self._clock.now(), self._limits)
        key = await self._keys.create(new)
        return Response(201, MadeKey(key_answer(key, self._clock.now()), new.token), _NO_STORE)

    async def read(self, call: Call) -> Response:
        """GET /admin/keys/{key_id}."""
        key = await self._keys.get(call.parameters[0])
        return Response(200, OneKey(key_answer(key, self._clock.now())), _NO_STORE)

    async def rotate(self, call: Call) -> Response:
        """POST /admin/keys/{key_id}/rotate."""
        overlap_ms = await call.read(parse_rotation, self._limits)
        new = await self._keys.rotate(call.parameters[0], overlap_ms)
        return Response(201, MadeKey(key_answer(new.key, self._clock.now()), new.token), _NO_STORE)

    async def revoke(self, call: Call) -> Response:
        """DELETE /admin/keys/{key_id}."""
        key = await self._keys.revoke(call.parameters[0])
        return Response(200, OneKey(key_answer(key, self._clock.now())), _NO_STORE)


class SessionHandlers:
    """Handlers of /session, which are for browsers."""

    def __init__(self, context: Context) -> None:
        self._keys = context.keys

    async def begin(self, call: Call) -> Response:
        """POST /session: a session for who shows a key."""
        if call.header("Authorization") is None:
            raise unauthenticated("a session begins with a key in Authorization")
        sealed = self._keys.session(call.principal)
        if sealed is None:
            raise OjsError("conflict", "nobody needs a key here, so there is nothing to sign in for", hint="Ask without one.")
        text, ends_at_s = sealed
        answer = session_answer(call.principal, signed_in=True, is_open=False, ends_at=ends_at_s * 1_000)
        lasts_s = min(LASTS_S, ends_at_s - self._keys.now() // 1_000)
        return Response(201, answer, (*_NO_STORE, _cookie(call, text, lasts_s)))

    async def read(self, call: Call) -> Response:
        """GET /session: who asks."""
        by_session = call.header("Authorization") is None and self._keys.any and call.session is not None
        ends_at = call.admission.until if by_session else None
        answer = session_answer(call.principal, signed_in=by_session, is_open=not self._keys.any, ends_at=ends_at)
        return Response(200, answer, _NO_STORE)

    async def end(self, call: Call) -> Response:
        """DELETE /session: the browser forgets it."""
        return Response(204, b"", (*_NO_STORE, _cookie(call, "", 0)))


def _cookie(call: Call, value: str, lasts_s: int) -> tuple[str, str]:
    secure = "; Secure" if isinstance(call, HttpCall) and call.secure else ""
    return ("Set-Cookie", f"{SESSION_COOKIE}={value}; Path=/; Max-Age={lasts_s}; HttpOnly; SameSite=Strict{secure}")
