"""What is refused of a schema besides members of the wrong kind or size (tests/unit/api)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_features.schemas.bodies import parse_schema
from support.tables import each

GOOD = {"type": "mail.send", "version": "1.0.0", "schema": {"type": "array", "minItems": 2}}


@each(
    ("change", "field", "status"),
    [
        ({"schema": {"type": "text"}}, "schema.type", 400),
        ({"schema": {"$ref": "http://169.254.169.254/"}}, "schema.$ref", 400),
        ({"schema": {"pattern": "(?!a)"}}, "schema.pattern", 400),
        ({"schema": {"description": "x" * 65_536}}, "schema", 413),
        ({"uri": "no uri"}, "uri", 400),
        ({"validation": {"default_mode": "warn"}}, "validation.default_mode", 422),
        ({"compatible_with": ["1.0"]}, "compatible_with", 422),
    ],
)
def test_a_registration_that_can_not_be_is_refused_by_its_field(change: dict[str, Any], field: str, status: int) -> None:
    with pytest.raises(OjsError) as refused:
        parse_schema(msgspec.json.encode(GOOD | change), DEFAULT_LIMITS)
    assert (refused.value.info.status, refused.value.details["field"]) == (status, field)
