"""What a feature writes down of acts: who asked for what, and who was refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar

from msgspec import Struct

from ojs_engine.access.permissions import Need
from ojs_engine.api.call import Call
from ojs_engine.base.errors import OjsError
from ojs_engine.store.store import Store

T = TypeVar("T")


class Asked(Protocol):
    """An operation, as a witness tells it from others."""

    @property
    def name(self) -> str:
        """Its id."""

    @property
    def placed(self) -> tuple[str, ...]:
        """The names in its path, in order."""

    @property
    def need(self) -> Need:
        """The permission that it takes."""


class Witness(Protocol):
    """A feature in one gateway, which writes down what clients ask for."""

    def start(self) -> None: ...

    async def stop(self) -> None: ...

    def watching(self, asked: Asked, handler: Callable[[Call], Awaitable[T]], *, reads: bool) -> Callable[[Call], Awaitable[T]]:
        """Return the handler, such that calls of it are written down; the same one if they aren't.

        `reads` says that the operation changes nothing.
        """

    def refused(self, call: Call, asked: Asked, error: OjsError) -> None:
        """Hear of an error that a request is answered with."""

    def no_connection(self, address: str, reason: str) -> None:
        """Hear of a client whose TLS handshake has failed."""


class Deed(Struct, frozen=True, kw_only=True):
    """An act of a command that changes what is stored, without a server between."""

    event_type: str
    operation: str
    target: Mapping[str, str]
    principal: str
    program: str
    """The command, and who ran it where."""


class Witnessing(Struct, frozen=True, kw_only=True):
    """What a feature writes down, in gateways and in commands."""

    make: Callable[[Store], Witness]
    write: Callable[[Store, Deed], Awaitable[None]]
    """Raises OjsError if that can't be stored."""
