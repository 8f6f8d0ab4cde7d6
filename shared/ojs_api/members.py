"""Types of members of requests and answers.

Types are those that readers have: a moment is a `datetime`, an object a `dict`, an absent member None. The server
gives what it has in its written form as it is: a moment as text, JSON undecoded (`ojs_engine.wire.members.written`).

Members of requests are held to their types and bounds. Those of answers have their bounds and words in the description
alone, since a later server may send others.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

from msgspec import Meta, Raw, Struct, field

if TYPE_CHECKING:
    Undecoded = Any
else:
    Undecoded = Raw
"""JSON in a request: who sends it gives a value, and the server gets it undecoded."""

Moment = Annotated[datetime, Meta(extra_json_schema={"format": "date-time"})]
Count = Annotated[int, Meta(extra_json_schema={"minimum": 0})]
JsonObject = Annotated[dict[str, Any], Meta(extra_json_schema={"type": "object"})]
JsonList = Annotated[list[Any], Meta(extra_json_schema={"type": "array"})]
Uuid = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
Part = Annotated[float, Meta(extra_json_schema={"minimum": 0, "maximum": 1})]
Measure = Annotated[float, Meta(extra_json_schema={"minimum": 0})]


MOST_WHOLE: Final = 2**53 - 1
"""The highest whole number that every reader of JSON has."""
LONGEST_MS: Final = 10 * 366 * 86_400_000
"""Ten years: the longest duration that a client may name."""
HIDDEN: Final = Meta(extra={"hidden": True})
"""The mark of a member that is taken and isn't described; of an answer, of one that the client adds."""
REQUIRED: Final = Meta(extra={"required": True})
"""The mark of a member that is described as required, though readers take it for absent, or another name of it may stand
in for it.
"""
MAY_LACK: Final = Meta(extra={"required": False})
"""The mark of a member that is described as one that may be absent, though it has no default that says so."""

SECRET: Final = Meta(extra={"secret": True})
"""The mark of a member that no refusal shows."""


def wanted(words: str) -> Meta:
    """Return the words for what a member has to be, for refusals: `it must be …`."""
    return Meta(extra={"wanted": words})


def unsupported(reason: str) -> Meta:
    """Return the mark of a member that is refused as unsupported, with what a refusal says of it."""
    return Meta(extra={"hidden": True, "unsupported": reason})


def refused_as(code: str) -> Meta:
    """Return the specification's code for a refusal of a member."""
    return Meta(extra={"canonical": code})


def one_of(words: Any) -> Meta:
    """Return the words of a `Literal` that an answer has today, for its description."""
    return Meta(extra_json_schema={"enum": sorted(get_args(words))})


def described_as(name: str, words: Any) -> Meta:
    """Return the words of a `Literal` that an answer has today, which stand in the description once, under a name."""
    return Meta(extra_json_schema={"type": "string", "enum": [*get_args(words)]}, extra={"named": name})


def whole(low: int, high: int) -> Meta:
    """Return the bounds of a whole number in a request, of type `int | float`: 5.0 counts as one. The server checks it."""
    schema = {"type": "integer", "minimum": low, "maximum": high}
    return Meta(extra_json_schema=schema, extra={"wanted": f"an integer from {low} to {high}"})


def listed(most: int, least: int | None = None) -> Meta:
    """Return the size of a list in a request, for its description. The server checks it."""
    return Meta(extra_json_schema={"maxItems": most} if least is None else {"minItems": least, "maxItems": most})


def shaped(hint: Any) -> Meta:
    """Return the type of what the server leaves undecoded, for its description."""
    return Meta(extra={"shaped": hint})


AttemptNumber = Annotated[int | float, whole(1, MOST_WHOLE)]
"""Which attempt of a job a request is about."""
Ignored = Annotated[Any, HIDDEN]
"""A member of an answer that may come back in a request, where it has no effect."""


Text = Annotated[str, Meta(min_length=1, max_length=255), wanted("a text of 1 to 255 printable characters")]
SentMoment = Annotated[str, Meta(extra_json_schema={"format": "date-time"}), wanted("an RFC 3339 timestamp with a zone")]
Duration = Annotated[
    int | float | str,
    Meta(
        description="Seconds, or a duration.",
        extra_json_schema={"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]},
    ),
    wanted("a number of seconds, or a duration such as PT30S or 5m"),
]
DurationMs = Annotated[
    int | float | str,
    Meta(
        description="Milliseconds, or a duration.",
        extra_json_schema={
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": LONGEST_MS},
                {"type": "string", "description": "A duration such as PT30S (ISO 8601)."},
            ]
        },
    ),
    wanted("a number or a duration"),
]
Whole = Annotated[int, Meta(ge=-MOST_WHOLE, le=MOST_WHOLE)]
"""An integer that has no limits of its own."""
ShortText = Annotated[
    str,
    Meta(extra_json_schema={"minLength": 1, "maxLength": 255}),
    wanted("a text of 1 to 255 printable characters"),
]
"""As `Text`. The server checks it itself, after what it reads often is decoded."""
QueueName = Annotated[str, Meta(extra_json_schema={"pattern": r"^[a-z0-9][a-z0-9.\-]*$", "maxLength": 255})]
"""The name of a queue. The server checks it itself, as it does a job type."""
TypeName = Annotated[
    str, Meta(extra_json_schema={"pattern": r"^[a-z][a-zA-Z0-9_\-]*(\.[a-z][a-zA-Z0-9_\-]*)*$", "maxLength": 255})
]
"""A job type. The server checks it itself: a refusal has a code of its own."""
Version = Annotated[
    Annotated[int, Meta(ge=0)] | Annotated[str, Meta(max_length=255, pattern=r"^\d+(\.\d+){0,2}(-[0-9A-Za-z.\-]+)?$")],
    Meta(description="SemVer, of which minor and patch may be left out."),
    wanted("a version such as 2, 2.0 or 2.0.0-rc.1 (SemVer), as a text or a whole number"),
]


class OpenAnswer(Struct, frozen=True):
    """The base of answers that may have members beside their own, such as those that a client has added."""


class OpenRequest(Struct):
    """The base of requests that may have members beside their own, such as those of a job."""


class AnswerWarning(Struct, frozen=True):
    """What was taken although something is not as it should be: the member of the request, and what about it."""

    field: str
    message: str


Warnings = Annotated[list[AnswerWarning], Meta(description="What was taken although something is not as it should be.")]


class ItemError(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why one item of a request was refused.

    Attributes:
        canonical_code: The specification's word, if `code` is another.
    """

    code: Annotated[str, Meta(description="What went wrong, for programs.")]
    message: Annotated[str, Meta(description="What went wrong, for people: the field, the limit, and what was sent.")]
    retryable: Annotated[bool, MAY_LACK] = field(default_factory=bool)
    details: Annotated[dict[str, Any], Meta(description="More, by the code: `field`, `job_id`, `max_bytes` and others.")] = {}
    canonical_code: Annotated[str, Meta(description="The specification's name for it, or a more exact one.")] | None = None
