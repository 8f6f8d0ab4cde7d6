"""Headers that say what a key's own limits leave (docs/security.md; ojs-http-binding §18.1)."""

from __future__ import annotations

from typing import Final

from ojs_engine.access.admission import Allowance
from ojs_engine.base.errors import OjsError

Headers = tuple[tuple[str, str], ...]
_LIMIT: Final = "X-RateLimit-Limit"


def left_headers(allowance: Allowance, answered: Headers, now_ms: int) -> Headers:
    """Return what a key's limit of pushes leaves; none without one, or where an answer has those of another limit."""
    left = allowance.pushes_left()
    if left is None or any(name == _LIMIT for name, _ in answered):
        return ()
    return _headers(*left, now_ms)


def refusal_headers(error: OjsError, now_ms: int) -> Headers:
    """Return the headers of a refusal by a limit of a key; none for other refusals."""
    if error.code != "rate_limited" or not {"key", "allowed"} <= error.details.keys():
        return ()
    return _headers(error.details["allowed"], 0, error.retry_after or 0, now_ms)


def _headers(limit: int, remaining: int, wait_s: int, now_ms: int) -> Headers:
    reset = -(-now_ms // 1_000) + wait_s
    return ((_LIMIT, str(limit)), ("X-RateLimit-Remaining", str(remaining)), ("X-RateLimit-Reset", str(reset)))
