"""Values of arguments: what can't be read is refused with how it is written."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final, cast, get_args

import msgspec

from ojs_api.words import JobState
from ojs_command.client.problems import UsageProblem
from ojs_engine.base.numbers import whole_number
from ojs_nats._command import worker
from ojs_nats._durations import milliseconds
from ojs_nats._json import decoded
from ojs_nats._names import job_type
from ojs_nats._requests import template
from ojs_nats.jobs import JobRequest
from ojs_nats.options import Options

STATES: Final = get_args(JobState)
"""Of jobs."""
_JSON_BEGINS: Final = ("{", "[", '"')


def duration(text: str) -> str:
    """As the client takes it."""
    try:
        milliseconds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def pushable(name: str, args: tuple[Any, ...], job_id: str | None = None, **options: Any) -> JobRequest[Any]:
    """Return a job, with the options that aren't None. Raises UsageProblem for what no server takes."""
    asked = cast("Options", {option: value for option, value in options.items() if value is not None})
    try:
        job_type(name.partition("@")[0])  # behind it may be a version
        new: JobRequest[Any] = JobRequest(name, args, asked, **({"id": job_id} if job_id else {}))
        template(new)
    except (ValueError, TypeError) as error:
        raise UsageProblem(f"{error}.") from None
    return new


def in_help(about: str) -> str:
    """Return a sentence of the API's description as the help of an option."""
    return about[:1].lower() + about[1:].removesuffix(".")


def when(text: str) -> datetime:
    """A time in ISO 8601; without a zone it is this machine's."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a time is written 2026-11-24T08:00 or 2026-11-24T08:00Z, not {text!r}") from None
    return found.astimezone() if found.tzinfo is None else found


def ago(text: str) -> datetime:
    """A time, or how long ago it was: `2h`."""
    try:
        age_ms = milliseconds(text)
    except ValueError:
        return when(text)
    return datetime.fromtimestamp(datetime.now(UTC).timestamp() - age_ms / 1_000, UTC)


def json_value(text: str) -> Any:
    """JSON; a word that isn't is a string, unless it begins as JSON does."""
    try:
        return decoded(text)
    except msgspec.DecodeError as error:
        if text.lstrip().startswith(_JSON_BEGINS):
            raise argparse.ArgumentTypeError(f"{text[:80]!r} is no JSON: {error}") from None
        return text


def job_args(texts: Iterable[str]) -> tuple[Any, ...]:
    """Arguments of a job, each as `json_value` reads it. Raises UsageProblem."""
    try:
        return tuple(map(json_value, texts))
    except argparse.ArgumentTypeError as error:
        raise UsageProblem(f"ARG: {error}.") from None


def member(text: str) -> tuple[str, Any]:
    """`name=value`, the value as `json_value` reads it."""
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"this is written name=value, not {text!r}")
    return name, json_value(value)


def header(text: str) -> tuple[str, str]:
    """`Name: value`, as curl takes it."""
    name, colon, value = text.partition(":")
    if not (name.strip() and colon) or any(sign in text for sign in "\r\n"):
        raise argparse.ArgumentTypeError("a header is written 'Name: value', in one line")
    return name.strip(), value.strip()


def token_in(path: str) -> str:
    """The key in a file. Raises UsageProblem."""
    try:
        return worker.token_in(path)
    except worker.WrongValue as problem:
        raise UsageProblem(str(problem)) from None


def positive(text: str) -> int:
    """A whole number from 1 on."""
    number = whole_number(text, 9)
    if not number:
        raise argparse.ArgumentTypeError(f"a whole number from 1 on is needed, not {text!r}")
    return number


def count(text: str) -> int:
    """A whole number from 0 on."""
    number = whole_number(text, 9)
    if number is None:
        raise argparse.ArgumentTypeError(f"a whole number from 0 on is needed, not {text!r}")
    return number


def seconds(text: str) -> float:
    """A duration in seconds."""
    found = milliseconds(duration(text)) / 1_000
    if not (math.isfinite(found) and found > 0):
        raise argparse.ArgumentTypeError(f"more than nothing is needed, not {text!r}")
    return found


def words(text: str) -> list[str]:
    """Several by commas."""
    return [word for word in text.split(",") if word]
