"""An entry of the audit, with the members of ojs-security §11.2."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from msgspec import Struct

Outcome = Literal["success", "failure"]

UNKNOWN: Final = "unknown"
"""The principal of a request whose key nobody knows, and the address of one that names none."""
SEVERAL: Final = "several"
"""The same of an entry that stands for many different ones."""


class Detail(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is particular to an entry. It never has anything of a request's body or query."""

    operation: str
    permission: str = ""
    """What the operation asks of its caller."""
    target: dict[str, str] = {}
    """What the path names: a job's id, a queue …"""
    binding: Literal["http", "nats"] = "http"
    principal_id: str = ""
    mechanism: Literal["api_key", "session", ""] = ""
    key_prefix: str = ""
    """Of a key that wasn't taken: its id, which is no secret."""
    reason: str = ""
    """The code of the error that it was answered with."""
    status: int = 0
    user_agent: str = ""
    count: int = 1
    """How many acts it stands for."""
    first_at: str = ""
    """When the first of several was; `timestamp` is that of the last."""


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
