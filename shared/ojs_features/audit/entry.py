"""An entry of the audit, with the members of ojs-security §11.2."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ojs_api import words

Outcome = words.AuditOutcome

UNKNOWN: Final = "unknown"
"""The principal of a request whose key nobody knows, and the address of one that names none."""
SEVERAL: Final = "several"
"""The operation, or the address, of an entry that stands for many different ones."""


class Detail(Struct, frozen=True, kw_only=True):
    """What is particular to an entry. It never has anything of a request's body or query."""

    operation: str
    target: dict[str, str] = {}
    """What the path names: a job's id, a queue …"""
    binding: words.Binding = "http"
    permission: str | UnsetType = UNSET
    """What the operation asks of its caller."""
    principal_id: str | UnsetType = UNSET
    mechanism: words.Mechanism | UnsetType = UNSET
    key_prefix: str | UnsetType = UNSET
    """Of a key that wasn't taken: its id, which is no secret."""
    reason: str | UnsetType = UNSET
    """The code of the error that it was answered with."""
    status: int | UnsetType = UNSET
    user_agent: str | UnsetType = UNSET
    count: int | UnsetType = UNSET
    """How many acts it stands for, if they are several."""
    first_at: str | UnsetType = UNSET
    """When the first of them was; `timestamp` is that of the last."""
    operations: list[str] | UnsetType = UNSET
    """The operations of an entry that stands for several, 20 at most."""
    addresses: list[str] | UnsetType = UNSET
    """The addresses of an entry that stands for requests from several, 20 at most."""


class Entry(Struct, frozen=True, kw_only=True):
    """An act. `principal` is the name of who did it."""

    timestamp: str
    event_type: str
    principal: str
    source_ip: str
    correlation_id: str
    outcome: Outcome
    detail: Detail


encode: Final = msgspec.json.Encoder().encode
decode: Final = msgspec.json.Decoder(Entry).decode
