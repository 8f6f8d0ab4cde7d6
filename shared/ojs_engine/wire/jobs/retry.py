"""Retry policies: ISO durations, Go-style durations, milliseconds and camelCase names in, ISO durations out (ojs-retry §3)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final, get_args

import msgspec
from msgspec import Raw

from ojs_api.jobs import RetryPolicy
from ojs_engine.base.errors import OjsError
from ojs_engine.base.extensions import Extensions
from ojs_engine.base.fields import absent, is_extension, members_of, milliseconds, shown
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.base.times import format_duration, parse_duration_ms
from ojs_engine.domain.job import Backoff, Exhaustion, Retry
from ojs_engine.wire.members import encode, written

_NAMES: Final = {
    "max_attempts": "max_attempts",
    "initial_interval": "initial_interval_ms",
    "initial_interval_ms": "initial_interval_ms",
    "initial_delay_ms": "initial_interval_ms",
    "base_delay_ms": "initial_interval_ms",
    "backoff_coefficient": "backoff_coefficient",
    "multiplier": "backoff_coefficient",
    "max_interval": "max_interval_ms",
    "max_interval_ms": "max_interval_ms",
    "max_delay_ms": "max_interval_ms",
    "jitter": "jitter",
    "non_retryable_errors": "non_retryable_errors",
    "on_exhaustion": "on_exhaustion",
    "backoff_strategy": "backoff_strategy",
    "strategy": "backoff_strategy",
    "backoff": "backoff_strategy",
}
"""Name as sent -> member of `Retry`. camelCase spellings are looked up in snake case; unknown members are let be."""
RETRY_MEMBERS: Final = frozenset(_NAMES)


def _invalid(field: str, message: str) -> OjsError:
    """422 as the specification words it: `invalid_request` with type `validation_error`."""
    return OjsError(
        "invalid_retry_policy",
        message,
        type="validation_error",
        details={
            "field": field,
            "error_type": "validation.retry_policy_invalid",
            "validation_errors": [{"path": field, "message": message}],
        },
    )


def max_attempts(value: Any, path: str, limits: PayloadLimits) -> int:
    """The number of runs a job may have; 0 and 1 both mean one."""
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or not 0 <= value <= limits.max_attempts:
        raise _invalid(path, f"{path} must be an integer from 0 to {limits.max_attempts}, not {shown(value)}")
    return value


def _interval(value: Any, path: str, limits: PayloadLimits) -> int:
    ms: int | None = None
    if type(value) is str:
        try:
            ms = parse_duration_ms(value)
        except ValueError as problem:
            raise _invalid(path, f"{path} is {problem}: {shown(value)}") from None
    elif path.endswith(("_ms", "Ms")):
        ms = milliseconds(value, 1, limits.max_duration_ms)
    if ms is None:
        raise _invalid(path, f"{path} must be a duration such as PT1S, or milliseconds in {path}_ms, not {shown(value)}")
    if not 0 < ms <= limits.max_duration_ms:
        raise _invalid(path, f"{path} must be more than 0 and at most {limits.max_duration_ms // 86_400_000} days")
    return ms


def _coefficient(value: Any, path: str, _limits: PayloadLimits) -> float:
    if type(value) not in (int, float) or not 1.0 <= value <= 1_000_000:
        raise _invalid(path, f"{path} must be a number from 1.0 to 1000000, not {shown(value)}")
    return float(value)


def _boolean(value: Any, path: str, _limits: PayloadLimits) -> bool:
    if type(value) is not bool:
        raise _invalid(path, f"{path} must be true or false, not {shown(value)}")
    return value


def _patterns(value: Any, path: str, limits: PayloadLimits) -> tuple[str, ...]:
    if type(value) is not list or len(value) > limits.max_error_patterns:
        raise _invalid(path, f"{path} must be a list of at most {limits.max_error_patterns} error types")
    for index, item in enumerate(value):
        if type(item) is not str or not 0 < len(item) <= limits.max_text_chars:
            field = f"{path}[{index}]"
            raise _invalid(field, f"{field} must be a text of 1 to {limits.max_text_chars} characters")
    return tuple(value)


def _one_of(choices: tuple[str, ...]) -> Callable[[Any, str, PayloadLimits], str]:
    def read(value: Any, path: str, _limits: PayloadLimits) -> str:
        if type(value) is not str or value not in choices:
            raise _invalid(path, f"{path} must be one of {', '.join(choices)}, not {shown(value)}")
        return value

    return read


_READERS: Final[dict[str, Callable[[Any, str, PayloadLimits], Any]]] = {
    "max_attempts": max_attempts,
    "initial_interval_ms": _interval,
    "backoff_coefficient": _coefficient,
    "max_interval_ms": _interval,
    "jitter": _boolean,
    "non_retryable_errors": _patterns,
    "on_exhaustion": _one_of(get_args(Exhaustion)),
    "backoff_strategy": _one_of(get_args(Backoff)),
}


def snake(name: str) -> str:
    """A name in camelCase as it is in snake case."""
    return name if name.islower() else "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def parse_retry(value: Any, path: str, limits: PayloadLimits) -> dict[str, Any]:
    """The members of `Retry` that a client's policy sets; unknown members are tolerated.

    Raises invalid_retry_policy (422) with the field's name in the message.
    """
    if type(value) is not dict:
        raise _invalid(path, f"{path} must be an object, not {shown(value)}")
    members: dict[str, Any] = {}
    for name, sent in value.items():
        member = _NAMES.get(snake(name))
        if member is not None and sent is not None:
            members[member] = _READERS[member](sent, f"{path}.{name}", limits)
    return members


def retry_extensions(value: dict[str, Any], raw: Raw, path: str) -> Extensions:
    """Return the members of extensions in a policy that was read; `raw` is the policy as it was sent."""
    if not any(map(is_extension, value)):
        return {}
    return {name: one for name, one in members_of(raw, path).items() if is_extension(name) and not absent(one)}


def merge_retry(base: Retry, members: dict[str, Any], path: str) -> Retry:
    """`base` with the given members; the longest interval follows a longer first one unless both were given."""
    policy = msgspec.structs.replace(base, **members)
    if policy.max_interval_ms < policy.initial_interval_ms:
        if "max_interval_ms" in members:
            first = format_duration(policy.initial_interval_ms)
            raise _invalid(
                f"{path}.max_interval", f"{path}.max_interval must not be shorter than {path}.initial_interval ({first})"
            )
        policy = msgspec.structs.replace(policy, max_interval_ms=policy.initial_interval_ms)
    return policy


def check_retry(value: Any, path: str, limits: PayloadLimits) -> Retry:
    """A client's policy merged over the defaults."""
    return merge_retry(Retry(), parse_retry(value, path, limits), path)


def retry_policy(policy: Retry) -> RetryPolicy:
    """Return the effective policy as clients read it."""
    return RetryPolicy(
        max_attempts=policy.max_attempts,
        initial_interval=format_duration(policy.initial_interval_ms),
        backoff_coefficient=policy.backoff_coefficient,
        max_interval=format_duration(policy.max_interval_ms),
        jitter=policy.jitter,
        non_retryable_errors=written(policy.non_retryable_errors),
        on_exhaustion=policy.on_exhaustion,
        backoff_strategy=policy.backoff_strategy,
    )


@lru_cache(maxsize=1024)
def retry_raw(policy: Retry) -> Raw:
    """The same as JSON; a service sees few distinct policies."""
    return Raw(encode(retry_policy(policy)))
