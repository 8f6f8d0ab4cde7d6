"""Options of a job: retry policy, uniqueness, limits, times.

A duration is seconds (`30`, `0.5`), a text (`"30s"`, `"1h30m"`) or a `timedelta`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypedDict, TypeVar, cast

from ojs_nats import _deprecated
from ojs_nats._checks import check_names
from ojs_nats._durations import LONGEST_MS, Duration, milliseconds, moment, written
from ojs_nats._names import among, limit_key, one_of, queue_name, short_text, short_texts, shown, within, yes_or_no
from ojs_nats._plain import plain

__all__ = ["DEFAULT_QUEUE", "DefinitionOptions", "Options", "Rate", "RateLimit", "Retry", "Unique"]

_LONGEST_MS: Final = 300_000
_IDENTITY: Final = ("type", "queue", "args", "meta")
_EXHAUSTED: Final = ("discard", "dead_letter")
_CONFLICTS: Final = ("reject", "ignore", "replace", "replace_except_schedule")
_LIMITED: Final = ("wait", "reschedule", "drop")
_STATES: Final = ("available", "scheduled", "pending", "active", "retryable", "completed", "cancelled", "discarded")
_MOST_ATTEMPTS: Final = 10_000
_STEEPEST: Final = 1_000_000.0
_MOST_STARTS: Final = 2**53 - 1

DEFAULT_QUEUE: Final = "default"


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
    on_exhaustion: Literal["discard", "dead_letter"] = "discard"

    def wire(self) -> dict[str, Any]:
        """Return the policy as it is sent.

        Raises:
            ValueError: The server would refuse it.
        """
        initial_ms = _lasting(self.initial_interval, "initial_interval")
        most_ms = max(_LONGEST_MS, initial_ms) if self.max_interval is None else _lasting(self.max_interval, "max_interval")
        return {
            "max_attempts": within(self.max_attempts, 0, _MOST_ATTEMPTS, "max_attempts"),
            "initial_interval_ms": initial_ms,
            "backoff_coefficient": within(self.backoff_coefficient, 1.0, _STEEPEST, "backoff_coefficient"),
            "max_interval_ms": most_ms,
            "jitter": yes_or_no(self.jitter, "jitter"),
            "non_retryable_errors": short_texts(self.non_retryable_errors, "names of errors in non_retryable_errors"),
            "on_exhaustion": one_of(self.on_exhaustion, _EXHAUSTED, "on_exhaustion"),
        }


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

    keys: Sequence[Literal["type", "queue", "args", "meta"]] = ("type", "args")
    period: Duration | None = None
    on_conflict: Literal["reject", "ignore", "replace", "replace_except_schedule"] = "reject"
    states: Sequence[str] | None = None

    def wire(self) -> dict[str, Any]:
        """Return the policy as it is sent.

        Raises:
            ValueError: The server would refuse it.
        """
        policy: dict[str, Any] = {
            "key": among(self.keys, _IDENTITY, "the parts of an identity (keys)"),
            "on_conflict": one_of(self.on_conflict, _CONFLICTS, "on_conflict"),
        }
        if self.period is not None:
            policy["period"] = written(self.period)
        if self.states is not None:
            policy["states"] = among(self.states, _STATES, "states")
        return policy


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

    def wire(self) -> dict[str, Any]:
        """Return the rate as it is sent.

        Raises:
            ValueError: The server would refuse it.
        """
        return {"limit": within(self.limit, 1, _MOST_STARTS, "limit"), "period": milliseconds(self.period) / 1_000}


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
    on_limit: Literal["wait", "reschedule", "drop"] = "wait"

    def wire(self) -> dict[str, Any]:
        """Return the limit as it is sent.

        Raises:
            ValueError: The server would refuse it, or it limits nothing.
        """
        limit: dict[str, Any] = {"key": limit_key(self.key), "on_limit": one_of(self.on_limit, _LIMITED, "on_limit")}
        if self.concurrency is not None:
            limit["concurrency"] = within(self.concurrency, 0, _MOST_STARTS, "concurrency")
        if self.rate is not None:
            limit["rate"] = _a(Rate, self.rate, "rate").wire()
        if self.throttle is not None:
            limit["throttle"] = _a(Rate, self.throttle, "throttle").wire()
        return limit


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
    version: int | str
    schema: str
    pending: bool
    delay: Duration
    scheduled_at: datetime
    expires_at: datetime
    tags: Sequence[str]
    meta: dict[str, Any]


class DefinitionOptions(Options, total=False):
    """The options of a definition: those of its jobs, and two that only its worker reads.

    Attributes:
        soft_timeout: After how long the handler is sent `SoftTimeout`, so that it may save its work before `timeout`.
        runs_in: Where a plain function runs: `"thread"` (the default), or `"process"` for a process of the worker's
            pool.
    """

    soft_timeout: Duration
    runs_in: Literal["thread", "process"]


_NAMES: Final = Options.__optional_keys__
_OF_A_WORKER: Final = DefinitionOptions.__optional_keys__ - _NAMES
_RUNS_IN: Final = ("thread", "process")
_AS_THEY_ARE: Final = ("queue", "priority", "tags", "meta", "version", "schema", "pending")
_TIMEOUTS: Final = ("timeout", "total_timeout", "enqueue_ttl", "heartbeat_timeout", "grace_period")


class _Checked(dict[str, Any]):
    """Options that have been checked: a job that is made of them needs no second check."""


def checked(options: Options, where: str) -> Options:
    """Return the options, checked.

    Args:
        options: The options.
        where: The call that they were written in, for the message.

    Raises:
        TypeError: There is no such option, or a value is of another kind.
        ValueError: The server would refuse a value.
    """
    given: Any = options
    if type(given) is _Checked:
        return options
    if not isinstance(given, Mapping):
        raise TypeError(f"{where}: options are a dict, as {{'queue': 'email'}}, not {shown(options)}")
    if late := _OF_A_WORKER.intersection(options):
        raise TypeError(f"{where}: {min(late)} is said where the handler is defined: @app.job(…, {min(late)}=…)")
    options = _deprecated.options(options)
    check_names(options, _NAMES, where)
    wire(options)
    return cast("Options", _Checked(options))


def merged(options: Options, others: Options, where: str) -> Options:
    """Return `options` with `others` in place of the ones of the same name.

    Args:
        options: Checked options.
        others: Options, which are checked here.
        where: The call that they were written in, for the message.

    Raises:
        TypeError, ValueError: As `checked`, for `others`.
    """
    return cast("Options", _Checked({**options, **checked(others, where)}))


def checked_of_jobs(options: DefinitionOptions, where: str) -> Options:
    """Return the options of a definition that its jobs have, without those of its worker.

    Args:
        options: All options of the definition.
        where: The call that they were written in, for the message.

    Raises:
        TypeError, ValueError: As `checked`, for all of them.
    """
    options = _deprecated.options(options)
    check_names(options, DefinitionOptions.__optional_keys__, where)
    if "runs_in" in options:
        one_of(options["runs_in"], _RUNS_IN, "runs_in")
    return checked(cast("Options", {name: value for name, value in options.items() if name not in _OF_A_WORKER}), where)


def wire(options: Options) -> dict[str, Any]:
    """Return the options as they are sent.

    Raises:
        TypeError, ValueError: As `checked`.
    """
    said: dict[str, Any] = {**options}
    sent: dict[str, Any] = {name: said[name] for name in _AS_THEY_ARE if name in said}
    for name, value in sent.items():
        if (check := _CHECKS.get(name)) is not None:
            sent[name] = check(value)
    for name, kind in _POLICIES.items():
        if name in said:
            sent[name] = _a(kind, said[name], name).wire()
    sent |= {f"{name}_ms": _lasting(said[name], name, zero=name == "grace_period") for name in _TIMEOUTS if name in said}
    if "result_ttl" in options:
        kept = options["result_ttl"]
        sent["result_ttl"] = -1 if kept is None else duration_ms(kept, "result_ttl") // 1_000
    if "delay" in options:
        duration_ms(options["delay"], "delay")
        sent["delay_until"] = "+" + written(options["delay"])
    if "scheduled_at" in options:
        sent["delay_until"] = moment(options["scheduled_at"], "scheduled_at")
    if "expires_at" in options:
        sent["expires_at"] = moment(options["expires_at"], "expires_at")
    return sent


def _meta(value: Any) -> Any:
    if not isinstance(value, Mapping):
        raise TypeError(f'meta is a dict, as {{"name": "value"}}, not {shown(value)}')
    if (strange := next((key for key in value if not isinstance(key, str)), None)) is not None:
        raise TypeError(f"meta has texts as its keys, not {shown(strange)}; write {str(strange)!r}")
    return plain(value, "meta")


def _version(value: Any) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise TypeError(f'version is a number or a text, as 2 or "2.1", not {shown(value)}')
    return value


_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "queue": queue_name,
    "priority": lambda value: within(value, -100, 100, "a priority"),
    "tags": lambda value: short_texts(value, "tags"),
    "meta": _meta,
    "version": _version,
    "schema": lambda value: short_text(value, "schema"),
    "pending": lambda value: yes_or_no(value, "pending"),
}

P = TypeVar("P", Retry, Unique, RateLimit, Rate)
_POLICIES: Final[Mapping[str, type[Any]]] = {"retry": Retry, "unique": Unique, "rate_limit": RateLimit}


def _a(kind: type[P], value: Any, name: str) -> P:
    """Return the policy. Raises TypeError for another value, with what was probably meant."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is a {kind.__name__}, not {shown(value)}; {_instead(kind, value, name)}")
    return value


def _instead(kind: type[Any], value: Any, name: str) -> str:
    number = isinstance(value, int) and not isinstance(value, bool)
    if kind is Retry:
        if value is False or value is None or (number and value <= 1):
            return "did you mean retry=Retry(1), which runs the job once?"
        return f"did you mean retry=Retry({value if number else 5}), which counts the first run as well?"
    if kind is Unique:
        return "leave it out" if value in (False, None) else "did you mean unique=Unique()?"
    if kind is Rate:
        return f'did you mean {name}=Rate({value if number else 10}, "1s")?'
    return 'did you mean rate_limit=RateLimit("a-key", rate=Rate(10, "1s"))?'


def duration_ms(duration: Duration, name: str) -> int:
    """Return a duration in milliseconds.

    Args:
        duration: Seconds, a text such as `"30s"`, or a `timedelta`.
        name: The option's name, for the message.

    Raises:
        ValueError: It isn't a duration, or it is negative or too long.
    """
    try:
        return milliseconds(duration)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _lasting(duration: Duration, name: str, *, zero: bool = False) -> int:
    """Return the milliseconds of what lasts for more than 0, unless `zero`, and up to ten years. Raises ValueError."""
    found = duration_ms(duration, name)
    if found > LONGEST_MS or (found == 0 and not zero):
        raise ValueError(f"{name} is {'0 or more' if zero else 'more than 0'} and up to ten years, not {duration!r}")
    return found


_deprecated.arguments(
    Retry,
    attempts="max_attempts",
    initial="initial_interval",
    coefficient="backoff_coefficient",
    not_for="non_retryable_errors",
    then="on_exhaustion",
)
_deprecated.arguments(Unique, by="keys")
