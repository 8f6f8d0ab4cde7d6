"""The error envelope."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, Struct, UnsetType

from ojs_api.members import ItemError
from ojs_engine.base.errors import CODES, OjsError
from ojs_engine.domain.job import EMPTY_OBJECT
from ojs_engine.wire.members import Count, encode, given, members, written

_WIRE_CODES: Final = {
    "queue_full": "QUEUE_FULL",
    "extension_not_supported": "EXTENSION_NOT_SUPPORTED",
    "invalid_retry_policy": "invalid_request",
}
"""Codes of `ojs_engine.base.errors.CODES` that travel under another one's name."""
_OF_A_FULL_QUEUE: Final = ("queue", "depth", "bound", "strategy")
_DOCS: Final = "https://openjobspec.org/errors/"


def wire_code(code: str) -> str:
    """The code that travels for one of `ojs_engine.base.errors.CODES`."""
    return _WIRE_CODES.get(code, code)


_Code = Annotated[
    str,
    Meta(
        description="What went wrong, for programs.",
        extra_json_schema={"examples": sorted({wire_code(code) for code in CODES})},
    ),
]
_Details = Annotated[dict[str, Any], Meta(description="More, by the code: `field`, `job_id`, `max_bytes` and others.")]
_Canonical = Annotated[str, Meta(description="The specification's name for it, or a more exact one.")]
_Message = Annotated[str, Meta(description="What went wrong, for people: the field, the limit, and what was sent.")]


class Refusal(Struct, kw_only=True, omit_defaults=True):
    """Why a request was refused."""

    code: _Code
    message: _Message
    retryable: bool
    details: _Details
    canonical_code: _Canonical
    request_id: Annotated[str, Meta(description="As in the header X-Request-Id.")]
    hint: Annotated[str, Meta(description="What to do about it.")]
    docs_url: str
    ojs_code: Annotated[
        str,
        Meta(
            pattern="^OJS-[0-9]{4}$",
            description="The number of canonical_code in the catalog, or that of the nearest code there.",
        ),
    ]
    type: str | UnsetType = UNSET
    max_batch_size: Count | UnsetType = UNSET
    """Of a request with too many items, beside the message (ojs-bulk-operations §9.1)."""
    queue: str | UnsetType = UNSET
    """Of a full queue, as are the next three (ojs-backpressure §7.1)."""
    depth: Count | UnsetType = UNSET
    bound: Count | UnsetType = UNSET
    strategy: str | UnsetType = UNSET
    extension: str | UnsetType = UNSET
    """That isn't supported (ojs-extension-lifecycle §8.3)."""


class ErrorAnswer(Struct):
    """The answer to a request that was refused."""

    error: Refusal


def error_view(error: OjsError) -> ItemError:
    """Return an error as part of an answer that is about several things."""
    return ItemError(
        code=wire_code(error.code),
        message=error.message,
        retryable=error.retryable,
        details=error.details or written(EMPTY_OBJECT),
        canonical_code=error.canonical,
    )


def error_body(error: OjsError, request_id: str) -> bytes:
    """`{"error": {…}}`."""
    refusal = Refusal(
        **members(error_view(error)),
        request_id=request_id,
        hint=error.hint,
        docs_url=_DOCS + error.canonical,
        ojs_code=error.number,
        type=given(error.type),
        max_batch_size=error.details.get("max_batch_size", UNSET),
        extension=error.details.get("extension", UNSET),
    )
    if error.code == "queue_full":
        for name in _OF_A_FULL_QUEUE:
            setattr(refusal, name, error.details.get(name, UNSET))
    return encode(ErrorAnswer(refusal))
