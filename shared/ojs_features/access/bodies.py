"""Keys and sessions as clients ask for them and read them (docs/security.md)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from ojs_api import keys as contract
from ojs_api.keys import AS_SET, MOST, MOST_OVERLAP_S, MOST_PATTERNS, CreateKey, KeyLimitsBody, RotateKey, Session
from ojs_engine.access.permissions import PERMISSIONS
from ojs_engine.access.principal import Principal
from ojs_engine.base.errors import invalid
from ojs_engine.base.fields import duration_ms, integer, short_text, shown, text_list, timestamp
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.wire.members import moment
from ojs_engine.wire.requests import request_of
from ojs_features.access.allowances import BY_SETTINGS, KeyLimits
from ojs_features.access.keys import Key, NewKey, make_key

DEFAULT_OVERLAP_MS: Final = 24 * 3_600_000
"""How long an old key goes on beside the one that it was rotated to (SEC-021)."""
_QUEUES: Final = re.compile(r"[a-z0-9*][a-z0-9.\-*]*", re.ASCII)
_TYPES: Final = re.compile(r"[a-zA-Z*][a-zA-Z0-9_.\-*]*", re.ASCII)


def parse_key(body: bytes, now: int, limits: PayloadLimits) -> NewKey:
    """`{name, role, permissions?, queues?, types?, limits?, expires_at? or expires_in?}` as a key with its token.

    Raises invalid_request.
    """
    sent = request_of(body, CreateKey)
    if (sent.role == "custom") is not bool(sent.permissions):
        custom = sent.role == "custom"
        what = "permissions must be named for the role custom" if custom else "only the role custom has permissions"
        raise invalid("permissions", f"{what}: some of {', '.join(PERMISSIONS)}")
    return make_key(
        short_text(sent.name, "name", limits),
        sent.role,
        permissions=sent.permissions or [],
        queues=_patterns(sent.queues, "queues", _QUEUES, limits),
        types=_patterns(sent.types, "types", _TYPES, limits),
        limits=BY_SETTINGS if sent.limits is None else _limits(sent.limits, "limits."),
        expires_at=_end(sent, now, limits),
    )


def parse_rotation(body: bytes, limits: PayloadLimits) -> int:
    """`{overlap?}`: for how many milliseconds the old key goes on. Raises invalid_request."""
    sent = request_of(body, RotateKey)
    if sent.overlap is None:
        return DEFAULT_OVERLAP_MS
    found = duration_ms(sent.overlap, "overlap", 1_000, limits, zero=True)
    if found > MOST_OVERLAP_S * 1_000:
        raise invalid("overlap", f"overlap must be at most {MOST_OVERLAP_S} seconds, not {shown(sent.overlap)}")
    return found


def parse_limits(body: bytes) -> KeyLimits:
    """`{pushes_per_second?, streams?, waiting?}`. Raises invalid_request."""
    return _limits(request_of(body, KeyLimitsBody))


def key_answer(key: Key, now: int) -> contract.Key:
    """A key as it may be shown."""
    principal = key.principal
    return contract.Key(
        id=key.id,
        name=key.name,
        role=key.role,
        permissions=permissions_of(principal),
        queues=list(key.queues),
        types=list(key.types),
        limits=AS_SET if key.limits == BY_SETTINGS else contract.KeyLimits(**asdict(key.limits)),
        state="revoked" if key.revoked_at is not None else "expired" if key.ended(now) else "live",
        created_at=moment(key.created_at),
        expires_at=moment(key.expires_at),
        revoked_at=moment(key.revoked_at),
        used_at=moment(key.used_at),
        replaced_by=key.replaced_by,
    )


def session_answer(principal: Principal, *, signed_in: bool, is_open: bool, ends_at: int | None = None) -> Session:
    """Who asks; `ends_at` is when the session does."""
    return Session(
        signed_in=signed_in,
        open=is_open,
        id=principal.id,
        name=principal.name,
        role=principal.role,
        permissions=permissions_of(principal),
        queues=list(principal.queues),
        types=list(principal.types),
        expires_at=moment(ends_at),
    )


def permissions_of(principal: Principal) -> list[str]:
    """In their usual order."""
    return [one for one in PERMISSIONS if principal.may(one)]


def _limits(sent: KeyLimitsBody, path: str = "") -> KeyLimits:
    return KeyLimits(**{name: integer(value, f"{path}{name}", 0, MOST) for name, value in _set(sent).items()})


def _set(struct: Struct) -> dict[str, Any]:
    return {name: value for name, value in asdict(struct).items() if value is not None}


def _patterns(sent: Any, field: str, form: re.Pattern[str], limits: PayloadLimits) -> Sequence[str]:
    found = text_list(sent or [], field, MOST_PATTERNS, limits)
    if sent is not None and not found:
        raise invalid(field, f"{field} must name at least one pattern, or be left out for all")
    for at, pattern in enumerate(found):
        if form.fullmatch(pattern) is None:
            raise invalid(f"{field}[{at}]", f"{field}[{at}] must be a name in which * may stand for more, not {shown(pattern)}")
    return found


def _end(sent: CreateKey, now: int, limits: PayloadLimits) -> int | None:
    if sent.expires_at is not None and sent.expires_in is not None:
        raise invalid("expires_in", "expires_at and expires_in say the same: send one of them")
    if sent.expires_in is not None:
        return now + duration_ms(sent.expires_in, "expires_in", 1_000, limits)
    end = timestamp(sent.expires_at, "expires_at")
    if end is not None and end <= now:
        raise invalid("expires_at", f"expires_at must be to come, not {shown(sent.expires_at)}")
    return end
