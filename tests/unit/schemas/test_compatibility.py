from __future__ import annotations

from typing import Any

import pytest

from ojs_engine.base.errors import OjsError
from ojs_features.schemas.compatibility import check_compatible, gaps
from support.tables import each
from unit.schemas.samples import record

STRING = {"type": "string"}


def differences(before: Any, after: Any, *, removals: bool = True) -> list[str]:
    return list(gaps(record(before, "1.0.0"), record(after, "1.1.0"), removals=removals))


@each(
    ("before", "after", "gap"),
    [
        # ojs-schema-registry §8.2
        ({"properties": {"a": STRING}}, {"properties": {"a": STRING}, "required": ["a"]}, "args.a: required in 1.1.0"),
        ({"properties": {"a": STRING, "b": STRING}}, {"properties": {"a": STRING}}, "args.b: named in 1.0.0"),
        ({"properties": {"a": {"type": "integer"}}}, {"properties": {"a": STRING}}, "args.a: type integer of 1.0.0"),
        ({"maxLength": 100}, {"maxLength": 50}, "args: maxLength is 50 in 1.1.0 and 100 in 1.0.0"),
        ({"type": "object"}, {"type": "object", "additionalProperties": False}, "args.*: 1.1.0 allows nothing there"),
        # what else can be compared
        ({}, {"type": "array"}, 'args: type is "array" in 1.1.0 and anything'),
        ({"type": ["string", "null"]}, STRING, "args: type null of 1.0.0"),
        ({"type": "number"}, {"type": "integer"}, "args: type number of 1.0.0"),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, "args: 1 of the values that 1.0.0 lists"),
        ({}, {"enum": ["a"]}, "args: values are listed in 1.1.0"),
        ({"enum": [True]}, {"enum": [1]}, "args: 1 of the values"),
        ({"const": 1}, {"const": 1, "enum": [2]}, "args: 1 of the values"),
        ({}, {"minimum": 0}, "args: minimum is 0 in 1.1.0 and not set in 1.0.0"),
        ({"minimum": 0}, {"minimum": 1}, "args: minimum is 1"),
        ({"minimum": 0}, {"exclusiveMinimum": 0}, "args: exclusiveMinimum is 0"),
        ({"maximum": 9}, {"maximum": 8}, "args: maximum is 8"),
        ({"exclusiveMaximum": 10}, {"exclusiveMaximum": 9}, "args: exclusiveMaximum is 9"),
        ({"multipleOf": 2}, {"multipleOf": 4}, "args: multipleOf is 4"),
        ({}, {"uniqueItems": True}, "args: uniqueItems is true"),
        ({"minItems": 1}, {"minItems": 2}, "args: minItems is 2"),
        ({"prefixItems": [STRING]}, {"prefixItems": [{"type": "integer"}]}, "args[0]: type string"),
        ({"prefixItems": [STRING, STRING]}, {"prefixItems": [STRING]}, "args[1]: described in 1.0.0"),
        ({"items": STRING}, {"items": {"type": "string", "minLength": 1}}, "args[]: minLength is 1"),
        ({"items": STRING}, {"prefixItems": [{"type": "integer"}], "items": STRING}, "args[0]: type string"),
        ({"additionalProperties": STRING}, {"properties": {"a": {"type": "null"}}}, "args.a: type string"),
        ({"items": [STRING]}, {"items": [{"type": "null"}]}, "args[0]: type string"),
        (
            {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": STRING}},
            {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "null"}}},
            "args[]: type string",
        ),
        # what can't
        ({"pattern": "^a"}, {"pattern": "^[ab]"}, "args: pattern differs, and whether that breaks anything can't be told"),
        ({}, {"anyOf": [STRING]}, "args: anyOf differs"),
        ({"if": STRING, "then": {"minLength": 1}}, {"if": STRING, "then": {"minLength": 2}}, "args: if differs"),
        ({"contains": STRING, "minContains": 1}, {"contains": STRING, "minContains": 2}, "args: contains differs"),
        ({"properties": {"a": True}}, {"properties": {"a": True}, "unevaluatedProperties": False}, "unevaluatedProperties"),
        (
            {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": STRING}},
            {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "null"}}},
            "args: allOf differs",
        ),
    ],
)
def test_what_breaks_is_named_with_its_place(before: Any, after: Any, gap: str) -> None:
    found = differences(before, after)
    assert any(gap in one for one in found), found


@each(
    ("before", "after"),
    [
        # ojs-schema-registry §8.3
        ({"properties": {"a": STRING}}, {"properties": {"a": STRING, "notes": STRING}}),
        ({"maxLength": 50}, {"maxLength": 100}),
        ({"enum": ["USD", "EUR"]}, {"enum": ["USD", "EUR", "GBP"]}),
        ({"additionalProperties": False}, {"additionalProperties": True}),
        # what else is none
        ({"type": "integer"}, {"type": "number"}),
        (STRING, {}),
        ({"const": "a"}, {"enum": ["a", "b"]}),
        ({"const": "a"}, STRING),
        ({"const": {"a": [1]}, "enum": [{"a": [1.0]}]}, {"enum": [{"a": [1]}]}),
        ({"minimum": 1}, {"exclusiveMinimum": 0}),
        ({"exclusiveMinimum": 0}, {"minimum": 0}),
        ({"minItems": 2}, {"minItems": 0}),
        ({"multipleOf": 4}, {"multipleOf": 2}),
        (STRING, {"type": "string", "minimum": 5}),
        ({"pattern": "^a", "title": "a"}, {"pattern": "^a", "title": "b", "description": "c"}),
        ({"anyOf": [STRING]}, {}),
        ({"prefixItems": [STRING]}, {"prefixItems": [STRING, STRING]}),
        ({"required": ["a"]}, {"required": []}),
        ({"items": STRING}, {"items": {"$ref": "#/$defs/a"}, "$defs": {"a": STRING}}),
        ({"properties": {"a": STRING}, "additionalProperties": False}, {"properties": {"a": {}, "b": {}}, "required": []}),
    ],
)
def test_what_breaks_nothing_is_let_pass(before: Any, after: Any) -> None:
    assert differences(before, after) == []


def test_a_member_that_is_gone_harms_no_data_where_others_are_allowed() -> None:
    before = {"properties": {"a": STRING, "b": STRING}}
    assert differences(before, {"properties": {"a": STRING}}, removals=False) == []
    closed = {"properties": {"a": STRING}, "additionalProperties": False}
    assert differences(before, closed, removals=False) != []


REQUIRED = {"type": "object", "properties": {"a": STRING}, "required": ["a"]}
OPTIONAL = {"type": "object", "properties": {"a": STRING}}


@each(
    ("compatibility", "before", "after", "version", "taken"),
    [
        (None, OPTIONAL, REQUIRED, "1.1.0", False),
        (None, OPTIONAL, REQUIRED, "2.0.0", True),
        (None, REQUIRED, OPTIONAL, "1.0.1", True),
        ("semver", OPTIONAL, REQUIRED, "1.0.1", False),
        ("none", OPTIONAL, REQUIRED, "1.1.0", True),
        ("backward", OPTIONAL, REQUIRED, "2.0.0", False),
        ("backward", REQUIRED, OPTIONAL, "1.1.0", True),
        ("forward", REQUIRED, OPTIONAL, "2.0.0", False),
        ("forward", OPTIONAL, REQUIRED, "1.1.0", True),
        ("full", OPTIONAL, REQUIRED, "2.0.0", False),
        ("full", REQUIRED, OPTIONAL, "2.0.0", False),
        ("full", OPTIONAL, OPTIONAL, "1.1.0", True),
    ],
)
def test_each_compatibility_holds_a_version_to_what_it_says(
    compatibility: Any, before: Any, after: Any, version: str, taken: bool
) -> None:
    new = record(after, version, compatibility=compatibility)
    if taken:
        check_compatible(new, record(before, "1.0.0"))
        return
    with pytest.raises(OjsError) as refused:
        check_compatible(new, record(before, "1.0.0"))
    error = refused.value
    assert (error.code, error.canonical, error.details["field"]) == ("invalid_request", "INCOMPATIBLE_SCHEMA", "schema")
    assert any(change.startswith("args.a: required in ") for change in error.details["breaking_changes"])


def test_a_minor_version_that_breaks_is_told_which_version_to_be() -> None:
    with pytest.raises(OjsError, match=r"version 1\.2\.0 introduces breaking changes compared to 1\.1\.0") as refused:
        check_compatible(record(REQUIRED, "1.2.0"), record(OPTIONAL, "1.1.0"))
    assert "2.0.0" in refused.value.hint
