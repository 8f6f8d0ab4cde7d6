"""JSON schemas in few words, for the description of the API. OpenAPI 3.1 has those of JSON Schema 2020-12."""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Raw, Struct, UnsetType

from ojs_api.members import OpenAnswer, OpenRequest
from ojs_engine.wire.members import Extended, OpenStruct, absent_as
from ojs_engine.wire.redaction import REDACTED, hidden
from ojs_engine.wire.requests import note_of


class Named(NamedTuple):
    """A schema that stands in the document once, under a name, and is referred to wherever it is used."""

    name: str
    schema: dict[str, Any]


Schema = dict[str, Any] | Named | type[Struct]
"""A struct stands for the schema of the answer that is made of it."""

ANYTHING: Final[dict[str, Any]] = {}
TEXT: Final = {"type": "string"}
FLAG: Final = {"type": "boolean"}


def text(about: str = "", *, pattern: str | None = None, most: int | None = None) -> dict[str, Any]:
    return _with({"type": "string"}, description=about or None, pattern=pattern, maxLength=most)


def whole(low: int | None = None, high: int | None = None, about: str = "") -> dict[str, Any]:
    return _with({"type": "integer"}, minimum=low, maximum=high, description=about or None)


def number(low: float | None = None, high: float | None = None, about: str = "") -> dict[str, Any]:
    return _with({"type": "number"}, minimum=low, maximum=high, description=about or None)


def one_of(*values: Any, about: str = "") -> dict[str, Any]:
    return _with({"enum": list(values)}, description=about or None)


def either(*schemas: Schema, about: str = "") -> dict[str, Any]:
    return _with({"anyOf": list(schemas)}, description=about or None)


def nullable(schema: Schema) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def list_of(item: Schema, least: int | None = None, most: int | None = None, about: str = "") -> dict[str, Any]:
    return _with({"type": "array", "items": item}, minItems=least, maxItems=most, description=about or None)


def map_of(value: Schema, about: str = "") -> dict[str, Any]:
    """An object whose members have any names."""
    return _with({"type": "object", "additionalProperties": value}, description=about or None)


def record(
    required: dict[str, Schema], optional: dict[str, Schema] | None = None, *, about: str = "", free: bool = False
) -> dict[str, Any]:
    """An object with these members. `free` says that clients may add others."""
    found = _with({"type": "object"}, description=about or None)
    found["properties"] = {**required, **(optional or {})}
    if required:
        found["required"] = list(required)
    if free:
        found["additionalProperties"] = True
    return found


def body_of(kind: type[Struct], *required: str, **members: Schema) -> dict[str, Any]:
    """The request body that is decoded as `kind`. `members` says more of a member than its type does: its limits.

    A null member counts as an absent one everywhere, which the document says once, so null is left out here.
    msgspec's own schemas can't be had of structs with raw JSON in them.
    """
    hints = get_type_hints(kind, include_extras=True)
    found = {name: members.pop(name) if name in members else _of(hints[name]) for name in kind.__struct_fields__}
    if members or not set(required) <= set(found):
        raise TypeError(f"{kind.__name__} has no {', '.join([*members, *required])}")
    return record({name: found.pop(name) for name in required}, found)


def _of(hint: Any) -> Schema:
    if isinstance(hint, type) and issubclass(hint, Struct):
        return body_of(hint)
    if get_origin(hint) in {Union, types.UnionType}:
        kinds = [_of(kind) for kind in get_args(hint) if kind is not types.NoneType]
        return kinds[0] if len(kinds) == 1 else either(*kinds)
    return msgspec.json.schema(hint)


def _described(schema: Schema, about: str | None) -> Schema:
    return _with(schema, description=about) if isinstance(schema, dict) else schema


def _named(note: Meta) -> Named:
    """Return the words that stand in the document once, under the name that a note of the contract gives them."""
    return Named((note.extra or {})["named"], dict(note.extra_json_schema or {}))


def _with(schema: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return schema | {name: value for name, value in keywords.items() if value is not None}


def sent_as(kind: type[Struct]) -> dict[str, Any]:
    """Return the schema of a request of the contract, from its struct. Null is left out, as of `body_of`."""
    required: dict[str, Schema] = {}
    optional: dict[str, Schema] = {}
    hints = get_type_hints(kind, include_extras=True)
    for field in msgspec.structs.fields(kind):
        hint = hints[field.name]
        if not note_of(hint, "hidden"):
            members = required if field.required or note_of(hint, "required") else optional
            members[field.encode_name] = sent_member(hint)
    about = " ".join((kind.__doc__ or "").split())
    return record(required, optional, about=about, free=issubclass(kind, OpenRequest))


def sent_member(hint: Any) -> Schema:
    """Return the schema of a member or parameter of a request of the contract."""
    kinds = [kind for kind in _parts(hint) if kind is not types.NoneType]
    if len(kinds) > 1:
        return either(*map(sent_member, kinds))
    [kind] = kinds
    bare, *notes = get_args(kind) if get_origin(kind) is Annotated else (kind,)
    if named := [_named(note) for note in notes if note.extra and "named" in note.extra]:
        return named[0]
    about = next((note.description for note in reversed(notes) if note.description), None)
    if (shape := note_of(kind, "shaped")) is not None:
        return _described(sent_member(shape), about)
    written = [more for note in notes if (more := note.extra_json_schema or {}).keys() & {"type", "anyOf"}]
    if written:
        return _with(written[0], description=about)
    if isinstance(bare, type) and issubclass(bare, Struct):
        return _with(sent_as(bare), description=about)
    if get_origin(bare) in {Union, types.UnionType}:
        return _described(sent_member(bare), about)
    if get_origin(bare) is list:
        sizes = {
            "minItems": next((note.min_length for note in notes if note.min_length is not None), None),
            "maxItems": next((note.max_length for note in notes if note.max_length is not None), None),
        }
        said: dict[str, Any] = next((note.extra_json_schema for note in notes if note.extra_json_schema), {})
        return _with(list_of(sent_member(get_args(bare)[0]), about=about or ""), **sizes) | said
    if get_origin(bare) is Literal:
        extra: dict[str, Any] = next((note.extra_json_schema for note in notes if note.extra_json_schema), {})
        return _with({"enum": list(get_args(bare)), **extra}, description=about)
    return msgspec.json.schema(kind)


_ANSWERS: Final[dict[type[Struct], Named]] = {}


def answer_of(kind: type[Struct]) -> Named:
    """The schema of an answer, from its struct. Members that may be `UNSET`, or None in the contract, may be absent.
    The docstring is what it says.

    It is called like the struct, without `Answer` at the end.
    """
    if kind in _ANSWERS:
        return _ANSWERS[kind]
    answer = _ANSWERS[kind] = Named(kind.__name__.removesuffix("Answer"), {})  # a member may be of the same kind
    hints = get_type_hints(kind, include_extras=True)
    left_out = hidden(set(kind.__struct_encode_fields__))
    absent = absent_as(kind)
    required: dict[str, Schema] = {}
    optional: dict[str, Schema] = {REDACTED: list_of(TEXT, 1, about="Members that its reader may not see.")} if left_out else {}
    for field, name in zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True):
        if note_of(hints[field], "hidden"):
            continue
        parts = _parts(hints[field])
        nothing = types.NoneType if field in absent else UnsetType
        said = note_of(hints[field], "required")
        may_lack = (nothing in parts or field in absent) if said is None else not said
        members = optional if may_lack or name in left_out else required
        members[name] = _one_of_types(part for part in parts if part is not nothing)
    about = " ".join((kind.__doc__ or "").partition("\n\n")[0].split())
    answer.schema.update(record(required, optional, about=about, free=issubclass(kind, OpenStruct | OpenAnswer)))
    return answer


def _parts(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)


def _answered(hint: Any) -> Schema:
    """The schema of a member's type, as `answer_of` finds it."""
    if get_origin(hint) is Annotated:
        return _annotated(*get_args(hint))
    if get_origin(hint) is Extended:
        return _answered(get_args(hint)[0])
    if hint in {Any, Raw}:
        return ANYTHING
    if hint is types.NoneType:
        return {"type": "null"}
    if isinstance(hint, type) and issubclass(hint, Struct):
        return answer_of(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Named(hint.__name__, {"type": "string", "enum": [*hint]})
    if get_origin(hint) in {list, tuple, Sequence}:
        return list_of(_answered(get_args(hint)[0]))
    if get_origin(hint) in {dict, Mapping}:
        return map_of(_answered(get_args(hint)[1]))
    parts = _parts(hint)
    return _one_of_types(parts) if len(parts) > 1 else msgspec.json.schema(hint)


def _one_of_types(hints: Iterable[Any]) -> Schema:
    """A struct and raw JSON of its shape are one."""
    kinds: list[Schema] = []
    for kind in map(_answered, hints):
        if kind not in kinds:
            kinds.append(kind)
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def _annotated(hint: Any, *notes: Any) -> Schema:
    """A note is a `Meta`, or the struct that raw JSON has the shape of."""
    found: Schema = _answered(hint)
    for note in notes:
        if isinstance(note, type):
            found = answer_of(note)
        elif note.extra and "named" in note.extra:
            found = _named(note)
        elif not isinstance(found, dict):
            found = _with({"allOf": [found]}, description=note.description) if note.description else found
        elif note.ge is None and note.le is None and note.pattern is None and note.min_length is None:
            more = note.extra_json_schema or {}
            found = more if "type" in more else {**found, **more}
            found = _with(found, description=note.description, maxItems=note.max_length)
        else:
            found = dict(msgspec.json.schema(Annotated[hint, note]))
    return found
