"""How a job is to be run: what a definition or a push says of it, and how the server is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal, TypedDict

import msgspec

from ojs_nats._durations import LONGEST_MS, Duration, milliseconds, moment, written
from ojs_nats._names import among, limit_key, queue_name, short_texts, within
from ojs_nats._plain import plain

_LONGEST_MS: Final = 300_000
_IDENTITY: Final = ("type", "queue", "args", "meta")
_STATES: Final = ("available", "scheduled", "pending", "active", "retryable", "completed", "cancelled", "discarded")
_MOST_ATTEMPTS: Final = 10_000
_STEEPEST: Final = 1_000_000.0

DEFAULT_QUEUE: Final = "default"


class Retry(msgspec.Struct, frozen=True):
    """How often and when a job that failed runs again (ojs-retry §3).

    `attempts` counts all runs, the first as well. The n-th pause is `initial * coefficient ** (n - 1)`, at most
    `max_interval` (five minutes, or `initial` if that is longer), and a random half more or less with `jitter`. Errors whose
    names stand in `not_for` end the job; `"auth.*"` names a family.
    """

    attempts: int = 3
    initial: Duration = 1.0
    coefficient: float = 2.0
    max_interval: Duration | None = None
    jitter: bool = True
    not_for: Sequence[str] = ()
    then: Literal["discard", "dead_letter"] = "discard"

    def wire(self) -> dict[str, Any]:
        """As the server is told of it. Raises ValueError for what it wouldn't take."""
        initial_ms = _lasting(self.initial, "initial")
        most_ms = max(_LONGEST_MS, initial_ms) if self.max_interval is None else _lasting(self.max_interval, "max_interval")
        return {
            "max_attempts": within(self.attempts, 0, _MOST_ATTEMPTS, "attempts"),
            "initial_interval_ms": initial_ms,
            "backoff_coefficient": within(self.coefficient, 1.0, _STEEPEST, "coefficient"),
            "max_interval_ms": most_ms,
            "jitter": self.jitter,
            "non_retryable_errors": short_texts(self.not_for, "names of errors in not_for"),
            "on_exhaustion": self.then,
        }


class Unique(msgspec.Struct, frozen=True):
    """That no two jobs of one identity are there at a time (ojs-unique-jobs).

    `by` says what makes the identity; jobs that ended longer ago than `period` don't count, without it only while they are in
    one of `states`. `on_conflict` is what a second push gets: `Duplicate`, nothing, or the first one's place.
    """

    by: Sequence[Literal["type", "queue", "args", "meta"]] = ("type", "args")
    period: Duration | None = None
    on_conflict: Literal["reject", "ignore", "replace", "replace_except_schedule"] = "reject"
    states: Sequence[str] | None = None

    def wire(self) -> dict[str, Any]:
        """As the server is told of it. Raises ValueError for what it wouldn't take."""
        policy: dict[str, Any] = {
            "key": among(self.by, _IDENTITY, "the parts of an identity (by)"),
            "on_conflict": self.on_conflict,
        }
        if self.period is not None:
            policy["period"] = written(self.period)
        if self.states is not None:
            policy["states"] = among(self.states, _STATES, "states")
        return policy


class Rate(msgspec.Struct, frozen=True):
    """At most `limit` starts within any `period`."""

    limit: int
    period: Duration = 1.0

    def wire(self) -> dict[str, Any]:
        return {"limit": self.limit, "period": milliseconds(self.period) / 1_000}


class RateLimit(msgspec.Struct, frozen=True):
    """What jobs with the same `key` may do together: how many run at once, start within a time, or start evenly spaced.

    `on_limit` is what becomes of a job that has to wait: it waits, is put off, or is discarded.
    """

    key: str
    concurrency: int | None = None
    rate: Rate | None = None
    throttle: Rate | None = None
    on_limit: Literal["wait", "reschedule", "drop"] = "wait"

    def wire(self) -> dict[str, Any]:
        """As the server is told of it. Raises ValueError for what it wouldn't take."""
        limit: dict[str, Any] = {"key": limit_key(self.key), "on_limit": self.on_limit}
        if self.concurrency is not None:
            limit["concurrency"] = self.concurrency
        if self.rate is not None:
            limit["rate"] = self.rate.wire()
        if self.throttle is not None:
            limit["throttle"] = self.throttle.wire()
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
    at: datetime
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


_AS_THEY_ARE: Final = ("queue", "priority", "tags", "meta", "version", "schema", "pending")
_TIMEOUTS: Final = ("timeout", "total_timeout", "enqueue_ttl", "heartbeat_timeout", "grace_period")


def wire(options: Options) -> dict[str, Any]:
    """The members of `options` in a push. Raises ValueError for what no server would take."""
    said: dict[str, Any] = {**options}
    sent: dict[str, Any] = {name: said[name] for name in _AS_THEY_ARE if name in said}
    if "queue" in sent:
        queue_name(sent["queue"])
    if "tags" in sent:
        sent["tags"] = short_texts(sent["tags"], "tags")
    if isinstance(sent.get("priority"), int | float):
        within(sent["priority"], -100, 100, "a priority")
    if "meta" in sent:
        sent["meta"] = plain(sent["meta"], "meta")
    sent |= {name: said[name].wire() for name in ("retry", "unique", "rate_limit") if name in said}
    sent |= {f"{name}_ms": _lasting(said[name], name, zero=name == "grace_period") for name in _TIMEOUTS if name in said}
    if "result_ttl" in options:
        kept = options["result_ttl"]
        sent["result_ttl"] = -1 if kept is None else milliseconds(kept) // 1_000
    if "delay" in options:
        sent["delay_until"] = "+" + written(options["delay"])
    if "at" in options:
        sent["delay_until"] = moment(options["at"], "at")
    if "expires_at" in options:
        sent["expires_at"] = moment(options["expires_at"], "expires_at")
    return sent


def _lasting(duration: Duration, name: str, *, zero: bool = False) -> int:
    """Return the milliseconds of what lasts for more than 0, unless `zero`, and up to ten years. Raises ValueError."""
    found = milliseconds(duration)
    if found > LONGEST_MS or (found == 0 and not zero):
        raise ValueError(f"{name} is {'0 or more' if zero else 'more than 0'} and up to ten years, not {duration!r}")
    return found
