"""Schemas that several parts of the API share: jobs, errors, pages."""

from __future__ import annotations

from typing import Final, get_args

import msgspec

from ojs_api import operations, words
from ojs_api import pages as contract
from ojs_api.limits import MAX_CONCURRENCY
from ojs_engine.api.route import Parameter
from ojs_engine.api.schema import (
    ANYTHING,
    TEXT,
    Named,
    either,
    map_of,
    number,
    one_of,
    record,
    text,
    whole,
)
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.wire.pages import ADMIN_PAGE, DEFAULT_PAGE, MAX_NUMBERED, MAX_PAGE

COUNT: Final = whole(0)
JOB_ID: Final = {"type": "string", "format": "uuid"}
SHORT: Final = {"type": "string", "minLength": 1, "maxLength": DEFAULT_LIMITS.max_text_chars}
QUEUE_NAME: Final = text(pattern=r"^[a-z0-9][a-z0-9.\-]*$", most=DEFAULT_LIMITS.max_queue_bytes)
TYPE_NAME: Final = text(pattern=r"^[a-z][a-zA-Z0-9_\-]*(\.[a-z][a-zA-Z0-9_\-]*)*$", most=DEFAULT_LIMITS.max_type_bytes)
VERSION: Final = either(
    whole(0),
    text(pattern=r"^\d+(\.\d+){0,2}(-[0-9A-Za-z.\-]+)?$", most=255),
    about="SemVer, of which minor and patch may be left out.",
)
PRIORITY: Final = either(whole(-100, 100), one_of(*get_args(words.PriorityName)))
DURATION: Final = text("A duration such as PT30S (ISO 8601).")
OBJECT: Final = map_of(ANYTHING)
PUSH_REFUSALS: Final = operations.PUSH_REFUSALS

# Lists


def _paged(standard: int, most: int) -> tuple[Parameter, ...]:
    return tuple(Parameter(each.name, msgspec.json.schema(each.kind), each.about) for each in contract.paged(standard, most))


PAGED: Final = _paged(DEFAULT_PAGE, MAX_PAGE)
"""What `parse_page` reads."""
NUMBERED: Final = _paged(ADMIN_PAGE, MAX_NUMBERED)
"""What it reads for lists that count pages."""


IDEMPOTENCY_KEY: Final = Parameter(
    "Idempotency-Key",
    text(most=DEFAULT_LIMITS.max_idempotency_chars),
    "A request with the key of an earlier one gets that one's answer.",
    "header",
)

CONCURRENCY: Final = whole(0, MAX_CONCURRENCY, "How many at once; 0 lets none start.")
RATE: Final = Named(
    "Rate",
    record(
        {"limit": whole(1)}, {"period": either(number(0), TEXT, about="A duration, second, minute, hour or day, or seconds.")}
    ),
)
