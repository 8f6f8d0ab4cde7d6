from __future__ import annotations

import random
import time
from typing import Any

import msgspec
import pytest
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_features.schemas.validator import MAX_FINDINGS, Validator
from support.tables import each

EMAIL = {
    "type": "array",
    "prefixItems": [
        {"type": "string", "format": "email"},
        {"enum": ["welcome", "invoice"]},
        {"type": "object", "properties": {"locale": {"type": "string", "maxLength": 5}}, "required": ["locale"]},
    ],
    "minItems": 2,
}


def raw(value: Any) -> Raw:
    return Raw(msgspec.json.encode(value))


def found(schema: Any, args: Any) -> list[tuple[str, str]]:
    return [(one.path, one.schema_path) for one in Validator(raw(schema)).findings(raw(args))]


def test_arguments_that_fit_have_no_findings() -> None:
    assert found(EMAIL, ["ada@example.com", "welcome", {"locale": "en"}]) == []


def test_a_finding_names_the_place_in_the_arguments_and_the_keyword() -> None:
    assert found(EMAIL, ["nobody", "farewell", {"locale": "english"}]) == [
        ("args[0]", "prefixItems/0/format"),
        ("args[1]", "prefixItems/1/enum"),
        ("args[2].locale", "prefixItems/2/properties/locale/maxLength"),
    ]
    assert found(EMAIL, ["ada@example.com"]) == [("args", "minItems")]


def test_no_value_is_in_a_finding() -> None:
    findings = Validator(raw(EMAIL)).findings(raw(["hunter2", "hunter2", {"locale": "hunter2"}]))
    assert len(findings) == 3
    assert "hunter2" not in repr(findings)


def test_a_schema_of_an_object_is_about_the_only_argument() -> None:
    schema = {"type": "object", "required": ["to"], "properties": {"to": {"type": "string"}}}
    assert found(schema, [{"to": "ada"}]) == []
    assert found(schema, [{"to": 1}]) == [("args[0].to", "properties/to/type")]
    assert found(schema, []) == [("args", "type")]
    assert found(schema, [{"to": "ada"}, 2]) == [("args", "type")]


def test_lists_of_items_hold_each_in_its_place() -> None:
    assert found({"type": "array", "items": [{"type": "string"}]}, ["a", 5]) == []
    assert found({"type": "array", "items": [{"type": "string"}]}, [5]) == [("args[0]", "prefixItems/0/type")]


def test_small_arguments_get_several_findings_and_large_ones_the_first() -> None:
    schema = {"items": {"type": "string"}}
    assert len(found(schema, [1] * 100)) == MAX_FINDINGS
    assert found(schema, [1] * 100_000) == [("args[0]", "items/type")]


def test_what_would_take_long_is_not_begun() -> None:
    schema = {"items": {"anyOf": [{"const": -number} for number in range(1, 900)] + [{}]}}
    numbers = list(range(100_000))
    began = time.process_time()
    [finding] = Validator(raw(schema)).findings(raw(numbers))
    assert time.process_time() - began < 5
    assert "the limit is 18,6" in finding.message
    assert Validator(raw({"items": {"type": "integer"}})).findings(raw(numbers)) == ()


def test_a_pattern_that_takes_long_for_each_letter_is_for_short_texts_only() -> None:
    choice = random.Random(1)
    texts = ["".join(choice.choice("xy") for _ in range(length)) for length in (10_000, 1_000_000)]
    heavy, light = Validator(raw({"items": {"pattern": "x[xy]{250}z"}})), Validator(raw({"items": {"pattern": "^[A-Z]{3}$"}}))
    began = time.process_time()
    assert [one.schema_path for text in texts for one in heavy.findings(raw([text]))] == ["items/pattern", ""]
    assert [one.schema_path for text in texts for one in light.findings(raw([text]))] == ["items/pattern", "items/pattern"]
    assert time.process_time() - began < 5


def test_a_pattern_takes_time_that_grows_with_the_text_alone() -> None:
    validator = Validator(raw({"items": {"pattern": "^(a+)+$"}}))
    began = time.process_time()
    assert validator.findings(raw(["a" * 100_000 + "!"]))
    assert time.process_time() - began < 5, "two to the power of a hundred thousand steps would take longer"


@pytest.mark.parametrize("number", [2**70, -(2**70), 1e300])
def test_numbers_of_any_size_are_compared(number: float) -> None:
    assert bool(found({"items": {"maximum": 5}}, [number])) is (number > 5)


@each(
    ("schema", "words"),
    [
        ({"type": "text"}, "not valid draft 2020-12"),
        ({"minItems": -1}, "not valid draft 2020-12"),
        ({"required": "a"}, "not valid draft 2020-12"),
        ({"pattern": "(?=a)b"}, "linear time"),
        ({"pattern": r"(a)\1"}, "linear time"),
        ({"pattern": "(?:a{1000}){1000}"}, "linear time"),
        ({"pattern": "("}, "linear time"),
        ({"$schema": "https://json-schema.org/draft/2020-12/schema", "items": [{}]}, "not valid draft 2020-12"),
        ({"$ref": "http://127.0.0.1:1/x"}, "http://127.0.0.1:1/x"),
    ],
)
def test_what_is_no_schema_is_refused(schema: Any, words: str) -> None:
    with pytest.raises(OjsError) as refused:
        Validator(raw(schema))
    assert refused.value.code == "invalid_request"
    assert words in refused.value.message
