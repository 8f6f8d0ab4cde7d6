"""Signed-in sessions: what a browser shows in place of a key (docs/adr/072).

A session is sealed with what its own key's record has, so every gateway can check it, nothing is stored for it, and it ends
with its key.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Final, NamedTuple

from ojs_engine.base.numbers import whole_number
from ojs_features.access.keys import Key

LASTS_S: Final = 12 * 3_600
MOST_ENDED: Final = 100
"""Ended sessions that a key's record names."""
_MARK: Final = 16
_PURPOSE: Final = b"ojs session 1"
_DIGITS: Final = 12


class Session(NamedTuple):
    """What a sealed session says, before its seal is looked at."""

    key_id: str
    ends_at_s: int
    seal: str

    @property
    def mark(self) -> str:
        """The name under which it is known as ended, which is no session by itself."""
        return f"{self.ends_at_s}.{self.seal[:_MARK]}"


def with_ended(marks: Sequence[str], mark: str, now_ms: int) -> tuple[str, ...]:
    """Return the marks of ended sessions with one more, without those whose time is over by now."""
    left = [one for one in marks if one != mark and end_of(one) * 1_000 > now_ms]
    return (*left[1 - MOST_ENDED :], mark)


def end_of(mark: str) -> int:
    """Return the Unix seconds at which a session would have ended by itself."""
    return whole_number(mark.partition(".")[0], _DIGITS) or 0


def sealed(key: Key, now_ms: int) -> tuple[str, int]:
    """A session of a key as text for a cookie, and when it ends in Unix seconds: no later than its key."""
    ends_at_s = now_ms // 1_000 + LASTS_S
    if key.expires_at is not None:
        ends_at_s = min(ends_at_s, key.expires_at // 1_000)
    return f"{key.id}.{ends_at_s}.{_seal(key, ends_at_s)}", ends_at_s


def opened(text: str) -> Session | None:
    """What a cookie says; None for what is no session."""
    parts = text.split(".")
    if len(parts) != len(Session._fields):
        return None
    ends_at_s = whole_number(parts[1], _DIGITS)
    return None if ends_at_s is None else Session(parts[0], ends_at_s, parts[2])


def is_sealed(session: Session, key: Key) -> bool:
    """Whether a session was sealed for the key."""
    return hmac.compare_digest(session.seal.encode(errors="replace"), _seal(key, session.ends_at_s).encode())


def _seal(key: Key, ends_at_s: int) -> str:
    own = hmac.digest(bytes.fromhex(key.hash), _PURPOSE, "sha256")
    return hmac.digest(own, f"{key.id}.{ends_at_s}".encode(), hashlib.sha256).hex()
