"""Admissions: a caller that was let in, for how long, and how much it may ask for."""

from __future__ import annotations

import re
from contextlib import AbstractContextManager
from typing import Final, Literal, Protocol

from ojs_engine.access.principal import Principal
from ojs_engine.base.errors import OjsError

ENVIRONMENT: Final = "environment"
"""The id of the one key that the gateway's environment has."""
PREFIX: Final = "ojs_sk_"
"""How keys begin: scanners for secrets look for such prefixes."""
_TOKEN: Final = re.compile(r"ojs_sk_([0-9a-f]{12})_[0-9a-f]{64}")
FOREVER: Final = 1 << 62
_CHALLENGE: Final = (("WWW-Authenticate", "Bearer"),)

Places = Literal["streams", "waiting"]


class Allowance(Protocol):
    """The use of one key's limits at this gateway."""

    def count_pushes(self, number: int) -> None:
        """Count jobs of one request. Raises rate_limited if those before it were too many."""

    def pushes_left(self) -> tuple[int, int, int] | None:
        """Return the limit of pushes, how many may be made now, and in how many seconds one may; None for no limit."""

    def place(self, kind: Places) -> AbstractContextManager[None]:
        """Hold one of the key's places. Raises rate_limited if all are taken."""


class Admission:
    """A caller that was let in, and until when (Unix ms).

    `over` is set once that has ended: then, or before as by revoking the key. `allowance` is how much the key may ask
    for; None where there is no key, and so no limit.
    """

    __slots__ = ("__weakref__", "allowance", "over", "principal", "until")

    def __init__(self, principal: Principal, until: int = FOREVER, allowance: Allowance | None = None) -> None:
        self.principal = principal
        self.allowance = allowance
        self.until = until
        self.over = False


def unauthenticated(message: str, *, canonical: str | None = None) -> OjsError:
    """401."""
    return OjsError("unauthenticated", message, headers=_CHALLENGE, canonical=canonical)


def key_id_of(token: str) -> str | None:
    """The id in a token; None if it has not the form of one."""
    found = _TOKEN.fullmatch(token)
    return None if found is None else found[1]
