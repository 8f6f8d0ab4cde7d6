"""JSON schemas in few words, for the description of the API. OpenAPI 3.1 has those of JSON Schema 2020-12."""

from __future__ import annotations

import types
from typing import Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Struct


class Named(NamedTuple):
    """A schema that stands in the document once, under a name, and is referred to wherever it is used."""

    name: str
    schema: dict[str, Any]


Schema = dict[str, Any] | Named

ANYTHING: Final[dict[str, Any]] = {}
TEXT: Final = {"type": "string"}
FLAG: Final = {"type": "boolean"}
TIME: Final = {"type": "string", "format": "date-time"}


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

    A null member counts as an absent one everywhere, which the document says once, so null is left out here. msgspec's own
    schemas can't be had of structs with raw JSON in them.
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


def _with(schema: dict[str, Any], **keywords: Any) -> dict[str, Any]:
    return schema | {name: value for name, value in keywords.items() if value is not None}
