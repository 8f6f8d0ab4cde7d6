"""Keys and sessions as clients ask for them and read them (docs/security.md)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict

from ojs_core.access.allowances import BY_SETTINGS, MOST, KeyLimits
from ojs_core.access.keys import Key, NewKey, make_key
from ojs_core.access.permissions import PERMISSIONS, ROLES, Permission, Role
from ojs_core.access.principal import Principal
from ojs_core.base.errors import invalid
from ojs_core.base.fields import choice, duration_ms, integer, short_text, shown, struct_of, text_list, timestamp
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.base.times import format_ms
from ojs_core.wire.members import Timestamp, given
from ojs_core.wire.members import timestamp as timestamp_of

T = TypeVar("T")

MOST_PATTERNS: Final = 100
MOST_OVERLAP_S: Final = 30 * 86_400
DEFAULT_OVERLAP_MS: Final = 24 * 3_600_000
"""How long an old key goes on beside the one that it was rotated to (SEC-021)."""
_QUEUES: Final = re.compile(r"[a-z0-9*][a-z0-9.\-*]*", re.ASCII)
_TYPES: Final = re.compile(r"[a-zA-Z*][a-zA-Z0-9_.\-*]*", re.ASCII)


class KeyLimitsBody(Struct, frozen=True, forbid_unknown_fields=True):
    pushes_per_second: int | float | None = None
    streams: int | float | None = None
    waiting: int | float | None = None


class KeyBody(Struct, frozen=True, forbid_unknown_fields=True):
    name: str | None = None
    role: str | None = None
    permissions: list[str] | None = None
    queues: list[str] | None = None
    types: list[str] | None = None
    limits: KeyLimitsBody | None = None
    expires_at: str | None = None
    expires_in: str | int | float | None = None


class RotationBody(Struct, frozen=True, forbid_unknown_fields=True):
    overlap: str | int | float | None = None


class KeyLimitsAnswer(Struct, kw_only=True, omit_defaults=True):
    """What a key may ask of each gateway. 0 is any number; absent: what the gateway's settings say."""

    pushes_per_second: int | UnsetType = UNSET
    streams: int | UnsetType = UNSET
    waiting: int | UnsetType = UNSET


class KeyAnswer(Struct, kw_only=True, omit_defaults=True):
    """A key without its secret.

    `used_at` is right to a quarter of an hour. `queues` and `types` are what it is narrowed to; absent: everything.
    """

    id: str
    name: str
    role: Role
    permissions: list[Permission]
    queues: list[str] | UnsetType = UNSET
    types: list[str] | UnsetType = UNSET
    limits: KeyLimitsAnswer | UnsetType = UNSET
    state: Literal["live", "expired", "revoked"]
    created_at: Timestamp
    expires_at: Timestamp | UnsetType = UNSET
    revoked_at: Timestamp | UnsetType = UNSET
    used_at: Timestamp | UnsetType = UNSET
    replaced_by: str | UnsetType = UNSET
    webhooks: Annotated[list[str], Meta(description="Subscriptions that its end paused.")] | UnsetType = UNSET
    crons: Annotated[list[str], Meta(description="Cron entries of a revoked key, which go on.")] | UnsetType = UNSET


class OneKey(Struct):
    """The answer about one key."""

    key: KeyAnswer


class MadeKey(Struct):
    """A new key. `token` is what clients send; it is told here and never again."""

    key: KeyAnswer
    token: Annotated[str, Meta(description="To be sent as `Authorization: Bearer …`.")]


class KeyList(Struct):
    """Keys by the time they were made."""

    keys: list[KeyAnswer]


class SessionAnswer(Struct, kw_only=True, omit_defaults=True):
    """Who asks, and what that may do. `signed_in` is whether by a session; `open` whether nobody needs a key."""

    signed_in: bool
    open: bool
    id: str
    name: str
    role: Role
    permissions: list[Permission]
    queues: list[str] | UnsetType = UNSET
    types: list[str] | UnsetType = UNSET
    expires_at: Timestamp | UnsetType = UNSET


def parse_key(body: bytes, now: int, limits: PayloadLimits) -> NewKey:
    """`{name, role, permissions?, queues?, types?, limits?, expires_at? or expires_in?}` as a key with its token.

    Raises invalid_request.
    """
    sent = struct_of(body, KeyBody)
    name = short_text(_required(sent.name, "name"), "name", limits)
    role = choice(_required(sent.role, "role"), "role", tuple(ROLES))
    permissions = [choice(one, f"permissions[{at}]", PERMISSIONS) for at, one in enumerate(sent.permissions or ())]
    if (role == "custom") is not bool(permissions):
        what = "permissions must be named for the role custom" if role == "custom" else "only the role custom has permissions"
        raise invalid("permissions", f"{what}: some of {', '.join(PERMISSIONS)}")
    return make_key(
        name,
        role,
        permissions=permissions,
        queues=_patterns(sent.queues, "queues", _QUEUES, limits),
        types=_patterns(sent.types, "types", _TYPES, limits),
        limits=BY_SETTINGS if sent.limits is None else _limits(sent.limits, "limits."),
        expires_at=_end(sent, now, limits),
    )


def parse_rotation(body: bytes, limits: PayloadLimits) -> int:
    """`{overlap?}`: for how many milliseconds the old key goes on. Raises invalid_request."""
    sent = struct_of(body, RotationBody)
    if sent.overlap is None:
        return DEFAULT_OVERLAP_MS
    found = duration_ms(sent.overlap, "overlap", 1_000, limits, zero=True)
    if found > MOST_OVERLAP_S * 1_000:
        raise invalid("overlap", f"overlap must be at most {MOST_OVERLAP_S} seconds, not {shown(sent.overlap)}")
    return found


def parse_limits(body: bytes) -> KeyLimits:
    """`{pushes_per_second?, streams?, waiting?}`. Raises invalid_request."""
    return _limits(struct_of(body, KeyLimitsBody))


def key_answer(key: Key, now: int) -> KeyAnswer:
    """A key as it may be shown."""
    principal = key.principal
    return KeyAnswer(
        id=key.id,
        name=key.name,
        role=key.role,
        permissions=permissions_of(principal),
        queues=list(key.queues) or UNSET,
        types=list(key.types) or UNSET,
        limits=UNSET if key.limits == BY_SETTINGS else KeyLimitsAnswer(**_set(key.limits)),
        state="revoked" if key.revoked_at is not None else "expired" if key.ended(now) else "live",
        created_at=format_ms(key.created_at),
        expires_at=timestamp_of(key.expires_at),
        revoked_at=timestamp_of(key.revoked_at),
        used_at=timestamp_of(key.used_at),
        replaced_by=given(key.replaced_by),
    )


def session_answer(principal: Principal, *, signed_in: bool, is_open: bool, ends_at: int | None = None) -> SessionAnswer:
    """Who asks; `ends_at` is when the session does."""
    return SessionAnswer(
        signed_in=signed_in,
        open=is_open,
        id=principal.id,
        name=principal.name,
        role=principal.role,
        permissions=permissions_of(principal),
        queues=list(principal.queues) or UNSET,
        types=list(principal.types) or UNSET,
        expires_at=timestamp_of(ends_at),
    )


def permissions_of(principal: Principal) -> list[Permission]:
    """In their usual order."""
    return [one for one in PERMISSIONS if principal.may(one)]


def _required(value: T | None, field: str) -> T:
    if value is None:
        raise invalid(field, f"{field} is missing")
    return value


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


def _end(sent: KeyBody, now: int, limits: PayloadLimits) -> int | None:
    if sent.expires_at is not None and sent.expires_in is not None:
        raise invalid("expires_in", "expires_at and expires_in say the same: send one of them")
    if sent.expires_in is not None:
        return now + duration_ms(sent.expires_in, "expires_in", 1_000, limits)
    end = timestamp(sent.expires_at, "expires_at")
    if end is not None and end <= now:
        raise invalid("expires_at", f"expires_at must be to come, not {shown(sent.expires_at)}")
    return end
