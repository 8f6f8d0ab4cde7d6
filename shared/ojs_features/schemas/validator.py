"""Arguments against a schema, by a compiled validator (docs/adr/047).

The library is written in Rust. It is told to fetch nothing, to match patterns in linear time, which it can without
look-around and back-references, and to leave values out of its messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import jsonschema_rs
import msgspec
from msgspec import Raw

from ojs_engine.operations.job_checks import JobWarning
from ojs_features.schemas.document import branching, modern, refused

MAX_FINDINGS: Final = 20
_MOST_WORK: Final = 16 * 1_048_576
"""Bytes of arguments, times how many schemas may look at one value: some 20 ns each, while nobody else is answered."""
_LISTED_WORK: Final = 16_384
"""The library finds all problems at once or the first one; all of large arguments could be hundreds of thousands."""
_PATTERN_BYTES: Final = (2_048, 4_096, 8_192, 16_384, 32_768, 65_536)
"""What a pattern may take when it is compiled: the last is the most; the first that is enough says how long a byte takes."""
_BYTES_A_LOOK: Final = 512
"""A pattern of so many bytes takes as long for a byte of text as a schema does for a byte of arguments, at worst."""
_LONGEST: Final = 200
_MASK: Final = "the value"

_decode: Final = msgspec.json.Decoder().decode


class Finding(JobWarning, frozen=True):
    """A fault of a job's arguments, with the keyword of the schema that it is one by."""

    schema_path: str


class Validator:
    """A compiled schema. It is about all arguments, or, if its type is `object`, about the only one."""

    def __init__(self, document: Raw) -> None:
        """Of a document that was `checked`. Raises OjsError invalid_request for what isn't JSON Schema 2020-12."""
        sent = _decode(document)
        schema = modern(sent)
        self._of_one = type(schema) is dict and schema.get("type") == "object"
        try:
            self._compiled = jsonschema_rs.Draft202012Validator(
                schema,
                validate_formats=True,
                mask=_MASK,
                pattern_options=_options(_PATTERN_BYTES[-1]),
                offline=True,
            )
        except jsonschema_rs.ValidationError as error:
            raise refused(".".join(map(str, error.instance_path)), _unsuitable(error)) from None
        except jsonschema_rs.ReferencingError as error:
            raise refused("", error.message[:_LONGEST]) from None
        self._branching = branching(sent, _weight)

    def findings(self, args: Raw) -> Sequence[Finding]:
        """What is wrong with the arguments, the first things of it; nothing if they fit."""
        place = "args"
        work = len(args) * self._branching
        if work > _MOST_WORK:
            most = _MOST_WORK // self._branching
            message = f"{len(args):,} bytes are too much to hold them to a schema with so many branches; the limit is {most:,}"
            return (Finding(place, message, ""),)
        value: Any = _decode(args)
        if self._of_one:
            if len(value) != 1:
                message = f"the schema is of one object, so there must be one argument, not {len(value)}"
                return (Finding(place, message, "type"),)
            value, place = value[0], "args[0]"
        if self._compiled.is_valid(value):
            return ()
        if work <= _LISTED_WORK:
            return [_finding(error, place) for error in islice(self._compiled.iter_errors(value), MAX_FINDINGS)]
        try:
            self._compiled.validate(value)
        except jsonschema_rs.ValidationError as error:
            return (_finding(error, place),)
        return ()


def _options(size: int) -> jsonschema_rs.RegexOptions:
    return jsonschema_rs.RegexOptions(size_limit=size, dfa_size_limit=_PATTERN_BYTES[-1])


def _weight(pattern: str) -> int:
    """How many schemas a pattern counts as, by its size when it is compiled."""
    for size in _PATTERN_BYTES:
        try:
            jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=_options(size), offline=True)
        except jsonschema_rs.ValidationError:
            continue
        return size // _BYTES_A_LOOK
    return _PATTERN_BYTES[-1] // _BYTES_A_LOOK


def _finding(error: jsonschema_rs.ValidationError, place: str) -> Finding:
    steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path]
    schema_path = "/".join(map(str, error.schema_path))
    return Finding((place + "".join(steps))[:_LONGEST], error.message[:_LONGEST], schema_path[:_LONGEST])


def _unsuitable(error: jsonschema_rs.ValidationError) -> str:
    if error.message.endswith('is not a "regex"'):
        return "it is no pattern that can be matched in linear time: no look-around, no back-references, no large repetitions"
    return f"not valid draft 2020-12: {error.message[:_LONGEST]}"
