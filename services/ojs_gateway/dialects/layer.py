"""The compatibility layer: an answer as its reader gets it (docs/clients.md).

Every answer has one name for each thing. What an official client reads under another name, or in another shape, is made here
from the finished answer, so that nothing else knows of it. A reader's own shape never lacks what everybody else gets, unless
a name means two things.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.dialects.shaping import Shapes
from ojs_engine.wire.members import Extended, bare, encode
from ojs_engine.wire.redaction import redacted
from ojs_gateway.dialects.fleet import FLEET
from ojs_gateway.dialects.jobs import JOBS
from ojs_gateway.dialects.queues import QUEUES
from ojs_index.lists.jobs import BareJobDetail

_SHAPES: Final[Shapes] = {
    **JOBS,
    **QUEUES,
    **FLEET,
}


def answer_body(answer: bytes | Struct | Extended[Any], reader: Reader) -> bytes:
    """An answer as JSON for its reader; one that comes as bytes is the same for all."""
    if isinstance(answer, bytes):
        return answer
    shapes = _SHAPES.get(type(bare(answer)))
    if shapes is not None and (shape := shapes.get(reader)) is not None:
        return encode(shape(answer))
    return encode(answer)


def redacted_body(answer: bytes | Struct | Extended[Any], reader: Reader) -> bytes:
    """Return `answer_body` without what jobs carry. The admin UI can't show a job that has no `meta` at all."""
    body = redacted(answer_body(answer, reader))
    if reader != "ui" or not isinstance(answer, BareJobDetail):
        return body
    return encode({"meta": {}, **msgspec.json.decode(body, type=dict[str, Raw])})
