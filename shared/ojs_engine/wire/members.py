"""Members of answers: their types, which the API's description is made from as well, and how answers are encoded.

An answer is a struct. A member that may be absent is `UNSET` unless there is something to say: nothing is null, because
client libraries stumble over nulls where they expect an absent member. `None` stands for the few nulls that are said.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Annotated, Any, Final, Generic, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from msgspec.structs import fields

from ojs_api import members as contract
from ojs_engine.base.extensions import Extensions
from ojs_engine.base.fields import is_extension
from ojs_engine.base.times import format_ms
from ojs_engine.operations.job_checks import JobWarning

Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Count = Annotated[int, Meta(ge=0)]
Uuid = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Duration = Annotated[str, Meta(description="A duration such as PT30S (ISO 8601).")]
JsonObject = Annotated[Raw, Meta(extra_json_schema={"type": "object"})]
JsonList = Annotated[Raw, Meta(extra_json_schema={"type": "array"})]

T = TypeVar("T")
A = TypeVar("A", bound=Struct)
A_co = TypeVar("A_co", bound=Struct, covariant=True)


class Extended(Generic[A_co]):
    """An answer with members that a client has added; those of OJS come first where both have a name.

    `members` are all of them.
    """

    __slots__ = ("answer", "members")

    def __init__(self, answer: A_co, members: Mapping[str, Any]) -> None:
        self.answer = answer
        self.members = dict(members)


def _with_what_was_added(value: Any) -> Any:
    if isinstance(value, Extended):
        return value.members
    raise TypeError(f"answers have no {type(value).__name__}")


encode: Final = msgspec.json.Encoder(enc_hook=_with_what_was_added).encode
_decode_object: Final = msgspec.json.Decoder(dict[str, Raw]).decode


class OpenStruct(Struct):
    """The base of answers that may have members beside their own, such as those that a client has added to a job."""


AnswerWarning = contract.AnswerWarning
Warnings = contract.Warnings
MOST_WARNINGS: Final = 100
"""In one answer; a batch may have more jobs than that."""


def warnings_at(place: str, warnings: Iterable[AnswerWarning]) -> list[AnswerWarning]:
    """What the sender of several jobs is warned of one; `place` is where in the request that stands."""
    return [AnswerWarning(f"{place}.{one.field}" if one.field else place, one.message) for one in warnings]


def warnings_of(found: Iterable[JobWarning]) -> list[AnswerWarning]:
    """Return what a job's sender is warned of by the checks of the job."""
    return [AnswerWarning(one.path, one.message) for one in found]


_LEFT_OUT: Final = (list, dict, set)
"""Values that an encoder leaves out where they are empty and the default."""


@cache
def absent_as(kind: type[Struct]) -> dict[str, Any]:
    """Return the attributes of an answer of the contract that may be absent, with what each is then: None, or empty."""
    if not kind.__struct_config__.omit_defaults:
        return {}
    made = {field.name: field.default_factory for field in fields(kind) if field.default_factory in _LEFT_OUT}
    ours = kind.__module__.startswith("ojs_api.")
    plain = [field for field in fields(kind) if field.default is not msgspec.NODEFAULT]
    given = {field.name: field.default for field in plain if field.default is None or ours}
    return given | {name: factory() for name, factory in made.items()}


def members(answer: Struct | Extended[Any] | Mapping[str, Any]) -> dict[str, Any]:
    """The members that an answer has, by the names that they have in JSON; values as they are."""
    if isinstance(answer, Extended):
        return dict(answer.members)
    if isinstance(answer, Mapping):
        return dict(answer)
    names = zip(answer.__struct_fields__, answer.__struct_encode_fields__, strict=True)
    absent = absent_as(type(answer))
    if not absent:
        return {name: value for field, name in names if (value := getattr(answer, field)) is not UNSET}
    return {name: value for field, name in names if (value := getattr(answer, field)) != absent.get(field, UNSET)}


def written(value: object) -> Any:
    """Return a value in the form that it is sent in, for a member of the contract that readers have as something else.

    A moment is text for the server, and an object is JSON that it leaves undecoded, with what a client has added.
    """
    return value


def bare(answer: A | Extended[A]) -> A:
    """Return an answer without what a client has added."""
    return answer.answer if isinstance(answer, Extended) else answer


def extended(answer: A, extensions: Extensions) -> A | Extended[A]:
    """Return an answer with the members of extensions that its document has, each where it was sent."""
    return Extended(answer, _placed(members(answer), extensions)) if extensions else answer


def _placed(view: dict[str, Any], extensions: Extensions) -> dict[str, Any]:
    own = {path: raw for path, raw in extensions.items() if is_extension(path)}
    inner: dict[str, Extensions] = {}
    for path, raw in extensions.items():
        if path not in own:
            name, _, rest = path.partition(".")
            inner.setdefault(name, {})[rest] = raw
    for name, below in inner.items():
        view = view | {name: _placed(_decode_object(encode(view.get(name, {}))), below)}
    return own | view


def moment(at: int | None) -> Any:
    """Return a moment (Unix ms) in the form that it is sent in, for a member of the contract; None where it has not come."""
    return None if at is None else format_ms(at)


def given(value: T | None) -> T | UnsetType:
    """What may not be there."""
    return UNSET if value is None else value


def seconds(ms: int) -> int | float:
    """Milliseconds as seconds, whole ones without a fraction."""
    return ms / 1_000 if ms % 1_000 else ms // 1_000


def timestamp(at: int | None) -> str | UnsetType:
    """A moment (Unix ms) that may not have come."""
    return UNSET if at is None else format_ms(at)
