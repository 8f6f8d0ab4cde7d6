"""How a job is to be run: what a definition or a push says of it, and how the server is told."""

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
    """A retry policy: how often and when a job that failed runs again (ojs-retry §3).

    The n-th pause is `initial_interval * backoff_coefficient ** (n - 1)`, at most `max_interval`.

    Args:
        max_attempts: All runs together, the first as well.
        initial_interval: The first pause, in seconds or as `"30s"`.
        backoff_coefficient: What each pause is longer by than the one before, from 1.
        max_interval: The longest pause; by default five minutes, or `initial_interval` if that is longer.
        jitter: Whether a pause is a random half longer or shorter.
        non_retryable_errors: Names of errors that end the job at once; `"auth.*"` names a family.
        on_exhaustion: What becomes of a job that has failed for good: it is discarded, or kept as a dead letter.

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
        """Return what is sent. Raises ValueError for what the server wouldn't take."""
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
    """A policy of uniqueness: no two jobs of one identity are there at a time (ojs-unique-jobs).

    Args:
        keys: What makes the identity.
        period: For how long a job counts that has ended, in seconds or as `"1h"`; without it, one counts while it is in one
            of `states`.
        on_conflict: What a second push gets: `DuplicateError`, nothing, or the first one's place.
        states: The states in which a job counts; by default all in which it hasn't ended.

    Example:
        >>> Unique(keys=["type", "args"], period="1h", on_conflict="ignore").on_conflict
        'ignore'
    """

    keys: Sequence[Literal["type", "queue", "args", "meta"]] = ("type", "args")
    period: Duration | None = None
    on_conflict: Literal["reject", "ignore", "replace", "replace_except_schedule"] = "reject"
    states: Sequence[str] | None = None

    def wire(self) -> dict[str, Any]:
        """Return what is sent. Raises ValueError for what the server wouldn't take."""
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
    """At most `limit` starts within any `period`."""

    limit: int
    period: Duration = 1.0

    def wire(self) -> dict[str, Any]:
        """Return what is sent. Raises ValueError for what the server wouldn't take."""
        return {"limit": within(self.limit, 1, _MOST_STARTS, "limit"), "period": milliseconds(self.period) / 1_000}


@dataclass(frozen=True)
class RateLimit:
    """What jobs with the same `key` may do together: how many run at once, start within a time, or start evenly spaced.

    `on_limit` is what becomes of a job that has to wait: it waits, is put off, or is discarded.
    """

    key: str
    concurrency: int | None = None
    rate: Rate | None = None
    throttle: Rate | None = None
    on_limit: Literal["wait", "reschedule", "drop"] = "wait"

    def wire(self) -> dict[str, Any]:
        """Return what is sent. Raises ValueError for what the server wouldn't take."""
        limit: dict[str, Any] = {"key": limit_key(self.key), "on_limit": one_of(self.on_limit, _LIMITED, "on_limit")}
        if self.concurrency is not None:
            limit["concurrency"] = within(self.concurrency, 0, _MOST_STARTS, "concurrency")
        if self.rate is not None:
            limit["rate"] = _a(Rate, self.rate, "rate").wire()
        if self.throttle is not None:
            limit["throttle"] = _a(Rate, self.throttle, "throttle").wire()
        return limit


class Options(TypedDict, total=False):
    """What may be said of a job beside its arguments.

    `timeout` is that of an attempt, `total_timeout` that of all of them together with their pauses, `enqueue_ttl` how long it
    may wait for its first; `heartbeat_timeout` how long its worker may say nothing of it, `grace_period` what it gets to end
    when it is stopped. `result_ttl` is how long its result stays, None for ever. A `pending` job waits to be activated.
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
    """What may besides be said where a handler is defined: it is its worker's business, and no server hears of it.

    `soft_timeout` is when the handler is told that its time is nearly over. `runs_in` is where it runs if it is a plain
    function: in a thread, or in a process of the worker's pool.
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
    """Return the options for jobs.

    Raises TypeError for an option or a kind of value that no job has, and ValueError as `wire`.
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
    """Return checked options with others, which are checked here, in the place of theirs. Raises as `checked`."""
    return cast("Options", _Checked({**options, **checked(others, where)}))


def checked_of_jobs(options: DefinitionOptions, where: str) -> Options:
    """Return those options of a definition that its jobs have. Raises as `checked`, also for those of its worker."""
    options = _deprecated.options(options)
    check_names(options, DefinitionOptions.__optional_keys__, where)
    if "runs_in" in options:
        one_of(options["runs_in"], _RUNS_IN, "runs_in")
    return checked(cast("Options", {name: value for name, value in options.items() if name not in _OF_A_WORKER}), where)


def wire(options: Options) -> dict[str, Any]:
    """Return the members of `options` in a push. Raises ValueError and TypeError for what no server would take."""
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
    """Return the milliseconds. Raises ValueError that names the option."""
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
