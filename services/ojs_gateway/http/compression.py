"""Compressed bodies: those of requests, unpacked no further than the limit, and those of large answers."""

from __future__ import annotations

import gzip
import zlib
from functools import lru_cache
from typing import Final

from ojs_engine.api.large_bodies import LARGE_BYTES, LargeBodies
from ojs_engine.base.errors import OjsError
from ojs_engine.base.fields import shown

_UNPACKED_AT_ONCE: Final = 1_024
"""The largest compressed body that is unpacked where it arrives."""
SUPPORTED: Final = ("gzip", "deflate")
_GZIP: Final = 16 + zlib.MAX_WBITS
_ZLIB: Final = zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS
_MOST_MEMBERS: Final = 100
"""Of one gzip body. Each costs as much as a body of its own, and what follows it is copied."""

_QUICKEST: Final = 1
"""Of gzip's levels: a list of 200 jobs becomes a tenth by it, in a third of a millisecond. Level 6 takes 2.5 times as
long for a tenth less of that.
"""


def beyond(limit: int) -> OjsError:
    """413 for a body whose size nobody knows, because reading ended at the limit."""
    message = f"the request body is more than {limit} bytes after decompression"
    return OjsError("envelope_too_large", message, details={"field": "the request body", "max_bytes": limit})


async def unpacked(pool: LargeBodies, body: bytes, encoding: str, limit: int) -> bytes:
    """Unpack a body in the thread for large ones, unless it is small. Raises as `decompressed`."""
    # A byte may be a thousand when it is unpacked.
    return await pool.run(LARGE_BYTES if len(body) > _UNPACKED_AT_ONCE else 0, decompressed, body, encoding, limit)


def decompressed(body: bytes, encoding: str, limit: int) -> bytes:
    """`body` unpacked as `Content-Encoding` says.

    Raises unsupported_compression, invalid_payload, envelope_too_large.
    """
    match encoding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "x-gzip":
            return _unpacked(body, _GZIP, limit)
        case "deflate":  # zlib by the standard, bare by habit
            wrapped = body[0] & 0x0F == 8 and int.from_bytes(body[:2]) % 31 == 0
            return _unpacked(body, _ZLIB if wrapped else _RAW, limit)
        case other:
            supported = " or ".join(SUPPORTED)
            message = f"Content-Encoding {shown(other)} is not supported; use {supported}"
            raise OjsError("unsupported_compression", message)


def _unpacked(body: bytes, wbits: int, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit + 1
    try:
        while body and room > 0:  # a gzip body may have several members
            if len(parts) == _MOST_MEMBERS:
                raise OjsError("invalid_payload", f"the compressed request body has more than {_MOST_MEMBERS} gzip members")
            member = zlib.decompressobj(wbits)
            part = member.decompress(body, room)
            parts.append(part)
            room -= len(part)
            if room > 0 and not member.eof:
                raise OjsError("invalid_payload", "the compressed request body is cut off")
            body = member.unused_data
    except zlib.error as error:
        raise OjsError("invalid_payload", f"the compressed request body is broken: {error}") from None
    if room <= 0:
        raise beyond(limit)
    return b"".join(parts)


@lru_cache(maxsize=64)
def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an answer may come as gzip by `Accept-Encoding`: named, or as one of `*`, and not ruled out by `q=0`."""
    weights: dict[str, bool] = {}
    for part in accept_encoding.lower().split(","):
        name, _, parameter = part.partition(";")
        weight = parameter.replace(" ", "").removeprefix("q=")
        weights[name.strip()] = weight.strip("0.") != "" if weight else True
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", False)))


def compressed(body: bytes) -> bytes:
    """`body` as gzip, the same bytes for the same body."""
    return gzip.compress(body, _QUICKEST, mtime=0)
