"""Members of jobs that answers of several subjects have."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct, field

from ojs_api.members import REQUIRED, Count, Moment, OpenAnswer, Uuid, one_of
from ojs_api.words import Backoff, Exhaustion

_Generation = Annotated[
    int, Meta(extra_json_schema={"minimum": 1}, description="How many manual retries the job had seen by then.")
]
_Interval = Annotated[str, Meta(description="A duration such as PT30S (ISO 8601).")]


class RetryPolicy(OpenAnswer, frozen=True, kw_only=True):
    """A job's effective retry policy (ojs-retry §3). Its intervals are ISO 8601 durations."""

    max_attempts: Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": 10_000})]
    initial_interval: _Interval
    backoff_coefficient: Annotated[float, Meta(extra_json_schema={"minimum": 1})]
    max_interval: _Interval
    jitter: bool
    non_retryable_errors: Annotated[list[str], Meta(extra_json_schema={"maxItems": 100})]
    on_exhaustion: Annotated[str, one_of(Exhaustion)]
    backoff_strategy: Annotated[str, one_of(Backoff)]


class SkippedJob(Struct, frozen=True):
    """A job that was left as it is, and why."""

    job_id: Uuid
    error: str


class JobError(Struct, frozen=True, omit_defaults=True):
    """The error of an attempt.

    Attributes:
        message: The text of the exception.
        code: The kind of failure: `handler_error`, `timeout`, `invalid_arguments`. None if the worker didn't say.
        type: The name of the exception's class. None if the worker didn't say.
        attempt: The number of the attempt, from 1.
        details: More about the error. Python workers add `where`.
        backtrace: The backtrace as the worker sent it, a text or a list of lines. `trace` is the same as one text.
        occurred_at: When the attempt failed.
        retryable: Whether the worker said that the job may be tried again. None if it didn't say.
        retry_generation: How many times the job had been retried by hand. None if it hadn't.
    """

    message: str = field(default_factory=str)
    code: Annotated[str, REQUIRED] | None = None
    type: Annotated[str, REQUIRED] | None = None
    attempt: Annotated[Count, REQUIRED] | None = None
    details: Any = None
    backtrace: Any = None
    occurred_at: Annotated[Moment, REQUIRED] | None = None
    retryable: bool | None = None
    retry_generation: _Generation | None = None

    @property
    def where(self) -> str | None:
        """The place in the application that raised the error, as `app/jobs.py:12 in send_email`. None if the worker
        didn't say.
        """
        place = self.details.get("where") if isinstance(self.details, dict) else None
        return place if isinstance(place, str) else None

    @property
    def trace(self) -> str:
        """The backtrace as one text. "" if there is none."""
        found = self.backtrace if self.backtrace is not None else _traced(self.details)
        lines = found if isinstance(found, list) else [found or ""]
        return "\n".join(str(line).rstrip("\n") for line in lines)


def _traced(details: Any) -> Any:
    """Return the backtrace that some clients put among the details."""
    return details.get("backtrace") or details.get("stack_trace") if isinstance(details, dict) else None
