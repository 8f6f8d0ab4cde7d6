"""The witness of one gateway: refusals, and all requests but pushes, work and reading, go into the audit (docs/adr/076)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import cache
from typing import Final, NamedTuple, TypeVar

from msgspec import UNSET, UnsetType

from ojs_api import words
from ojs_api.keys import MadeKey
from ojs_engine.access.admission import PREFIX, key_id_of
from ojs_engine.access.permissions import Need
from ojs_engine.access.principal import EVERYBODY, NOBODY, Principal
from ojs_engine.api.call import Call, Response
from ojs_engine.api.witness import Asked
from ojs_engine.base.errors import OjsError
from ojs_engine.base.ids import new_request_id
from ojs_engine.base.times import format_ms
from ojs_features.audit.entry import UNKNOWN, Detail, Entry, Outcome
from ojs_features.audit.gauges import Gauges
from ojs_features.audit.repeats import Owner
from ojs_features.audit.trail import Trail

T = TypeVar("T")

_ACTS: Final[frozenset[Need]] = frozenset({"control", "configure", "destroy", "admin"})
_NAMED: Final = {
    "createSession": "auth.login_success",
    "deleteSession": "auth.logout",
    "createKey": "auth.key_created",
    "rotateKey": "auth.key_rotated",
    "limitKey": "auth.key_limited",
    "revokeKey": "auth.key_revoked",
}
"""Types of entries that the specification or we have a word for, by operation."""
_LOGIN_FAILURE: Final = "auth.login_failure"
_NO_TLS: Final = "auth.tls_failure"
_DENIED: Final = "auth.permission_denied"
_UNAUTHENTICATED: Final = 401
_REFUSALS: Final = frozenset({_UNAUTHENTICATED, 403})
_WITHOUT_KEY: Final = (EVERYBODY, NOBODY)
_MOST_ID: Final = 32
_MOST_CHARS: Final = 200
"""Of what clients choose themselves."""


class Auditor:
    """Writes the audit of one gateway, and measures how full it is. `now` is server time in Unix ms."""

    def __init__(self, trail: Trail, gauges: Gauges, now: Callable[[], int]) -> None:
        self._trail = trail
        self._gauges = gauges
        self._now = now

    def start(self) -> None:
        self._trail.start()
        self._gauges.start()

    async def stop(self) -> None:
        await self._trail.stop()
        await self._gauges.stop()

    def watching(self, asked: Asked, handler: Callable[[Call], Awaitable[T]], *, reads: bool) -> Callable[[Call], Awaitable[T]]:
        """Return the handler, such that each call of it gets an entry; as it is if calls of it don't.

        `reads` says that the operation changes nothing. Reads that repeat share entries.
        """
        if asked.need not in _ACTS and asked.name not in _NAMED:
            return handler
        event_type = _NAMED.get(asked.name) or f"admin.{_snake(asked.name)}"

        async def watched(call: Call) -> T:
            placed = not reads and _is_known(call.principal)
            if placed:
                await self._take_place(event_type, call, asked)
            act = _Act(event_type, call, asked, placed=placed)
            try:
                answer = await handler(call)
            except asyncio.CancelledError:
                self._cut_off(act, self._entry(event_type, call, asked, "failure", 0, "cancelled"))
                raise
            except OjsError as error:
                status = error.info.status
                if status in _REFUSALS:  # the door tells of those
                    self._leave(act)
                else:
                    await self._tell(act, self._entry(event_type, call, asked, "failure", status, error.code))
                raise
            except Exception:
                await self._tell(act, self._entry(event_type, call, asked, "failure", 500, "backend_error"))
                raise
            if call.principal is NOBODY:  # who isn't signed in signs nobody out
                return answer
            status = answer.status if isinstance(answer, Response) else 200
            outcome: Outcome = "success" if status < 400 else "failure"
            entry = self._entry(event_type, call, asked, outcome, status, "", _made(answer))
            if reads:
                self._trail.note_repeated(_owner(call), asked.name, entry)
            else:
                await self._tell(act, entry)
            return answer

        return watched

    async def _take_place(self, event_type: str, call: Call, asked: Asked) -> None:
        """Have a place for the entry of an act. Raises OjsError backend_unavailable: it is not to be done."""
        try:
            await self._trail.take_place()
        except OjsError as error:
            entry = self._entry(event_type, call, asked, "failure", error.info.status, error.code)
            self._trail.note_repeated(_owner(call), (event_type, "no place"), entry)
            raise

    def _leave(self, act: _Act) -> None:
        if act.placed:
            self._trail.leave_place()

    def _cut_off(self, act: _Act, entry: Entry) -> None:
        if act.placed:
            self._trail.put(entry)
        else:
            self._trail.note(entry)

    async def _tell(self, act: _Act, entry: Entry) -> None:
        """Write the entry of an act. One that changed nothing is counted with others of its operation.

        Where clients need no key, no answer waits for the audit either.
        """
        if 400 <= (entry.detail.status or 0) < 500:
            self._leave(act)
            self._trail.note_repeated(_owner(act.call), act.refusal, entry)
        elif entry.detail.target and self._trail.counts(act.deed(entry), entry):
            self._leave(act)
        elif act.placed:
            await self._trail.keep(entry)
        else:
            self._trail.note(entry)

    def refused(self, call: Call, asked: Asked, error: OjsError) -> None:
        """Tell of a request that the door, or a handler, has refused; other errors are none of the audit's."""
        status = error.info.status
        if status not in _REFUSALS:
            return
        event_type = _LOGIN_FAILURE if status == _UNAUTHENTICATED else _DENIED
        entry = self._entry(event_type, call, asked, "failure", status, error.canonical.lower())
        self._trail.note_repeated(_owner(call), (event_type, call.address, asked.name), entry)

    def no_connection(self, address: str, reason: str) -> None:
        """Write down a client that spoke no TLS, or none that is taken here, but not one that closed its connection."""
        if reason == "closed":
            return
        entry = Entry(
            timestamp=format_ms(self._now()),
            event_type=_NO_TLS,
            principal=UNKNOWN,
            source_ip=address,
            correlation_id=new_request_id(),
            outcome="failure",
            detail=Detail(operation="handshake", reason=reason),
        )
        self._trail.note_repeated(Owner(address, stranger=True), (_NO_TLS, reason), entry)

    def _entry(
        self,
        event_type: str,
        call: Call,
        asked: Asked,
        outcome: Outcome,
        status: int,
        reason: str,
        made: dict[str, str] | None = None,
    ) -> Entry:
        principal = NOBODY if status == _UNAUTHENTICATED else call.principal
        known = principal is not NOBODY
        target = dict(zip(asked.placed, (value[:_MOST_CHARS] for value in call.parameters), strict=False))
        return Entry(
            timestamp=format_ms(self._now()),
            event_type=event_type,
            principal=principal.name if known else UNKNOWN,
            source_ip=call.address if call.binding == "http" else UNKNOWN,
            correlation_id=call.request_id,
            outcome=outcome,
            detail=Detail(
                operation=asked.name,
                permission=UNSET if asked.need in {"nothing", "key"} else asked.need,
                target=target | (made or {}),
                binding=call.binding,
                principal_id=principal.id if known else UNSET,
                mechanism=UNSET if principal is EVERYBODY else _mechanism(call),
                key_prefix=UNSET if known else _key_prefix(call),
                reason=reason or UNSET,
                status=status or UNSET,
                user_agent=(call.remark("User-Agent") or "")[:_MOST_CHARS] or UNSET,
            ),
        )


class _Act(NamedTuple):
    """A call of an operation whose entry is to come; `placed` is whether there is a place for it."""

    event_type: str
    call: Call
    asked: Asked
    placed: bool

    @property
    def refusal(self) -> tuple[Hashable, ...]:
        """Return the key that it is counted by if it changed nothing."""
        return self.event_type, self.call.address, self.asked.name

    def deed(self, entry: Entry) -> Hashable:
        """Return the key that it is counted by if it may have changed its target."""
        detail = entry.detail
        return detail.principal_id, *self.refusal, entry.outcome, detail.status, *sorted(detail.target.items())


def _owner(call: Call) -> Owner:
    """Return whom the entries of a call are counted for."""
    principal = call.principal
    return Owner(principal.id) if _is_known(principal) else Owner(call.address, stranger=True)


def _is_known(principal: Principal) -> bool:
    """Whether somebody asks by a key."""
    return not any(principal is one for one in _WITHOUT_KEY)


def _mechanism(call: Call) -> words.Mechanism | UnsetType:
    if call.remark("Authorization") is not None:
        return "api_key"
    return "session" if call.remark("Cookie") is not None else UNSET


def _key_prefix(call: Call) -> str | UnsetType:
    """The beginning of a key that wasn't taken, without anything of its secret, if it has the form of ours."""
    _, _, token = (call.remark("Authorization") or "").strip().partition(" ")
    key_id = key_id_of(token.strip())
    return UNSET if key_id is None else f"{PREFIX}{key_id[:_MOST_ID]}_…"


def _made(answer: object) -> dict[str, str] | None:
    """The key that an answer is the first to name."""
    if isinstance(answer, Response) and isinstance(answer.answer, MadeKey):
        return {"made_key": answer.answer.key.id}
    return None


@cache
def _snake(operation: str) -> str:
    """AdminBulkCancel → bulk_cancel."""
    words = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation)
    return words.removeprefix("admin_")
