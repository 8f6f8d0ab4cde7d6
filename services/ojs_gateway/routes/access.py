"""Keys, and the sessions of browsers (docs/security.md)."""

from __future__ import annotations

from typing import Final

from ojs_core.access.allowances import MOST
from ojs_core.access.permissions import PERMISSIONS, ROLES
from ojs_core.api.common import SHORT
from ojs_core.api.route import Other, Parameter, Part, Route
from ojs_core.api.schema import FLAG, TEXT, TIME, body_of, either, list_of, number, one_of, text, whole
from ojs_core.wire.access import (
    MOST_OVERLAP_S,
    MOST_PATTERNS,
    KeyBody,
    KeyLimitsBody,
    KeyList,
    MadeKey,
    OneKey,
    RotationBody,
    SessionAnswer,
)
from ojs_gateway.handlers.keys import KeyHandlers
from ojs_gateway.handlers.sessions import SessionHandlers

_PATTERN: Final = text("A name, in which `*` stands for any characters.", most=255)
_IN: Final = either(number(0), TEXT, about="Seconds, or a duration.")

_LIMITS: Final = body_of(
    KeyLimitsBody,
    pushes_per_second=whole(0, MOST, "Jobs; one of a batch counts as one."),
    streams=whole(0, MOST, "Streams of events, progress and statistics, and WebSockets."),
    waiting=whole(0, MOST, "Fetches that wait for jobs, and requests that wait for a result."),
) | {"description": "What each gateway lets the key do. 0 is any number; left out: what the gateway's settings say."}

KEYS: Final = Part(
    "Keys",
    "Who may do what",
    (
        Route(
            KeyHandlers,
            KeyHandlers.list,
            ("GET /admin/keys listKeys",),
            "admin",
            "List keys",
            {200: KeyList},
            "Without their secrets.",
            query=(Parameter("all", FLAG, "Those that have ended, too."),),
        ),
        Route(
            KeyHandlers,
            KeyHandlers.create,
            ("POST /admin/keys createKey",),
            "admin",
            "Make a key",
            {201: MadeKey},
            "The answer has its token, which is told this once. The first key has to have the permission `admin`.",
            body=body_of(
                KeyBody,
                "name",
                "role",
                name=SHORT,
                role=one_of(*ROLES),
                permissions=list_of(one_of(*PERMISSIONS), about="Of the role `custom`."),
                queues=list_of(_PATTERN, 1, MOST_PATTERNS, "What it is narrowed to; left out: all."),
                types=list_of(_PATTERN, 1, MOST_PATTERNS, "The same for job types."),
                limits=_LIMITS,
                expires_at=TIME,
                expires_in=_IN,
            ),
            errors=("conflict",),
        ),
        Route(
            KeyHandlers,
            KeyHandlers.read,
            ("GET /admin/keys/{key_id} getKey",),
            "admin",
            "Read a key",
            {200: OneKey},
            errors=("not_found",),
        ),
        Route(
            KeyHandlers,
            KeyHandlers.rotate,
            ("POST /admin/keys/{key_id}/rotate rotateKey",),
            "admin",
            "Make a new key in place of one",
            {201: MadeKey},
            "The old one goes on for `overlap`, a day if it isn't named, and then ends.",
            body=body_of(RotationBody, overlap=_IN | {"description": f"Seconds, or a duration; at most {MOST_OVERLAP_S} s."}),
            errors=("not_found", "conflict"),
        ),
        Route(
            KeyHandlers,
            KeyHandlers.limit,
            ("PUT /admin/keys/{key_id}/limits limitKey",),
            "admin",
            "Change a key's limits",
            {200: OneKey},
            "All of them: what is left out is as the gateways' settings say. What is under way goes on.",
            body=_LIMITS,
            errors=("not_found", "conflict"),
        ),
        Route(
            KeyHandlers,
            KeyHandlers.revoke,
            ("DELETE /admin/keys/{key_id} revokeKey",),
            "admin",
            "Revoke a key",
            {200: OneKey},
            "It lets nobody in from now on, through any gateway; its sessions and streams end.",
            errors=("not_found",),
        ),
        Route(
            SessionHandlers,
            SessionHandlers.begin,
            ("POST /session createSession",),
            "key",
            "Sign a browser in",
            {201: SessionAnswer},
            "With a key in `Authorization`. The cookie lasts 12 hours, or as long as its key.",
            errors=("conflict",),
            http_only=True,
        ),
        Route(
            SessionHandlers,
            SessionHandlers.read,
            ("GET /session getSession",),
            "key",
            "Read who asks",
            {200: SessionAnswer},
            http_only=True,
        ),
        Route(
            SessionHandlers,
            SessionHandlers.end,
            ("DELETE /session deleteSession",),
            "nothing",
            "Sign a browser out",
            {204: Other(None, "Its cookie is taken back.")},
            http_only=True,
        ),
    ),
)
