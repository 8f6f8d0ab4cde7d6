"""Job ids and request ids."""

from __future__ import annotations

import hashlib
import re
from random import getrandbits
from typing import Final

from uuid6 import UUID

from ojs_engine.base.errors import not_found

_JOB_ID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.ASCII)
_REQUEST_ID: Final = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}", re.ASCII)

is_job_id = _JOB_ID.fullmatch


def new_job_id(now: int) -> str:
    """A UUIDv7 for the Unix millisecond `now`."""
    return _uuid7(now, getrandbits(74))


def derived_job_id(at: int, *origin: str) -> str:
    """The UUIDv7 of a job that is created by a record, not by a client: whoever creates it again meets the first one.

    Its time is the Unix millisecond `at`, its other bits are a hash of `at` and of where it comes from.
    """
    digest = hashlib.blake2b("\0".join((str(at), *origin)).encode(), digest_size=10).digest()
    return _uuid7(at, int.from_bytes(digest))


def _uuid7(at: int, bits: int) -> str:
    """The lowest 74 of `bits` fill what the time and the marks of the version leave free."""
    return str(UUID(int=at << 80 | (bits >> 62 & 0xFFF) << 64 | bits & (1 << 62) - 1, version=7))


def job_id_of(text: str) -> str:
    """The id of an existing job as a client names it, in lower case; what can't be an id is `not_found`."""
    lowered = text.lower()
    if _JOB_ID.fullmatch(lowered) is None:
        raise not_found("job", text[:64])
    return lowered


def new_request_id() -> str:
    """`req_` and 128 random bits: every request needs one, and nobody sorts by it."""
    return f"req_{getrandbits(128):032x}"


def request_id_of(sent: str | None) -> str:
    """The client's request id where it is fit for headers and logs, else a new one."""
    if sent is not None and _REQUEST_ID.fullmatch(sent):
        return sent
    return new_request_id()
