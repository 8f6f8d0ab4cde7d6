"""The sessions of browsers (docs/security.md)."""

from __future__ import annotations

from contextlib import suppress

from ojs_engine.access.admission import ENVIRONMENT, unauthenticated
from ojs_engine.api.call import Call, Response
from ojs_engine.base.errors import OjsError
from ojs_features.access.bodies import session_answer
from ojs_features.access.gatekeeper import Gatekeeper
from ojs_features.access.sessions import LASTS_S
from ojs_features.access.store import Keys
from ojs_features.context import HandlerContext


class SessionHandlers:
    """Handlers of /session, which are for browsers."""

    def __init__(self, context: HandlerContext) -> None:
        guard = context.guard
        assert isinstance(guard, Gatekeeper), "sessions are of keys, and another feature guards this gateway"
        self._keys = guard.callers
        self._store = context.store

    async def begin(self, call: Call) -> Response:
        """POST /session: a session for who shows a key."""
        if call.remark("Authorization") is None:
            raise unauthenticated("a session begins with a key in Authorization")
        sealed = self._keys.session(call.principal)
        if sealed is None:
            raise OjsError("conflict", "nobody needs a key here, so there is nothing to sign in for", hint="Ask without one.")
        text, ends_at_s = sealed
        answer = session_answer(call.principal, signed_in=True, is_open=False, ends_at=ends_at_s * 1_000)
        lasts_s = min(LASTS_S, ends_at_s - self._keys.now() // 1_000)
        return Response(201, answer, (call.session_cookie(text, lasts_s),))

    async def read(self, call: Call) -> Response:
        """GET /session: who asks."""
        by_session = call.remark("Authorization") is None and self._keys.any and call.session is not None
        ends_at = call.admission.until if by_session else None
        answer = session_answer(call.principal, signed_in=by_session, is_open=not self._keys.any, ends_at=ends_at)
        return Response(200, answer, self._without_the_old(call))

    def _without_the_old(self, call: Call) -> tuple[tuple[str, str], ...]:
        """Return the header that takes back a session of ours whose cookie has the name of earlier versions."""
        old = call.old_session
        if old is None:
            return ()
        try:
            _ = self._keys.of_cookie(old) or self._keys.check_cookie(old)
        except OjsError:
            return ()
        return (call.session_cookie("", 0, old=True),)

    async def end(self, call: Call) -> Response:
        """DELETE /session: the browser forgets it, and gateways take it no more. The call then knows whose it was."""
        if (session := call.session) is not None:
            with suppress(OjsError):
                call.enter(self._keys.of_cookie(session) or self._keys.check_cookie(session))
                await self._end(session)
        return Response(204, b"", (call.session_cookie("", 0),))

    async def _end(self, session: str) -> None:
        """Take a session no more, here at once, and through other gateways once they hear of it. Raises OjsError."""
        said = self._keys.end_session(session)
        if said is not None and said.key_id != ENVIRONMENT:  # that key has no record
            await self._store.of(Keys).end_session(said.key_id, said.mark)
