"""Who reads an answer, told by the request's headers (docs/clients.md). No guard depends on it."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from ojs_engine.wire.dialects.readers import Dialect, Reader
from ojs_engine.wire.media_types import EVENT_STREAM_TYPE, JSON_TYPE, OJS_TYPE

_PROFILED: Final = f'{OJS_TYPE}; profile="{JSON_TYPE}"'
"""The Python SDK throws away the body of an answer whose type lacks these words. All SDKs name `OJS-Version`, and the others
don't look at the type."""
_MAJOR_1: Final = re.compile(r"1(\.\d{1,6}){0,2}(-[0-9A-Za-z.-]{1,32})?", re.ASCII)


@lru_cache(maxsize=256)
def dialect_of(user_agent: str | None, accept: str | None, ojs_version: str | None, content_type: str | None) -> Dialect:
    """The dialect of a client by its `User-Agent`, `Accept`, `OJS-Version` and `Content-Type`.

    `Accept` that names application/json and not the OJS type gets application/json (ojs-json-format §2.2).
    """
    agent = user_agent or ""
    accepted = (accept or "").lower()
    answered = OJS_TYPE
    if OJS_TYPE not in accepted and JSON_TYPE in accepted:
        answered = JSON_TYPE
    elif ojs_version is not None:
        answered = _PROFILED
    reader: Reader = "standard"
    if ojs_version is not None:
        reader = "sdk"
    elif agent.startswith("Go-http-client/") and (
        EVENT_STREAM_TYPE in accepted or (OJS_TYPE in accepted and content_type is not None)
    ):
        # What else is written in Go may ask for plain JSON, and says of a request without a body nothing about its type.
        reader = "cli"
    elif agent.startswith("Mozilla/"):
        reader = "ui"
    return Dialect(answered, reader, ojs_version is None or _MAJOR_1.fullmatch(ojs_version.strip()) is not None)
