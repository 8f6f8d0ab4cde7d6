"""What changes from one version of a schema to another would break (ojs-schema-registry §8).

Arguments are written under one version and read under another: backward, those of the version before are read under
the new one; forward, the other way round. A gap is what the writing version allows and the reading one doesn't.
Keywords whose meaning can be compared are compared; where others differ the answer is that it can't be told, which
counts as a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from ojs_engine.base.errors import OjsError
from ojs_features.schemas.document import modern, resolved
from ojs_features.schemas.record import SchemaRecord

_MOST: Final = 20
_ANNOTATIONS: Final = frozenset(
    {
        "$comment",
        "$defs",
        "$id",
        "$schema",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    }
)
_TYPES: Final = ("array", "boolean", "integer", "null", "number", "object", "string")
_LOWER: Final = {"minLength": "string", "minItems": "array", "minProperties": "object"}
_UPPER: Final = {"maxLength": "string", "maxItems": "array", "maxProperties": "object"}
_GROUPS: Final = (("if", "then", "else"), ("contains", "minContains", "maxContains"))
"""Keywords that mean something only together."""
_OPAQUE: Final = (
    "$ref",
    "allOf",
    "anyOf",
    "dependentRequired",
    "dependentSchemas",
    "format",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "propertyNames",
)
"""Keywords that are the same, gone, or can't be compared."""
_WHOLE: Final = ("unevaluatedItems", "unevaluatedProperties")
"""Keywords that depend on everything beside them."""

_encode: Final = msgspec.json.Encoder(order="sorted").encode
_decode: Final = msgspec.json.Decoder().decode


def check_compatible(new: SchemaRecord, before: SchemaRecord) -> None:
    """Hold a new version to the version before it, by its `compatibility`. Raises OjsError invalid_request."""
    held_to = new.compatibility or "semver"
    major = before.order.major != new.order.major
    if held_to == "none" or (held_to == "semver" and major):
        return
    found: list[str] = []
    if held_to in {"semver", "backward", "full"}:
        found += gaps(before, new, removals=held_to == "semver")
    if held_to in {"forward", "full"}:
        found += gaps(new, before, removals=False)
    if not found:
        return
    if held_to == "semver":
        message = f"version {new.version} introduces breaking changes compared to {before.version}"
        hint = f"Use a major version bump ({before.order.major + 1}.0.0), or send compatibility none."
    else:
        message = f"version {new.version} is not {held_to} compatible with {before.version}"
        hint = "Change the schema so that it is, or send another compatibility."
    raise OjsError(
        "invalid_request",
        f"{message}: {found[0]}{f' (and {len(found) - 1} more)' if len(found) > 1 else ''}",
        hint=hint,
        details={"field": "schema", "breaking_changes": found[:_MOST]},
        canonical="INCOMPATIBLE_SCHEMA",
    )


def gaps(written: SchemaRecord, read: SchemaRecord, *, removals: bool) -> Sequence[str]:
    """What arguments of one version may hold that the other refuses. With `removals`, a named member that the reading
    version doesn't name any more is a gap, too (§8.2).
    """
    return _Comparison(written, read, removals=removals).gaps()


class _Comparison:
    def __init__(self, written: SchemaRecord, read: SchemaRecord, *, removals: bool) -> None:
        self._documents = (modern(_decode(written.document)), modern(_decode(read.document)))
        self._names = (written.version, read.version)
        self._removals = removals
        self._found: list[str] = []

    def gaps(self) -> Sequence[str]:
        self._compare(*self._documents, "args")
        return list(dict.fromkeys(self._found))

    def _add(self, place: str, what: str) -> None:
        self._found.append(f"{place[:200]}: {what}")

    def _differ(self, place: str, keyword: str) -> None:
        self._add(place, f"{keyword} differs, and whether that breaks anything can't be told")

    def _compare(self, written: Any, read: Any, place: str) -> None:
        written, read = self._followed(written, 0), self._followed(read, 1)
        if written is False or read is True or read == {}:
            return
        if read is False:
            self._add(place, f"{self._names[1]} allows nothing there")
            return
        writes: dict[str, Any] = {} if written is True else written
        for keyword in _WHOLE:
            if keyword in read and _text(written) != _text(read):
                self._differ(place, keyword)
        for keyword in _OPAQUE:
            if keyword in read and not self._same(writes, read, keyword):
                self._differ(place, keyword)
        for group in _GROUPS:
            if group[0] in read and not all(self._same(writes, read, keyword) for keyword in group):
                self._differ(place, group[0])
        self._values(writes, read, place)
        self._limits(writes, read, place)
        self._objects(writes, read, place)
        self._arrays(writes, read, place)

    def _followed(self, schema: Any, side: int) -> Any:
        """What a schema that only refers to another stands for."""
        while type(schema) is dict and "$ref" in schema and schema.keys() - _ANNOTATIONS == {"$ref"}:
            schema = resolved(self._documents[side], schema["$ref"])
        return schema

    def _same(self, written: dict[str, Any], read: dict[str, Any], keyword: str) -> bool:
        """Whether both have a keyword with one value; what that refers to is compared with all definitions."""
        if (keyword in written) != (keyword in read):
            return False
        text = _text(read.get(keyword))
        if text != _text(written.get(keyword)):
            return False
        return b'"$ref"' not in _encode({keyword: read.get(keyword)}) or _text(self._documents[0]) == _text(self._documents[1])

    def _values(self, written: dict[str, Any], read: dict[str, Any], place: str) -> None:
        if "type" in read:
            lost = _kinds(written) - _allowed(read["type"])
            if lost and "type" in written:
                self._add(place, f"type {', '.join(sorted(lost))} of {self._names[0]} is not allowed in {self._names[1]}")
            elif lost:
                self._add(place, f"type is {_text(read['type']).decode()} in {self._names[1]} and anything in {self._names[0]}")
        ours = _listed(written)
        theirs = _listed(read)
        if theirs is None:
            return
        if ours is None:
            self._add(place, f"values are listed in {self._names[1]} and not in {self._names[0]}")
        elif gone := ours.keys() - theirs.keys():
            self._add(place, f"{len(gone)} of the values that {self._names[0]} lists are not allowed in {self._names[1]}")

    def _limits(self, written: dict[str, Any], read: dict[str, Any], place: str) -> None:
        kinds = _kinds(written)
        for keywords, tighter in ((_LOWER, _above), (_UPPER, _below)):
            for keyword, kind in keywords.items():
                if kind in kinds and keyword in read and tighter(read[keyword], written.get(keyword, _neutral(keyword))):
                    self._tighter(written, read, keyword, place)
        if kinds & {"integer", "number"}:
            for keyword, other, tighter in (("minimum", "exclusiveMinimum", _above), ("maximum", "exclusiveMaximum", _below)):
                self._range(written, read, keyword, other, tighter, place)
            step, theirs = read.get("multipleOf"), written.get("multipleOf")
            if step is not None and (theirs is None or theirs % step):
                self._tighter(written, read, "multipleOf", place)
        if "array" in kinds and read.get("uniqueItems") is True and written.get("uniqueItems") is not True:
            self._tighter(written, read, "uniqueItems", place)

    def _range(
        self,
        written: dict[str, Any],
        read: dict[str, Any],
        inclusive: str,
        exclusive: str,
        tighter: Callable[[Any, Any], bool],
        place: str,
    ) -> None:
        """Bounds of numbers: each that is read must hold for whatever the written ones let through."""
        bounds = [written[keyword] for keyword in (inclusive, exclusive) if keyword in written]
        if inclusive in read and (not bounds or all(tighter(read[inclusive], bound) for bound in bounds)):
            self._tighter(written, read, inclusive, place)
        if exclusive in read:
            limit = read[exclusive]
            kept = exclusive in written and not tighter(limit, written[exclusive])
            if not kept and not (inclusive in written and tighter(written[inclusive], limit)):
                self._tighter(written, read, exclusive, place)

    def _tighter(self, written: dict[str, Any], read: dict[str, Any], keyword: str, place: str) -> None:
        was = _text(written[keyword]).decode() if keyword in written else "not set"
        self._add(place, f"{keyword} is {_text(read[keyword]).decode()} in {self._names[1]} and {was} in {self._names[0]}")

    def _objects(self, written: dict[str, Any], read: dict[str, Any], place: str) -> None:
        if "object" not in _kinds(written):
            return
        for name in _texts(read.get("required")) - _texts(written.get("required")):
            self._add(f"{place}.{name}", f"required in {self._names[1]} and not in {self._names[0]}")
        named: dict[str, Any] = written.get("properties", {})
        expected: dict[str, Any] = read.get("properties", {})
        others = written.get("additionalProperties", True)
        taken = read.get("additionalProperties", True)
        for name, schema in expected.items():
            if name in named:
                self._compare(named[name], schema, f"{place}.{name}")
            elif others is not True:  # what may have any name and any value is taken for not being there yet (§8.3)
                self._compare(others, schema, f"{place}.{name}")
        for name, schema in named.items():
            if name not in expected:
                if self._removals:
                    self._add(f"{place}.{name}", f"named in {self._names[0]} and not in {self._names[1]}")
                elif "patternProperties" not in read:
                    self._compare(schema, taken, f"{place}.{name}")
        if taken is not True:
            self._compare(others, taken, f"{place}.*")
            if not self._same(written, read, "patternProperties"):
                self._differ(place, "patternProperties")

    def _arrays(self, written: dict[str, Any], read: dict[str, Any], place: str) -> None:
        if "array" not in _kinds(written):
            return
        first: list[Any] = written.get("prefixItems", [])
        expected: list[Any] = read.get("prefixItems", [])
        others = written.get("items", True)
        taken = read.get("items", True)
        most = written.get("maxItems")
        for index, schema in enumerate(expected):
            if index < len(first):
                self._compare(first[index], schema, f"{place}[{index}]")
            elif others is not True and (most is None or index < most):
                self._compare(others, schema, f"{place}[{index}]")
        for index in range(len(expected), len(first)):
            if self._removals:
                self._add(f"{place}[{index}]", f"described in {self._names[0]} and not in {self._names[1]}")
            else:
                self._compare(first[index], taken, f"{place}[{index}]")
        if taken is not True and (most is None or most > len(expected)):
            self._compare(others, taken, f"{place}[]")


def _text(value: Any) -> bytes:
    return _encode(value)


def _texts(names: Iterable[str] | None) -> set[str]:
    return set(names or ())


def _allowed(types: str | list[str]) -> set[str]:
    found = {types} if isinstance(types, str) else set(types)
    return found | {"integer"} if "number" in found else found


def _kinds(schema: dict[str, Any]) -> set[str]:
    """The types of what a schema lets through, as far as it says."""
    if "type" in schema:
        return _allowed(schema["type"])
    listed = _listed(schema)
    return set(_TYPES) if listed is None else {_kind(value) for value in listed.values()}


def _kind(value: Any) -> str:
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    names = {str: "string", bool: "boolean", int: "integer", dict: "object", list: "array", type(None): "null"}
    return names[type(value)]


def _listed(schema: dict[str, Any]) -> dict[bytes, Any] | None:
    """The values that a schema lists, by their texts; None if it lists none."""
    listed = {_text(_plain(value)): value for value in schema["enum"]} if "enum" in schema else None
    if "const" not in schema:
        return listed
    text = _text(_plain(schema["const"]))
    return {text: schema["const"]} if listed is None or text in listed else {}


def _plain(value: Any) -> Any:
    """The same for JSON Schema, with 1 for 1.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return {name: _plain(one) for name, one in value.items()} if isinstance(value, dict) else value


def _neutral(keyword: str) -> float:
    return 0 if keyword in _LOWER else float("inf")


def _above(limit: float, other: float) -> bool:
    return limit > other


def _below(limit: float, other: float) -> bool:
    return limit < other
