"""The door: the one place where it is decided who asks and whether they may (docs/adr/072)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from typing import Final, Literal

from aiohttp import web

from ojs_engine.access.admission import Admission, Allowance, unauthenticated
from ojs_engine.access.permissions import Need
from ojs_engine.access.principal import EVERYBODY, NOBODY
from ojs_engine.api.call import Call, Response
from ojs_engine.api.guard import Callers
from ojs_engine.base.errors import OjsError
from ojs_engine.wire.redaction import without_fingerprint
from ojs_gateway.http.endpoint import Endpoint, StreamedResponse
from ojs_gateway.http.key_headers import left_headers, refusal_headers

Keyless = Literal["always", "never", "while there are no keys"]
"""When requests without a key are let in."""

Refused = Callable[[Call, Endpoint, OjsError], None]
"""Hears of every error that a request is answered with (docs/adr/076)."""

_UNNAMED: Final[frozenset[Need]] = frozenset({"nothing", "key"})
_CARRYING: Final[frozenset[Need]] = frozenset({"work", "enqueue"})
"""Whoever works gets what it works on, and whoever pushes has sent it."""
_LOOKING: Final[frozenset[Need]] = frozenset({"read", "payloads"})
"""Whoever only looks has done nothing yet when its key ends on the way, and is told nothing then."""
_STRANGER: Final = Admission(NOBODY)


class Door:
    """Stands between every request of one binding and its handler."""

    def __init__(self, callers: Callers, keyless: Keyless, pause: Callable[[str], float], refused: Refused) -> None:
        """`pause` counts a wrong key from an address, and returns how long its answer waits."""
        self._refused = refused
        self._callers = callers
        self._keyless = keyless
        self._pause = pause
        self._open: Admission | None = None
        """What everybody is let in with; None while the door is shut."""
        self._streams: set[Call] = set()
        self.look()

    @property
    def shut(self) -> bool:
        """Whether a key is needed."""
        return self._open is None

    async def through(self, call: Call, endpoint: Endpoint) -> Response | StreamedResponse:
        """The handler's answer, if the caller may have it. Raises OjsError unauthenticated, permission_denied."""
        try:
            call.enter(self._open or await self._admission(call, endpoint.need))
            _require(call, endpoint)
            allowance = call.admission.allowance
            if allowance is not None and endpoint.streams:
                answer = await _in_a_place(allowance, call, endpoint)
            else:
                answer = await endpoint.handler(call)
            if call.admission.over and endpoint.need in _LOOKING and isinstance(answer, Response):  # streams are cut off
                raise unauthenticated("the key has ended meanwhile")
        except OjsError as error:
            error.headers += refusal_headers(error, self._callers.now())
            if call.hides or call.hides_others:
                error.details = without_fingerprint(error.details)
            self._refused(call, endpoint, error)
            raise
        if call.bounded and not call.held:
            raise AssertionError(f"{endpoint.name} doesn't ask what it may be about")
        if allowance is not None and endpoint.need == "enqueue" and not call.counted:
            raise AssertionError(f"{endpoint.name} doesn't count what it pushes")
        if allowance is not None and endpoint.need == "enqueue" and isinstance(answer, Response):
            left = left_headers(allowance, answer.headers, self._callers.now())
            return answer._replace(headers=(*answer.headers, *left)) if left else answer
        return answer

    async def _admission(self, call: Call, need: Need) -> Admission:
        if need == "nothing":
            return _STRANGER
        if (authorization := call.header("Authorization")) is not None:
            found = self._callers.of_header(authorization)
            if found is not None:
                return found
            check = partial(self._callers.check_header, authorization)
        elif (session := self._session_of(call)) is not None:
            found = self._callers.of_cookie(session)
            if found is not None:
                return found
            check = partial(self._callers.check_cookie, session)
        elif self._keyless == "always":
            return _EVERYBODY
        else:
            raise unauthenticated("this server asks for a key")
        try:
            return check()
        except OjsError:
            await asyncio.sleep(self._pause(call.address))
            raise

    def _session_of(self, call: Call) -> str | None:
        """Return the session that a page of ours sends.

        Raises permission_denied for another page. The call is that of the session's holder then.
        """
        try:
            return call.session
        except OjsError:
            call.enter(_STRANGER)
            if (cookie := call.shown_session) is not None:
                with suppress(OjsError):  # it is no session's
                    call.enter(self._callers.of_cookie(cookie) or self._callers.check_cookie(cookie))
            raise

    def look(self) -> None:
        """Shut or open the door by the keys that there are, and end the streams of those whose key has ended."""
        keyless = self._keyless == "always" or (self._keyless != "never" and not self._callers.any)
        if not self._callers.any and keyless:
            self._open = self._open or Admission(EVERYBODY)
        elif self._open is not None:
            self._open.over = self._keyless != "always"
            self._open = None
        for call in [call for call in self._streams if call.admission.over]:
            call.hang_up()

    @contextmanager
    def streaming(self, call: Call) -> Iterator[None]:
        """In here an answer goes on, for as long as its caller is let in."""
        self._streams.add(call)
        try:
            yield
        finally:
            self._streams.discard(call)


_EVERYBODY: Final = Admission(EVERYBODY)


async def _in_a_place(allowance: Allowance, call: Call, endpoint: Endpoint) -> Response | StreamedResponse:
    """The handler's answer. While it goes on it has one of the key's places for streams. Raises rate_limited."""
    with ExitStack() as held:
        held.enter_context(allowance.place("streams"))
        answer = await endpoint.handler(call)
        if isinstance(answer, Response):
            return answer
        place = held.pop_all()
    serve = answer.serve

    async def serve_and_leave(request: web.BaseRequest, headers: Mapping[str, str]) -> web.StreamResponse:
        with place:
            return await serve(request, headers)

    return StreamedResponse(serve_and_leave)


def _require(call: Call, endpoint: Endpoint) -> None:
    """Raises OjsError permission_denied."""
    principal = call.principal
    need = endpoint.need
    if need in _UNNAMED:
        call.held = True
        return
    for permission in (need, *endpoint.besides):
        call.require(permission, endpoint.name)
    if "payloads" not in principal.permissions:
        call.hides = need not in _CARRYING
        call.hides_others = need == "enqueue"
    if call.bounded:
        if "queue" in endpoint.placed:
            call.require_queue(call.parameters[endpoint.placed.index("queue")])
        elif principal.narrowed and endpoint.narrowing == "refused":
            raise OjsError(
                "permission_denied",
                f"{endpoint.name} is about all queues, and key {principal.name!r} is narrowed to some",
                hint="Ask about one queue, as GET /queues/{queue}/stats does, or with a key that isn't narrowed.",
                details={"permission": need, "operation": endpoint.name},
            )
