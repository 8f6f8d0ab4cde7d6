"""Redaction: an answer without what jobs carry, for who may see jobs and not their payloads (docs/adr/072).

A member is hidden by its name, wherever it stands, so that a new answer with the same names is covered. It is left out, and
`redacted` beside it names it. Everything else stays byte by byte.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec
from msgspec import Raw

from ojs_engine.base.fields import is_extension
from ojs_engine.domain.members import CARRIED, shown_in
from ojs_engine.wire.members import encode

REDACTED: Final = "redacted"
_CARRIED: Final = CARRIED | {"backtrace", "progress_message", "stack_trace", "unique_key"}
_FINGERPRINT: Final = "unique_key"
"""A hash without salt: who has it finds short arguments by trying."""
_SAY_WHAT: Final = ("event", "phase", "cause")
"""Members that say of an entry of a job's log what happened."""
_SAID: Final = frozenset({"reason", "error", "message"})
"""Texts of those who cancel a job or fail a workflow's step."""
_EVENT_TYPES: Final = ("type", "event_type", "event")
_ENVELOPES: Final = frozenset({"source", "event_type", "event", "channel"})
"""One of these is beside `data` where that is what an event tells, whose members are looked at one by one."""
_EXTENDED: Final = (
    {"name", "state", "created_at", "metadata"},
    {"index", "state", "depends_on"},
    {"expression", "overlap_policy", "job_template"},
    {"url", "events"},
)
"""How workflows, their steps, cron entries and webhooks are known: what clients have added to one is hidden."""
_PROGRESS: Final = frozenset({"progress", "percentage"})
_OF_ERRORS: Final = frozenset({"message", "details"})
_KNOWN: Final = shown_in("always", "change", "fetch", "detail") | {
    "deduplicated",
    "enqueued",
    "job",
    "options",
    "retry_policy",
    "total_attempts",
    "warnings",
}
"""Members of jobs, in any dialect, that clients haven't added."""

_decode_object: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_list: Final = msgspec.json.Decoder(list[Raw]).decode


def hidden(names: AbstractSet[str]) -> set[str]:
    """The members that are hidden of an object with these names."""
    found = set(names & _CARRIED)
    if names >= {"code", "type", "message"} and "hint" not in names:  # a failed attempt; refusals have a hint
        found |= names & _OF_ERRORS
    if names & _PROGRESS or "progress_message" in names:
        found |= names & {"message"}
    if names >= {"code", "type", "error"}:  # a failed attempt in other words
        found.add("error")
    found |= names & {"last_error"}
    if names >= {"job_id", "data"} and not names & _ENVELOPES:
        found.add("data")
    if names >= {"specversion", "args", "state"}:
        found |= names - _KNOWN
    elif any(names >= own for own in _EXTENDED):
        found |= set(filter(is_extension, names))
    return found


def redacted(body: bytes) -> bytes:
    """A JSON document without what jobs carry; what is no JSON stays as it is."""
    try:
        return bytes(_shown(Raw(body))) if body[:1] in {b"{", b"["} else body
    except msgspec.DecodeError:
        return body


def without_fingerprint(details: dict[str, Any]) -> dict[str, Any]:
    """Return the details of a refusal without the fingerprint of a job that was pushed by somebody else."""
    if _FINGERPRINT not in details:
        return details
    return {name: value for name, value in details.items() if name != _FINGERPRINT} | {REDACTED: [_FINGERPRINT]}


def _shown(value: Raw, *, says: bool = False) -> Raw:
    """Return a value as it is shown; `says` of one that has the words of a cancellation or of a step's failure."""
    first = bytes(memoryview(value)[:1])
    if first == b"{":
        members = _decode_object(value)
        gone = hidden(members.keys())
        if says or _has(members, _SAY_WHAT, b'"cancelled"'):
            gone |= members.keys() & _SAID
        within = "data" if _has(members, _EVENT_TYPES, b'"job.cancelled"') else "error" if "step_id" in members else ""
        shown = {
            name: _shown(one, says=name == within)
            for name, one in members.items()
            if name not in gone or _is_no_text(name, one)
        }
        left_out = sorted(members.keys() - shown.keys())
        return Raw(encode({**shown, REDACTED: left_out} if left_out else shown))
    if first == b"[":
        return Raw(encode([_shown(one) for one in _decode_list(value)]))
    return value


def _has(members: dict[str, Raw], names: tuple[str, ...], text: bytes) -> bool:
    return any(name in members and bytes(members[name]) == text for name in names)


def _is_no_text(name: str, value: Raw) -> bool:
    """Whether it is an error with members of its own, which are looked at one by one."""
    return name in {"error", "last_error"} and bytes(memoryview(value)[:1]) == b"{"
