from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.strict import Strict, require_metadata
from support.tables import each

DRAFT = Job(id="j", type="mail.send", args=Raw(b"[]"), state=State.AVAILABLE)


def raw(value: object) -> Raw:
    return Raw(json.dumps(value).encode())


def refused(strict: Strict, draft: Job, *, registered: bool = True) -> OjsError:
    with pytest.raises(OjsError) as caught:
        strict.require(draft, registered=registered)
    return caught.value


@pytest.mark.parametrize(
    ("types", "registered"), [(("mail.send",), False), (("mail.*",), False), (("*",), False), ((), True), (("sms.*",), True)]
)
def test_a_type_in_the_list_or_with_a_schema_is_taken(types: tuple[str, ...], registered: bool) -> None:
    Strict(types).require(DRAFT, registered=registered)


@pytest.mark.parametrize("types", [(), ("mail",), ("sms.*",), ("mail.send.*",)])
def test_any_other_type_is_refused(types: tuple[str, ...]) -> None:
    error = refused(Strict(types), DRAFT, registered=False)
    assert (error.code, error.info.status) == ("job_type_not_registered", 422)
    assert error.message.startswith('type "mail.send" is not registered')
    assert "allowed_types" in error.hint


def test_attributes_that_nobody_defines_are_refused_by_their_names() -> None:
    error = refused(Strict(), replace(DRAFT, extra={"zeta": raw(1), "colour": raw("secret")}))
    assert (error.code, error.info.status) == ("unknown_attributes", 422)
    assert error.details == {"field": "colour", "attributes": ["colour", "zeta"]}
    assert "secret" not in error.message


def test_the_names_of_many_attributes_are_cut() -> None:
    error = refused(Strict(), replace(DRAFT, extra={f"a{number:02d}": raw(1) for number in range(12)}))
    assert error.message.endswith(" and 2 more")
    assert len(error.details["attributes"]) == 10


@each("key", ["", "a b", "a:b", "ä", "a\r\nSet-Cookie", "k" * 129, "a\n"])
@each("member", ["meta", "metadata"])
def test_a_key_of_metadata_that_could_not_be_a_headers_name_is_refused(member: str, key: str) -> None:
    error = refused(Strict(), replace(DRAFT, **{member: raw({"fine": 1, key: 1})}))
    assert (error.code, error.canonical, error.details["field"]) == ("invalid_request", "INVALID_METADATA", member)


@pytest.mark.parametrize("value", ["a\nb", "a\r", ["x", {"y": "\n"}], {"a\nb": 1}])
def test_a_value_with_a_line_break_is_refused_however_deep(value: Any) -> None:
    error = refused(Strict(), replace(DRAFT, meta=raw({"note": value})))
    assert (error.code, error.details["field"]) == ("invalid_request", "meta.note")


def test_other_metadata_is_taken() -> None:
    meta = {"k" * 128: "tab\tand \u2028", "a.b_c-1": [1, None, {"deep": True}], "trace": "00-ab-cd-01"}
    Strict().require(replace(DRAFT, meta=raw(meta), metadata=raw({})), registered=True)
    require_metadata(raw({}), "meta")
