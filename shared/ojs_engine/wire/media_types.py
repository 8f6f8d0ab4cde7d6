"""The media types that requests and answers have."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

OJS_TYPE: Final = "application/openjobspec+json"
EVENT_STREAM_TYPE: Final = "text/event-stream"
JSON_TYPE: Final = "application/json"


@lru_cache(maxsize=64)
def accepts_media_type(content_type: str) -> bool:
    """Whether a request body of this `Content-Type` is read: JSON under any name (RFC 6839). Parameters do not matter."""
    essence = content_type.partition(";")[0].strip().lower()
    return essence == JSON_TYPE or (essence.startswith("application/") and essence.endswith("+json"))
