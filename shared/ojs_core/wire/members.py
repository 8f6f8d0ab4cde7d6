"""Members of answers: their types, which the API's description is made from as well, and how answers are encoded.

An answer is a struct. A member that may be absent is `UNSET` unless there is something to say: nothing is null, because
client libraries stumble over nulls where they expect an absent member. `None` stands for the few nulls that are said.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from ojs_core.base.times import format_ms
from ojs_core.domain.schemas.validator import Finding

Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Count = Annotated[int, Meta(ge=0)]
Uuid = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Seconds = Annotated[float, Meta(ge=0, description="Seconds.")]
Duration = Annotated[str, Meta(description="A duration such as PT30S (ISO 8601).")]
JsonObject = Annotated[Raw, Meta(extra_json_schema={"type": "object"})]
JsonList = Annotated[Raw, Meta(extra_json_schema={"type": "array"})]

T = TypeVar("T")

encode: Final = msgspec.json.Encoder().encode


class AnswerWarning(Struct, frozen=True):
    """What was taken although something is not as it should be: the member of the request, and what about it."""

    field: str
    message: str


Warnings = Annotated[list[AnswerWarning], Meta(description="What was taken although something is not as it should be.")]


MOST_WARNINGS: Final = 100
"""In one answer; a batch may have more jobs than that."""


def warnings_at(place: str, warnings: Iterable[AnswerWarning]) -> list[AnswerWarning]:
    """What the sender of several jobs is warned of one; `place` is where in the request that stands."""
    return [AnswerWarning(f"{place}.{one.field}" if one.field else place, one.message) for one in warnings]


def warnings_of(findings: Iterable[Finding]) -> list[AnswerWarning]:
    """What a job's sender is warned of by its schema."""
    return [AnswerWarning(one.path, one.message) for one in findings]


class OpenStruct(Struct):
    """The base of answers that may have members beside their own, such as those that a client has added to a job."""


def members(answer: Struct) -> dict[str, Any]:
    """The members that an answer has, by the names that they have in JSON; values as they are."""
    names = zip(answer.__struct_fields__, answer.__struct_encode_fields__, strict=True)
    return {name: value for field, name in names if (value := getattr(answer, field)) is not UNSET}


def given(value: T | None) -> T | UnsetType:
    """What may not be there."""
    return UNSET if value is None else value


def seconds(ms: int) -> int | float:
    """Milliseconds as seconds, whole ones without a fraction."""
    return ms / 1_000 if ms % 1_000 else ms // 1_000


def timestamp(at: int | None) -> str | UnsetType:
    """A moment (Unix ms) that may not have come."""
    return UNSET if at is None else format_ms(at)
