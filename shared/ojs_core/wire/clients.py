"""The one table of clients that need something else than the specification says, told apart by their request headers.

- Asks for plain JSON (`Accept` names application/json and not the OJS type): gets `application/json` (ojs-json-format §2.2).
- Python SDK (`User-Agent: python-httpx/…`): gets the OJS type with `; profile="application/json"`, because it throws away the
  body of an answer whose type lacks these words.
- Go CLI (`User-Agent: Go-http-client/…` without `OJS-Version`): gets a job's members beside `job`, too, because it does not
  unwrap.
  Where it names the OJS type in `Accept`, which others of that agent don't, it also gets totals as objects, a limit's
  concurrency as a number and points of time series as `data_points`, too.
- SDKs (any request with `OJS-Version`): get a queue's name where the member `queue` of queue statistics, pause and resume is
  an object otherwise, because the Go SDK decodes a string there.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

OJS_TYPE: Final = "application/openjobspec+json"
JSON_TYPE: Final = "application/json"
_PROFILED: Final = f'{OJS_TYPE}; profile="{JSON_TYPE}"'
_MAJOR_1: Final = re.compile(r"1(\.\d{1,6}){0,2}(-[0-9A-Za-z.-]{1,32})?", re.ASCII)


class Dialect(NamedTuple):
    """How to answer one client."""

    content_type: str
    flat_job: bool
    """Repeat a job's members beside `job`."""
    supported: bool
    """Whether the `OJS-Version` it asks for is one of ours: any 1.x, or none named."""
    plain: bool = False
    """The Go CLI, certainly: it reads some members in another shape."""
    queue_as_text: bool = False
    """Where a queue is an object with its numbers, send its name instead."""


@lru_cache(maxsize=256)
def dialect_of(user_agent: str | None, accept: str | None, ojs_version: str | None) -> Dialect:
    """The dialect of a client by its `User-Agent`, `Accept` and `OJS-Version`."""
    agent = user_agent or ""
    accepted = (accept or "").lower()
    content_type = OJS_TYPE
    if OJS_TYPE not in accepted and JSON_TYPE in accepted:
        content_type = JSON_TYPE
    elif agent.startswith("python-httpx/"):
        content_type = _PROFILED
    go = ojs_version is None and agent.startswith("Go-http-client/")
    return Dialect(
        content_type,
        flat_job=go,
        plain=go and OJS_TYPE in accepted,
        supported=ojs_version is None or _MAJOR_1.fullmatch(ojs_version.strip()) is not None,
        queue_as_text=ojs_version is not None,
    )


@lru_cache(maxsize=64)
def accepts_media_type(content_type: str) -> bool:
    """Whether a request body of this `Content-Type` is read: JSON under any name (RFC 6839). Parameters do not matter."""
    essence = content_type.partition(";")[0].strip().lower()
    return essence == JSON_TYPE or (essence.startswith("application/") and essence.endswith("+json"))
