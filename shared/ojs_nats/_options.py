"""Options as they are checked and sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast, get_args

from ojs_api import words
from ojs_nats import _deprecated
from ojs_nats._checks import check_names
from ojs_nats._durations import LONGEST_MS, Duration, milliseconds, moment, written
from ojs_nats._names import among, limit_key, one_of, queue_name, short_text, short_texts, shown, within, yes_or_no
from ojs_nats._plain import plain
from ojs_nats.options import DefinitionOptions, Options, Rate, RateLimit, Retry, Unique

_LONGEST_MS: Final = 300_000
_IDENTITY: Final = get_args(words.Identity)
_EXHAUSTED: Final = get_args(words.Exhaustion)
_CONFLICTS: Final = get_args(words.OnConflict)
_LIMITED: Final = get_args(words.OnLimit)
_STATES: Final = get_args(words.JobState)
_MOST_ATTEMPTS: Final = 10_000
_STEEPEST: Final = 1_000_000.0
_MOST_STARTS: Final = 2**53 - 1

_NAMES: Final = Options.__optional_keys__
_OF_A_WORKER: Final = DefinitionOptions.__optional_keys__ - _NAMES
_RUNS_IN: Final = ("thread", "process")
_TIMEOUTS: Final = ("timeout", "total_timeout", "enqueue_ttl", "heartbeat_timeout", "grace_period")
_POLICIES: Final[Mapping[str, type[Any]]] = {"retry": Retry, "unique": Unique, "rate_limit": RateLimit}
_WRITTEN: Final = frozenset((*_TIMEOUTS, *_POLICIES, "result_ttl", "delay", "scheduled_at", "expires_at"))
AS_THEY_ARE: Final = tuple(name for name in Options.__annotations__ if name not in _WRITTEN)
"""The others: each is sent as it is, and is a short text unless it has a check of its own."""


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
    sent: dict[str, Any] = {name: said[name] for name in AS_THEY_ARE if name in said}
    for name, value in sent.items():
        check = _CHECKS.get(name)
        sent[name] = short_text(value, name) if check is None else check(value)
    for name, kind in _POLICIES.items():
        if name in said:
            sent[name] = policy(_a(kind, said[name], name))
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
    "pending": lambda value: yes_or_no(value, "pending"),
}

P = TypeVar("P", Retry, Unique, RateLimit, Rate)


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


def policy(given: Retry | Unique | RateLimit | Rate) -> dict[str, Any]:
    """Return a policy as it is sent.

    Raises:
        ValueError: The server would refuse it, or it limits nothing.
    """
    match given:
        case Retry():
            return _retry(given)
        case Unique():
            return _unique(given)
        case RateLimit():
            return _limit(given)
        case Rate():
            return _rate(given)


def _retry(given: Retry) -> dict[str, Any]:
    initial_ms = _lasting(given.initial_interval, "initial_interval")
    most_ms = max(_LONGEST_MS, initial_ms) if given.max_interval is None else _lasting(given.max_interval, "max_interval")
    return {
        "max_attempts": within(given.max_attempts, 0, _MOST_ATTEMPTS, "max_attempts"),
        "initial_interval_ms": initial_ms,
        "backoff_coefficient": within(given.backoff_coefficient, 1.0, _STEEPEST, "backoff_coefficient"),
        "max_interval_ms": most_ms,
        "jitter": yes_or_no(given.jitter, "jitter"),
        "non_retryable_errors": short_texts(given.non_retryable_errors, "names of errors in non_retryable_errors"),
        "on_exhaustion": one_of(given.on_exhaustion, _EXHAUSTED, "on_exhaustion"),
    }


def _unique(given: Unique) -> dict[str, Any]:
    policy: dict[str, Any] = {
        "key": among(given.keys, _IDENTITY, "the parts of an identity (keys)"),
        "on_conflict": one_of(given.on_conflict, _CONFLICTS, "on_conflict"),
    }
    if given.period is not None:
        policy["period"] = written(given.period)
    if given.states is not None:
        policy["states"] = among(given.states, _STATES, "states")
    return policy


def _limit(given: RateLimit) -> dict[str, Any]:
    limit: dict[str, Any] = {"key": limit_key(given.key), "on_limit": one_of(given.on_limit, _LIMITED, "on_limit")}
    if given.concurrency is not None:
        limit["concurrency"] = within(given.concurrency, 0, _MOST_STARTS, "concurrency")
    if given.rate is not None:
        limit["rate"] = _rate(_a(Rate, given.rate, "rate"))
    if given.throttle is not None:
        limit["throttle"] = _rate(_a(Rate, given.throttle, "throttle"))
    return limit


def _rate(given: Rate) -> dict[str, Any]:
    return {"limit": within(given.limit, 1, _MOST_STARTS, "limit"), "period": milliseconds(given.period) / 1_000}
