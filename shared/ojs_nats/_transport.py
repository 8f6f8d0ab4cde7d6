"""Requests to a server, however they get there: tries that are repeated while that is safe."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Coroutine, Sequence
from typing import Any, Final, TypeVar

import msgspec

from ojs_api.events import POLL
from ojs_link.address import masked
from ojs_nats._json import decoded
from ojs_nats._logging import get_logger
from ojs_nats._loops import running_loop
from ojs_nats._operations import Request
from ojs_nats._plain import encoded
from ojs_nats._refusals import is_refusal, refusal
from ojs_nats._timings import TransportTimings
from ojs_nats.errors import OjsError, RateLimitedError, UnavailableError
from ojs_nats.models.events import Event, EventPage

T = TypeVar("T")

log = get_logger(__name__)

_JSON: Final = (b"{", b"[")
_AGAIN: Final = frozenset({502, 503, 504})
"""Answers that say that the server, or what is before it, can't work now."""
_AGAIN_OF_OTHERS: Final = frozenset({408, 425, 429, 500})
"""Answers that say it where no OJS error comes with them."""
_STILL_RUNS: Final = "conflict"
"""With Retry-After: the same request was sent before, and has no answer yet."""
_NOT_DONE: Final = frozenset({409, 425, 429, 503})
"""The statuses among them that say that nothing was done."""
_REMEDY: Final = "start one with 'ojs-nats dev', or name another by OJS_URL, App(url) or Client(url)"


class Answer(msgspec.Struct, frozen=True):
    """An answer. `retry_after` is in seconds, as it was sent."""

    status: int
    body: bytes
    retry_after: str | None = None


class EventFilter(msgspec.Struct, frozen=True):
    """A filter for events, which have to match all of it. `types` may end in `.*`. They begin behind the cursor `after`, else
    with what happens from now on. Those of `job_id` end with the job.
    """

    types: Sequence[str] = ()
    queues: Sequence[str] = ()
    job_types: Sequence[str] = ()
    job_id: str | None = None
    after: str | None = None


class Transport(ABC):
    """For one event loop. `retry_for_s` is for how long a request is tried, while no server answers or who answers can't
    work.
    """

    def __init__(self, url: str, *, retry_for_s: float = 30.0, timings: TransportTimings = TransportTimings()) -> None:
        self.timings = timings
        self.url = url.rstrip("/")
        self.shown = masked(self.url)
        """The address without passwords."""
        self._retry_for_s = retry_for_s
        self._said_at = -timings.said_again_s

    @abstractmethod
    async def once(self, request: Request, body: bytes | None) -> Answer:
        """Send it once. Raises NotNow if there is no answer."""

    @property
    def is_open(self) -> bool:
        """Whether it has connections, which are closed with their loop."""
        return False

    @abstractmethod
    async def close(self) -> None:
        """Close the connections; the next request opens new ones."""

    def events(self, wanted: EventFilter) -> AsyncGenerator[Event]:
        """Yield the wanted events as they happen, across broken connections.

        Raises RefusedError, UnavailableError, and NotImplementedError where there is nothing that could tell of them.
        """
        raise NotImplementedError(f"events can't be followed at {self.shown}")

    async def cursor_now(self) -> str:
        """The cursor behind what has happened: from there on, a connection that breaks loses no event."""
        newest = await self.send(Request(POLL, {"page": "1", "per_page": "1"}))
        return decoded(newest, EventPage).cursor

    async def send(self, request: Request, *, retry_for_s: float | None = None) -> bytes:
        """The answer's body. Raises RefusedError by the server's code, UnavailableError, and as `encoded` for what JSON
        can't hold.
        """
        loop = running_loop()
        began = loop.time()
        deadline = began + (self._retry_for_s if retry_for_s is None else retry_for_s)
        body = None if request.body is None else encoded(request.body, "the request", deepest=None)
        pause = self.timings.first_pause_s
        while True:
            try:
                return await self._answered(request, body)
            except NotNow as reason:
                wait = max(pause * random.uniform(0.5, 1.0), reason.retry_after_s or 0.0)  # noqa: S311
                left = deadline - loop.time()
                if left <= 0 or not (request.repeatable or not reason.carried_out):
                    said = self._unavailable(request, reason, loop.time() - began)
                    raise UnavailableError(said, retry_after_s=reason.retry_after_s) from reason.__cause__
                if loop.time() - began + wait > self.timings.quiet_s:
                    self._say_that_nobody_answers(reason, left)
            await asyncio.sleep(min(wait, left))
            pause = min(pause * 2, self.timings.longest_pause_s)

    def _unavailable(self, request: Request, reason: NotNow, tried_s: float) -> str:
        if not reason.unreachable:
            return f"{request.operation.name} at {self.shown}: {reason}"
        tried = f", {tried_s:.0f} s long" if tried_s >= 1 else ""
        return f"no server answers at {self.shown} ({reason}; {request.operation.name} was tried{tried}): {_REMEDY}"

    def _say_that_nobody_answers(self, reason: NotNow, left_s: float) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._said_at >= self.timings.said_again_s:
            self._said_at = now
            log.warning("no server answers yet", url=self.shown, reason=str(reason), gives_up_in_s=round(left_s))

    async def _answered(self, request: Request, body: bytes | None) -> bytes:
        answer = await self.once(request, body)
        if answer.status < 400 or (answer.status in request.answered_as_well and not is_refusal(answer.body)):
            if answer.body and not answer.body.lstrip().startswith(_JSON):  # as a sign-in page, or "under maintenance"
                said = f"the answer was {answer.status}, and no JSON: is that an OJS server?"
                raise NotNow(said, carried_out=True) from msgspec.DecodeError("it is no JSON")
            return answer.body
        raise error_of(answer)


def error_of(answer: Answer) -> OjsError:
    """Return NotNow for what may go well later, else RefusedError."""
    refused = refusal(answer.status, answer.body, answer.retry_after)
    of_others = answer.status in _AGAIN_OF_OTHERS and not is_refusal(answer.body)
    still_runs = refused.code == _STILL_RUNS and refused.retry_after_s is not None
    if not (answer.status in _AGAIN or of_others or still_runs or isinstance(refused, RateLimitedError)):
        return refused
    later = NotNow(refused, carried_out=answer.status not in _NOT_DONE, retry_after_s=refused.retry_after_s)
    later.__cause__ = refused
    return later


async def in_time(answered: Coroutine[Any, Any, T], seconds: float, unread_s: float) -> T:
    """Return an answer that comes within so many seconds. Raises TimeoutError.

    A process that was stopped meanwhile finds the time over and the answer in its socket: it reads that first,
    since the jobs of a fetch would be lost to it with its answer. That may take `unread_s`.
    """
    asked = asyncio.ensure_future(answered)
    try:
        await asyncio.wait({asked}, timeout=seconds)
        if not asked.done():
            await asyncio.wait({asked}, timeout=unread_s)
        if asked.done():
            return asked.result()
    finally:
        asked.cancel()
    raise TimeoutError


class NotNow(OjsError):
    """It may go well later. `carried_out` is whether it may have been done though nobody said so, `unreachable` whether
    there was no connection at all.
    """

    def __init__(
        self, reason: Any, *, carried_out: bool, retry_after_s: float | None = None, unreachable: bool = False
    ) -> None:
        super().__init__(str(reason) or type(reason).__name__)
        self.carried_out = carried_out
        self.unreachable = unreachable
        self.retry_after_s = retry_after_s
