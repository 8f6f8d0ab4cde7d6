"""The error envelope."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from ojs_core.base.errors import OjsError

_WIRE_CODES: Final = {"queue_full": "QUEUE_FULL", "invalid_retry_policy": "invalid_request"}
"""Codes of `ojs_core.base.errors.CODES` that travel under another one's name."""
_DOCS: Final = "https://openjobspec.org/errors/"

_encode: Final = msgspec.json.Encoder().encode


def wire_code(code: str) -> str:
    """The code that travels for one of `ojs_core.base.errors.CODES`."""
    return _WIRE_CODES.get(code, code)


def error_view(error: OjsError) -> dict[str, Any]:
    """An error as part of an answer that is about several things."""
    return {
        "code": wire_code(error.code),
        "message": error.message,
        "retryable": error.info.retryable,
        "details": error.details,
        "canonical_code": error.canonical,
    }


def error_body(error: OjsError, request_id: str) -> bytes:
    """`{"error": {…}}` with the members of every generation of the specification."""
    info = error.info
    docs_url = _DOCS + error.canonical
    body = error_view(error) | {
        "request_id": request_id,
        "hint": error.hint,
        "docs_url": docs_url,
        "doc_url": docs_url,
        "ojs_code": info.number,
    }
    if error.type is not None:
        body["type"] = error.type
    if (most := error.details.get("max_batch_size")) is not None:  # ojs-bulk-operations §9.1 has it beside the message
        body["max_batch_size"] = most
    if error.code == "queue_full":  # as has ojs-backpressure §7.1 what is known of the queue
        body |= error.details
    return _encode({"error": body})
