"""Options of a job: retry policy, uniqueness, limits, times.

A duration is seconds (`30`, `0.5`), a text (`"30s"`, `"1h30m"`) or a `timedelta`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypedDict

from ojs_api import words
from ojs_api.jobs import DEFAULT_QUEUE
from ojs_nats import _deprecated
from ojs_nats._durations import Duration

__all__ = ["DEFAULT_QUEUE", "DefinitionOptions", "Options", "Rate", "RateLimit", "Retry", "Unique"]


@dataclass(frozen=True)
class Retry:
    """A retry policy: how often and when a failed job runs again (ojs-retry §3).

    The n-th pause is `initial_interval * backoff_coefficient ** (n - 1)`, at most `max_interval`.

    Args:
        max_attempts: All attempts together, the first one included.
        initial_interval: The first pause, in seconds or as `"30s"`.
        backoff_coefficient: The factor from one pause to the next, at least 1.
        max_interval: The longest pause. None means five minutes, or `initial_interval` if that is longer.
        jitter: Whether each pause is multiplied by a random number from 0.5 to 1.5.
        non_retryable_errors: Names of error classes that end the job at once. `"auth.*"` names all that begin with
            `auth.`.
        on_exhaustion: The end of a job that has failed for good: `"discard"`, or `"dead_letter"` to keep it as a dead
            letter.

    Example:
        >>> Retry(5, initial_interval="10s", non_retryable_errors=["ValueError"], on_exhaustion="dead_letter").max_attempts
        5
    """

    max_attempts: int = 3
    initial_interval: Duration = 1.0
    backoff_coefficient: float = 2.0
    max_interval: Duration | None = None
    jitter: bool = True
    non_retryable_errors: Sequence[str] = ()
    on_exhaustion: words.Exhaustion = "discard"


@dataclass(frozen=True)
class Unique:
    """A policy of uniqueness: only one job of the same identity may wait or run at a time (ojs-unique-jobs).

    Args:
        keys: The parts of a job that make its identity.
        period: For how long after its push a job counts, in seconds or as `"1h"`. None means without a limit, while it
            is in one of `states`.
        on_conflict: The answer to a second push: `"reject"` raises `DuplicateError`, `"ignore"` returns the first job,
            `"replace"` cancels the first job, `"replace_except_schedule"` replaces it and keeps its time.
        states: The states in which a job counts. None means all states but `completed`, `cancelled` and `discarded`.

    Example:
        >>> Unique(keys=["type", "args"], period="1h", on_conflict="ignore").on_conflict
        'ignore'
    """

    keys: Sequence[words.Identity] = ("type", "args")
    period: Duration | None = None
    on_conflict: words.OnConflict = "reject"
    states: Sequence[str] | None = None


@dataclass(frozen=True)
class Rate:
    """A rate: at most `limit` starts in any `period`.

    Args:
        limit: How many jobs may start, at least 1.
        period: The time, in seconds or as `"1m"`.

    Example:
        >>> Rate(100, "1m").limit
        100
    """

    limit: int
    period: Duration = 1.0


@dataclass(frozen=True)
class RateLimit:
    """A limit that all jobs with the same `key` share.

    Args:
        key: The name of the limit.
        concurrency: How many of the jobs may run at once. None means any number.
        rate: How many may start in a period. None means any number.
        throttle: The same, with the starts evenly spaced. None means any number.
        on_limit: What happens to a job over the limit: `"wait"` keeps it available, `"reschedule"` schedules it for
            later, `"drop"` discards it.

    Example:
        >>> RateLimit("stripe", concurrency=5, rate=Rate(100, "1m")).key
        'stripe'
    """

    key: str
    concurrency: int | None = None
    rate: Rate | None = None
    throttle: Rate | None = None
    on_limit: words.OnLimit = "wait"


class Options(TypedDict, total=False):
    """The options of a job. A push and `JobDefinition.options` take them as keywords, and so does `App.job`.

    Durations are seconds, a text such as `"30s"`, or a `timedelta`.

    Attributes:
        queue: The queue; `"default"` if it isn't given.
        retry: The retry policy; without it, that of the queue or the server.
        timeout: How long an attempt may run.
        total_timeout: How long all attempts and the pauses between them may take together.
        enqueue_ttl: How long the job may wait for its first attempt before it is discarded.
        heartbeat_timeout: After how long without a heartbeat the server gives the job to another worker.
        grace_period: How long the handler may go on when the job is stopped.
        result_ttl: How long the server keeps the result. None keeps the job and its result for good. If it isn't given,
            the result stays as long as the job.
        priority: From -100 to 100; higher ones run first. 0 if it isn't given.
        unique: The policy of uniqueness; without it, equal jobs may exist.
        rate_limit: A limit that the job shares with others.
        version: The version of the job's type, for workers that run several.
        schema: The URI of the schema that the arguments have to fit.
        pending: Whether the job waits until `client.jobs.activate` is called.
        delay: After how long the job may run.
        scheduled_at: When the job may run, as a `datetime` with a time zone. Give `delay` or `scheduled_at`, not both.
        expires_at: When the job is discarded if it hasn't started, as a `datetime` with a time zone.
        tags: Words to find the job by.
        meta: Data that the job carries besides its arguments, as JSON.
    """

    queue: str
    retry: Retry
    timeout: Duration
    total_timeout: Duration
    enqueue_ttl: Duration
    heartbeat_timeout: Duration
    grace_period: Duration
    result_ttl: Duration | None
    priority: int
    unique: Unique
    rate_limit: RateLimit
    tags: Sequence[str]
    meta: dict[str, Any]
    version: int | str
    schema: str
    pending: bool
    delay: Duration
    scheduled_at: datetime
    expires_at: datetime


class DefinitionOptions(Options, total=False):
    """The options of a definition: those of its jobs, and two that only its worker reads.

    Attributes:
        soft_timeout: After how long the handler is sent `SoftTimeout`, so that it may save its work before `timeout`.
        runs_in: Where a plain function runs: `"thread"` (the default), or `"process"` for a process of the worker's
            pool.
    """

    soft_timeout: Duration
    runs_in: Literal["thread", "process"]


_deprecated.arguments(
    Retry,
    attempts="max_attempts",
    initial="initial_interval",
    coefficient="backoff_coefficient",
    not_for="non_retryable_errors",
    then="on_exhaustion",
)
_deprecated.arguments(Unique, by="keys")
