"""Keys of the API and their limits, and the sessions of browsers (docs/security.md)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from ojs_api.members import Duration, Moment, SentMoment, Text, one_of, wanted, whole
from ojs_api.operations import Operation, Other, Parameter, Permission, Subject
from ojs_api.words import Role

State = Literal["live", "expired", "revoked"]
MOST: Final = 1_000_000
"""The highest limit."""
MOST_PATTERNS: Final = 100
MOST_OVERLAP_S: Final = 30 * 86_400

_Number = int | float
_Pattern = Annotated[str, Meta(max_length=255, description="A name, in which `*` stands for any characters.")]
_SOME: Final = wanted(f"a list of 1 to {MOST_PATTERNS} names in which * may stand for more, or left out for all")
_Role = Annotated[str, one_of(Role)]
_Permissions = list[Annotated[str, one_of(Permission)]]


class KeyLimitsBody(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What each gateway lets the key do. 0 is any number; left out: what the gateway's settings say."""

    pushes_per_second: Annotated[_Number, whole(0, MOST), Meta(description="Jobs; one of a batch counts as one.")] | None = None
    streams: (
        Annotated[_Number, whole(0, MOST), Meta(description="Streams of events, progress and statistics, and WebSockets.")]
        | None
    ) = None
    waiting: (
        Annotated[_Number, whole(0, MOST), Meta(description="Fetches that wait for jobs, and requests that wait for a result.")]
        | None
    ) = None


class CreateKey(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """A new key."""

    name: Text
    role: Role
    permissions: Annotated[list[Permission], Meta(description="Of the role `custom`.")] | None = None
    queues: (
        Annotated[
            list[_Pattern],
            Meta(min_length=1, max_length=MOST_PATTERNS, description="What it is narrowed to; left out: all."),
            _SOME,
        ]
        | None
    ) = None
    types: (
        Annotated[
            list[_Pattern],
            Meta(min_length=1, max_length=MOST_PATTERNS, description="The same for job types."),
            _SOME,
        ]
        | None
    ) = None
    limits: KeyLimitsBody | None = None
    expires_at: SentMoment | None = None
    expires_in: Duration | None = None


class RotateKey(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """For how long the old key goes on."""

    overlap: Annotated[Duration, Meta(description=f"Seconds, or a duration; at most {MOST_OVERLAP_S} s.")] | None = None


class KeyLimits(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a key may ask of each gateway. 0 is any number; absent: what the gateway's settings say."""

    pushes_per_second: Annotated[int, Meta(description="Jobs; one of a batch counts as one.")] | None = None
    streams: Annotated[int, Meta(description="Streams of events, progress and statistics, and WebSockets.")] | None = None
    waiting: Annotated[int, Meta(description="Fetches that wait for jobs, and requests that wait for a result.")] | None = None


AS_SET: Final = KeyLimits()
"""The limits of a key that has none of its own."""


class Key(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A key without its secret."""

    id: str
    name: str
    role: _Role
    permissions: _Permissions
    queues: Annotated[list[str], Meta(description="What it is narrowed to; absent: all.")] = []
    types: Annotated[list[str], Meta(description="The same for job types.")] = []
    limits: KeyLimits = AS_SET
    state: Annotated[str, one_of(State)]
    created_at: Moment
    expires_at: Moment | None = None
    revoked_at: Moment | None = None
    used_at: Annotated[Moment, Meta(description="When it was used last, to a quarter of an hour.")] | None = None
    replaced_by: Annotated[str, Meta(description="The key that took its place.")] | None = None
    webhooks: Annotated[list[str], Meta(description="Subscriptions that its end paused.")] = []
    crons: Annotated[list[str], Meta(description="Cron entries of a revoked key, which go on.")] = []


class OneKey(Struct, frozen=True):
    """The answer about one key."""

    key: Key


class MadeKey(Struct, frozen=True):
    """A new key. `token` is what clients send; it is told here and never again."""

    key: Key
    token: Annotated[str, Meta(description="To be sent as `Authorization: Bearer …`. It isn't shown again.")]

    def __repr__(self) -> str:
        return f"MadeKey({self.key.id})"


class KeyList(Struct, frozen=True):
    """Keys by the time they were made."""

    keys: list[Key]


class Session(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who asks, and what that may do. `signed_in` is whether by a session; `open` whether nobody needs a key."""

    signed_in: bool
    open: bool
    id: str
    name: str
    role: _Role
    permissions: _Permissions
    queues: list[str] = []
    types: list[str] = []
    expires_at: Moment | None = None


# fmt: off
LIST: Final = Operation(
    "listKeys", "GET /admin/keys", "admin", "List keys",
    {200: KeyList}, "Without their secrets.", query=(Parameter("all", bool, "Those that have ended, too."),),
)
CREATE: Final = Operation(
    "createKey", "POST /admin/keys", "admin", "Make a key", {201: MadeKey},
    "The answer has its token, which is told this once. The first key has to have the permission `admin`.",
    body=CreateKey, errors=("conflict",),
)
GET: Final = Operation(
    "getKey", "GET /admin/keys/{key_id}", "admin", "Read a key",
    {200: OneKey}, errors=("not_found",),
)
ROTATE: Final = Operation(
    "rotateKey", "POST /admin/keys/{key_id}/rotate", "admin", "Make a new key in place of one",
    {201: MadeKey}, "The old one goes on for `overlap`, a day if it isn't named, and then ends.",
    body=RotateKey, errors=("not_found", "conflict"),
)
LIMIT: Final = Operation(
    "limitKey", "PUT /admin/keys/{key_id}/limits", "admin", "Change a key's limits", {200: OneKey},
    "All of them: what is left out is as the gateways' settings say. What is under way goes on.",
    body=KeyLimitsBody, errors=("not_found", "conflict"),
)
REVOKE: Final = Operation(
    "revokeKey", "DELETE /admin/keys/{key_id}", "admin", "Revoke a key", {200: OneKey},
    "It lets nobody in from now on, through any gateway; its sessions and streams end.", errors=("not_found",),
)
BEGIN_SESSION: Final = Operation(
    "createSession", "POST /session", "key", "Sign a browser in", {201: Session},
    "With a key in `Authorization`. The cookie lasts 12 hours, or as long as its key.",
    errors=("conflict",), http_only=True,
)
GET_SESSION: Final = Operation("getSession", "GET /session", "key", "Read who asks", {200: Session}, http_only=True)
END_SESSION: Final = Operation(
    "deleteSession", "DELETE /session", "nothing", "Sign a browser out",
    {204: Other(None, "Its cookie is taken back.")}, http_only=True,
)
KEYS: Final = Subject(
    "Keys", "Who may do what",
    (LIST, CREATE, GET, ROTATE, LIMIT, REVOKE, BEGIN_SESSION, GET_SESSION, END_SESSION),
)
