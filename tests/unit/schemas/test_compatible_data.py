"""A version without a gap takes whatever the version before it took, tried with random schemas and values."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from msgspec import Raw

from ojs_features.schemas.compatibility import gaps
from ojs_features.schemas.validator import Validator
from support.examples import WHOLE, examples
from unit.schemas.samples import record

NAMES: Final = ("a", "b")
SCALARS: Final[st.SearchStrategy[Any]] = st.sampled_from([None, True, False, 0, 1, 2, 3, 1.5, 2.0, "", "x", "xy", "ab"])
MEMBERS: Final = st.sampled_from([*NAMES, "c"])
INNER: Final = st.lists(SCALARS, max_size=3) | st.dictionaries(MEMBERS, SCALARS, max_size=3) | SCALARS
VALUES: Final[st.SearchStrategy[Any]] = st.lists(INNER, max_size=3) | st.dictionaries(MEMBERS, INNER, max_size=3) | SCALARS
TYPES: Final = st.sampled_from(["array", "boolean", "integer", "null", "number", "object", "string"])
SMALL: Final = st.integers(0, 3)
FLAT: Final[dict[str, st.SearchStrategy[Any]]] = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "enum": st.lists(SCALARS, min_size=1, max_size=3, unique_by=msgspec.json.encode),
    "const": SCALARS,
    "minimum": SMALL,
    "maximum": SMALL,
    "exclusiveMinimum": SMALL,
    "exclusiveMaximum": SMALL,
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    "minLength": SMALL,
    "maxLength": SMALL,
    "pattern": st.sampled_from(["x", "^a"]),
    "minItems": SMALL,
    "maxItems": SMALL,
    "uniqueItems": st.booleans(),
    "minProperties": SMALL,
    "maxProperties": SMALL,
    "required": st.lists(st.sampled_from(NAMES), unique=True),
}


KEYWORDS: Final = st.lists(st.sampled_from(sorted(FLAT)), max_size=3, unique=True)
COMBINED: Final = st.sampled_from(["anyOf", "allOf"])
ONE_IN_FOUR: Final = st.integers(0, 3).map(lambda drawn: drawn == 0)
ONE_IN_SIX: Final = st.integers(0, 5).map(lambda drawn: drawn == 0)


@cache
def schemas(depth: int = 2) -> st.SearchStrategy[Any]:
    """Schemas in schemas, so deep. What they are drawn from is made once, which takes longer than to draw."""
    inner = schemas(depth - 1) if depth else st.just({})
    others = inner | st.just(False)
    properties = st.dictionaries(st.sampled_from(NAMES), inner)
    items = st.lists(inner, min_size=1, max_size=2)

    @st.composite
    def one(draw: st.DrawFn) -> Any:
        found = {name: draw(FLAT[name]) for name in draw(KEYWORDS)}
        if depth and draw(st.booleans()):
            found["properties"] = draw(properties)
            found["additionalProperties"] = draw(others)
        if depth and draw(st.booleans()):
            found["prefixItems"] = draw(items)
            found["items"] = draw(others)
        if depth and draw(ONE_IN_SIX):
            found[draw(COMBINED)] = [draw(inner)]
        return found

    return one()


def explicit(schema: Any, depth: int = 3) -> Any:
    """The same with a schema for all other members and items: what is new where anything was allowed is let pass (§8.3)."""
    if schema is False or not depth:
        return schema
    found = {"additionalProperties": {}, "items": {}} | schema
    for keyword in ("additionalProperties", "items"):
        found[keyword] = explicit(found[keyword], depth - 1)
    for keyword in {"properties", "prefixItems"} & found.keys():
        parts = found[keyword]
        if keyword == "properties":
            found[keyword] = {name: explicit(one, depth - 1) for name, one in parts.items()}
        else:
            found[keyword] = [explicit(one, depth - 1) for one in parts]
    return found


@st.composite
def versions(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two schemas, the second mostly the first with something else at the top."""
    before = explicit(draw(schemas()))
    if draw(ONE_IN_FOUR):
        return before, draw(schemas())
    kept = {name: value for name, value in before.items() if not draw(ONE_IN_FOUR)}
    return before, kept | {name: value for name, value in draw(schemas(1)).items() if draw(st.booleans())}


def fitting(schema: Any, values: list[Any]) -> list[bool]:
    validator = Validator(Raw(msgspec.json.encode({"prefixItems": [schema]})))
    return [not validator.findings(Raw(msgspec.json.encode([value]))) for value in values]


@settings(max_examples=examples(WHOLE, costly=True), suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
@given(versions(), st.lists(VALUES, min_size=5, max_size=20))
def test_what_fits_the_version_before_fits_a_version_without_gaps(pair: tuple[Any, Any], values: list[Any]) -> None:
    before, after = pair
    assume(not gaps(record(before, "1.0.0"), record(after, "1.1.0"), removals=False))
    for value, fitted, fits in zip(values, fitting(before, values), fitting(after, values), strict=True):
        assert fits or not fitted, (before, after, value)
