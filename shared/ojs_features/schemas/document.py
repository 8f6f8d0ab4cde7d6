"""Which JSON Schema documents are taken, so that none can make validation slow or reach beyond itself (docs/adr/047).

A document is unfolded: each `$ref` counts as what it stands for. What doesn't come to an end, or is too large then,
is refused, so a value is looked at a bounded number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import unquote

from ojs_engine.base.errors import OjsError
from ojs_engine.base.fields import shown
from ojs_engine.base.payload_limits import PayloadLimits

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_DEEPEST: Final = 150
"""Schemas inside one another, references followed."""

_ONE: Final = frozenset(
    {
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS: Final = frozenset({"dependentSchemas", "patternProperties", "properties"})
_SAME_VALUE: Final = _ONE & {"else", "if", "not", "then"}
_SAME_VALUE_LISTS: Final = _LISTS - {"prefixItems"}
_BELOW: Final = _ONE - _SAME_VALUE - {"contentSchema"}
_DEFINITIONS: Final = ("$defs", "definitions")
_REFUSED: Final = {
    "$anchor": "name the place by its path, as in #/$defs/name",
    "$dynamicAnchor": "write the schema out",
    "$dynamicRef": "write the schema out, or use $ref",
    "$recursiveAnchor": "write the schema out",
    "$recursiveRef": "write the schema out, or use $ref",
    "$vocabulary": "leave it out",
}


def refused(path: str, problem: str) -> OjsError:
    """400 for a document that isn't taken (ojs-http-binding §15.2). `path` leads into the document."""
    field = f"schema.{path}" if path else "schema"
    message = f"{field[:200]}: {problem}"
    details = {"field": field[:200], "schema_error": problem, "validation_errors": [{"path": field[:200], "message": problem}]}
    return OjsError("invalid_request", message, details=details, canonical="INVALID_SCHEMA")


def checked(document: Any, limits: PayloadLimits) -> None:
    """Raise OjsError invalid_request for a decoded document that isn't taken. Whether its keywords are well-formed is
    left to the compiler (`ojs_features.schemas.validator`).
    """
    if type(document) is not dict:
        raise refused("", "a schema is an object")
    dialect = document.get("$schema")
    if dialect is not None and (type(dialect) is not str or dialect.rstrip("#") != DIALECT):
        raise refused("$schema", f"$schema must reference draft 2020-12 ({DIALECT}), not {shown(dialect)}")
    _Unfolding(modern(document), limits).check()


def modern(document: Any) -> Any:
    """The document with lists under `items`, which drafts before 2020-12 have, written as `prefixItems`; only where
    no `$schema` says which draft it is.
    """
    return document if type(document) is not dict or "$schema" in document else _modern(document)


def _modern(schema: Any) -> Any:
    if type(schema) is not dict:
        return schema
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword in _ONE and type(value) is not list:
            found[keyword] = _modern(value)
        elif keyword in _LISTS and type(value) is list:
            found[keyword] = [_modern(one) for one in value]
        elif (keyword in _MAPS or keyword in _DEFINITIONS) and type(value) is dict:
            found[keyword] = {name: _modern(one) for name, one in value.items()}
        else:
            found[keyword] = value
    if type(found.get("items")) is list:
        found["prefixItems"] = [_modern(one) for one in found.pop("items")]
        if "additionalItems" in found:
            found["items"] = _modern(found.pop("additionalItems"))
    return found


def resolved(document: Any, reference: str) -> Any:
    """What a reference inside a document stands for. Raises LookupError, ValueError."""
    found = document
    for part in reference[1:].split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        found = found[int(name)] if type(found) is list else found[name]
    return found


def branching(document: Any, weigh: Callable[[str], int]) -> int:
    """How many schemas may look at one value, at most, of a document that was `checked`: what its size has to be
    multiplied by for the work of validating it. A pattern counts as many as `weigh` says.
    """
    return _Branching(modern(document), weigh).looks()


class _Branching:
    def __init__(self, document: Any, weigh: Callable[[str], int]) -> None:
        self._document = document
        self._weigh = weigh

    def looks(self) -> int:
        return self._looks(self._document)

    def _looks(self, schema: Any) -> int:
        beside = list(self._beside(schema))
        return max(sum(self._own(one) for one in beside), sum(self._below(one) for one in beside))

    def _own(self, schema: Any) -> int:
        if type(schema) is not dict:
            return 1
        return 1 + sum(self._weigh(pattern) for pattern in _patterns(schema))

    def _beside(self, schema: Any) -> Iterator[Any]:
        """The schemas that look at the same value, the schema itself included."""
        yield schema
        if type(schema) is not dict:
            return
        for keyword, value in schema.items():
            if keyword == "$ref":
                yield from self._beside(resolved(self._document, value))
            elif keyword in _SAME_VALUE:
                yield from self._beside(value)
            elif keyword in _SAME_VALUE_LISTS or keyword == "dependentSchemas":
                for one in value if type(value) is list else value.values():
                    yield from self._beside(one)

    def _below(self, schema: Any) -> int:
        """How many look at a member or item, at most: it is in one property and one place, and may fit all patterns."""
        if type(schema) is not dict:
            return 0
        named = [*schema.get("properties", {}).values(), *schema.get("prefixItems", [])]
        others = [schema[keyword] for keyword in _BELOW if keyword in schema]
        others += schema.get("patternProperties", {}).values()
        return max((self._looks(one) for one in named), default=0) + sum(self._looks(one) for one in others)


def _patterns(schema: dict[str, Any]) -> list[Any]:
    """The patterns that stand in a schema itself."""
    patterns = [schema["pattern"]] if "pattern" in schema else []
    if type(schema.get("patternProperties")) is dict:
        patterns += schema["patternProperties"]
    return patterns


class _Unfolding:
    """One document while it is unfolded."""

    def __init__(self, document: dict[str, Any], limits: PayloadLimits) -> None:
        self._document = document
        self._limits = limits
        self._known: dict[int, tuple[int, int]] = {}
        """Of schemas by identity how many they are when they are unfolded, and how deep."""
        self._open: set[int] = set()
        self._patterns = 0

    def check(self) -> None:
        size, _ = self._unfold(self._document, "", 0)
        if size > self._limits.max_schema_nodes:
            limit = self._limits.max_schema_nodes
            raise refused("", f"it comes to {min(size, 10**9):,} schemas with each $ref written out; the limit is {limit:,}")
        if self._patterns > self._limits.max_schema_patterns:
            raise refused("", f"it has {self._patterns} patterns; the limit is {self._limits.max_schema_patterns}")

    def _unfold(self, schema: Any, path: str, depth: int) -> tuple[int, int]:
        if type(schema) is not dict:  # true, false, or what the compiler refuses
            return 1, 1
        known = self._known.get(id(schema))
        if known is not None and depth + known[1] <= _DEEPEST:
            return known
        if id(schema) in self._open:
            raise refused(path, "a $ref leads back to itself; schemas that contain themselves aren't supported")
        if depth > _DEEPEST or known is not None:
            raise refused(path, f"schemas are nested deeper than {_DEEPEST}, $ref followed")
        self._check(schema, path, top=depth == 0)
        self._open.add(id(schema))
        parts = [self._unfold(one, below, depth + 1) for one, below in self._below(schema, path)]
        for one, below in _definitions(schema, path):  # they count where they are referred to
            self._unfold(one, below, depth + 1)
        self._open.discard(id(schema))
        found = 1 + sum(size for size, _ in parts), 1 + max((height for _, height in parts), default=0)
        self._known[id(schema)] = found
        return found

    def _below(self, schema: dict[str, Any], path: str) -> Iterator[tuple[Any, str]]:
        for keyword, value in schema.items():
            place = _join(path, keyword)
            if keyword in _ONE:
                yield value, place
            elif keyword in _LISTS and type(value) is list:
                yield from ((one, f"{place}.{index}") for index, one in enumerate(value))
            elif keyword in _MAPS and type(value) is dict:
                yield from ((one, f"{place}.{name}") for name, one in value.items())
            elif keyword == "$ref":
                yield self._target(value, place), place

    def _target(self, reference: Any, path: str) -> Any:
        if type(reference) is not str or not reference.startswith("#"):
            message = f"it refers to {shown(reference)}; only places in the same document can be referred to, as #/$defs/name"
            raise refused(path, f"{message}: nothing is fetched from elsewhere")
        if reference != "#" and not reference.startswith("#/"):
            raise refused(path, f"it refers to {shown(reference)}; name the place by its path, as in #/$defs/name")
        try:
            return resolved(self._document, reference)
        except (LookupError, ValueError, TypeError):
            raise refused(path, f"there is nothing at {shown(reference)}") from None

    def _check(self, schema: dict[str, Any], path: str, *, top: bool) -> None:
        for keyword, instead in _REFUSED.items():
            if keyword in schema:
                raise refused(_join(path, keyword), f"{keyword} is not supported; {instead}")
        if not top and ("$id" in schema or "$schema" in schema):
            raise refused(path, "$id and $schema may stand at the top of the document only")
        patterns = _patterns(schema)
        self._patterns += len(patterns)
        for pattern in patterns:
            if type(pattern) is str and len(pattern) > self._limits.max_pattern_chars:
                limit = self._limits.max_pattern_chars
                raise refused(path, f"a pattern has {len(pattern)} characters; the limit is {limit}")


def _definitions(schema: dict[str, Any], path: str) -> Iterator[tuple[Any, str]]:
    for keyword in _DEFINITIONS:
        if type(schema.get(keyword)) is dict:
            yield from ((one, _join(path, f"{keyword}.{name}")) for name, one in schema[keyword].items())


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
