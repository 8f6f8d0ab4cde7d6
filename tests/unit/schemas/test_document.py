from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_features.schemas.document import DIALECT, branching, checked, modern
from support.tables import each

LIMITS = replace(DEFAULT_LIMITS, max_schema_nodes=20, max_schema_patterns=2, max_pattern_chars=10)


def doubling(levels: int) -> dict[str, Any]:
    """Small, and as large as two to the power of its levels when it is written out."""
    defs: dict[str, Any] = {f"d{one}": {"allOf": [{"$ref": f"#/$defs/d{one + 1}"}] * 2} for one in range(levels)}
    return {"$ref": "#/$defs/d0", "$defs": defs | {f"d{levels}": {"type": "string"}}}


def chained(length: int) -> dict[str, Any]:
    defs: dict[str, Any] = {f"d{one}": {"items": {"$ref": f"#/$defs/d{one + 1}"}} for one in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": defs | {f"d{length}": {}}}


@each(
    "document",
    [
        {},
        {"$schema": DIALECT, "$id": "urn:x", "type": "array"},
        {"$schema": f"{DIALECT}#"},
        {"$defs": {"a": {"type": "string"}}, "items": {"$ref": "#/$defs/a"}, "prefixItems": [{"$ref": "#/$defs/a"}]},
        {"$defs": {"a/b~c d": {}}, "$ref": "#/$defs/a~1b~0c%20d"},
        {"properties": {"$ref": {"type": "string"}, "$anchor": {"enum": [{"$ref": "http://x"}]}}},
        {"prefixItems": [{}, {"const": 1}], "not": {"$ref": "#/prefixItems/1"}},
        {"pattern": "0123456789", "patternProperties": {"^a": True}},
        {"properties": {str(number): True for number in range(19)}},
    ],
)
def test_a_document_that_ends_and_stays_within_its_limits_is_taken(document: dict[str, Any]) -> None:
    checked(document, LIMITS)


@each(
    ("document", "field", "words"),
    [
        ([], "schema", "a schema is an object"),
        (True, "schema", "a schema is an object"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "schema.$schema", "must reference draft 2020-12"),
        ({"items": {"$ref": "https://example.com/x.json"}}, "schema.items.$ref", "nothing is fetched from elsewhere"),
        ({"$ref": "file:///etc/passwd"}, "schema.$ref", "nothing is fetched from elsewhere"),
        ({"$ref": "other.json#/a"}, "schema.$ref", "nothing is fetched from elsewhere"),
        ({"$ref": 5}, "schema.$ref", "nothing is fetched from elsewhere"),
        ({"$ref": "#name"}, "schema.$ref", "name the place by its path"),
        ({"$ref": "#/$defs/none"}, "schema.$ref", "there is nothing at"),
        ({"$ref": "#/type/0", "type": "array"}, "schema.$ref", "there is nothing at"),
        ({"items": {"$ref": "#"}}, "schema.items.$ref", "leads back to itself"),
        ({"$defs": {"a": {"items": {"$ref": "#/$defs/a"}}}}, "schema.$defs.a.items.$ref", "leads back to itself"),
        ({"$defs": {"a": {"$dynamicRef": "#x"}}}, "schema.$defs.a.$dynamicRef", "not supported"),
        ({"properties": {"a": {"$anchor": "x"}}}, "schema.properties.a.$anchor", "not supported"),
        ({"properties": {"a": {"$id": "urn:x"}}}, "schema.properties.a", "at the top of the document only"),
        ({"pattern": "01234567890"}, "schema", "a pattern has 11 characters; the limit is 10"),
        ({"items": {"patternProperties": {"a": {}, "b": {}, "c": {}}}}, "schema", "it has 3 patterns; the limit is 2"),
        ({"properties": {str(number): {} for number in range(20)}}, "schema", "it comes to 21 schemas"),
        (doubling(60), "schema", "it comes to 1,000,000,000 schemas with each $ref written out; the limit is 20"),
        (chained(200), "schema.$ref.items.$ref", "nested deeper than 150"),
    ],
)
def test_any_other_is_refused_with_the_place_and_the_reason(document: Any, field: str, words: str) -> None:
    with pytest.raises(OjsError) as refused:
        checked(document, LIMITS)
    error = refused.value
    assert (error.code, error.canonical) == ("invalid_request", "INVALID_SCHEMA")
    assert words in error.message
    assert words in error.details["schema_error"]
    assert error.details["field"].startswith(field)


def test_lists_of_items_are_read_as_older_drafts_have_them_unless_the_document_says_its_draft() -> None:
    old = {"items": [{"type": "string"}, {"properties": {"a": {"items": [True]}}}], "additionalItems": False}
    assert modern(old) == {
        "prefixItems": [{"type": "string"}, {"properties": {"a": {"prefixItems": [True]}}}],
        "items": False,
    }
    said = {"$schema": DIALECT} | old
    assert modern(said) == said


@each(
    ("document", "looks"),
    [
        ({}, 1),
        ({"properties": {"a": {}, "b": {"items": {}}}, "prefixItems": [{}, {}]}, 1),
        ({"anyOf": [{}, {"allOf": [True, True]}]}, 5),
        ({"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"oneOf": [{}, {}]}}}, 4),
        ({"allOf": [{"properties": {"a": {}}}, {"additionalProperties": {"not": {}}}]}, 3),
        ({"allOf": [{"items": {"anyOf": [{}, {}]}}, {"items": {"anyOf": [{}, {}]}}]}, 6),
        ({"if": {}, "then": {}, "else": {}, "dependentSchemas": {"a": {}}}, 5),
        ({"patternProperties": {"a": {"not": {}}, "b": {}}, "properties": {"c": {}}}, 21),
        ({"patternProperties": {"a": {"anyOf": [{}] * 30}}}, 31),
        ({"anyOf": [{"pattern": "a"}, {"pattern": "b"}]}, 23),
        ({"items": [{"anyOf": [{}]}]}, 2),
    ],
)
def test_branching_is_how_many_schemas_look_at_one_value(document: Any, looks: int) -> None:
    checked(document, DEFAULT_LIMITS)
    assert branching(document, lambda _pattern: 10) == looks
