"""The guard of a gateway, which a feature brings: it knows the callers that may come in."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from ojs_engine.access.admission import Admission
from ojs_engine.store.store import Store


class Callers(Protocol):
    """The callers that a gateway knows, by what they show."""

    @property
    def any(self) -> bool:
        """Whether requests need a key: there are keys, or were some."""

    @property
    def now(self) -> Callable[[], int]:
        """The clock, in Unix ms."""

    def of_header(self, authorization: str) -> Admission | None:
        """Return who was found to send this `Authorization` before; None for an unknown or ended one."""

    def check_header(self, authorization: str) -> Admission:
        """Return who sends this `Authorization`. Raises OjsError unauthenticated."""

    def of_cookie(self, session: str) -> Admission | None:
        """Return whose session this was found to be before; None for an unknown or ended one."""

    def check_cookie(self, session: str) -> Admission:
        """Return whose session it is. Raises OjsError unauthenticated."""


class Guard(Protocol):
    """Knows who may come in, for one gateway."""

    @property
    def callers(self) -> Callers: ...

    def pause(self, address: str) -> float:
        """Count a wrong key from an address, and return how many seconds its answer should wait."""

    async def start(self, changed: Callable[[], None]) -> None:
        """Know the callers, and call `changed` whenever they are others.

        Raises StartupProblem where this gateway must not serve.
        """

    async def stop(self) -> None: ...


class KeyEnd(Struct, frozen=True, kw_only=True):
    """A change that the end of a key makes. The answer to its revocation names what was changed under `member`."""

    member: str
    change: Callable[[Store, str], Awaitable[list[str]]]
    """Takes the key's id. Raises OjsError backend_unavailable."""
    only_names: bool = False
    """Whether it changes nothing. A command without a server names them, too."""
