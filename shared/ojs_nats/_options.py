"""How a job is to be run: what a definition or a push says of it, and how the server is told."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

import msgspec

from ojs_nats._durations import Duration, milliseconds, moment


class Retry(msgspec.Struct, frozen=True):
    """How often and when a job that failed runs again (ojs-retry §3).

    `attempts` counts all runs, the first as well. The n-th pause is `initial * coefficient ** (n - 1)`, at most
    `max_interval`, and a random half more or less with `jitter`. Errors whose names stand in `not_for` end the
    job; `"auth.*"` names a family.
    """

    attempts: int = 3
    initial: Duration = 1.0
    coefficient: float = 2.0
    max_interval: Duration = 300.0
    jitter: bool = True
    not_for: Sequence[str] = ()
    then: Literal["discard", "dead_letter"] = "discard"

    def wire(self) -> dict[str, Any]:
        return {
            "max_attempts": self.attempts,
            "initial_interval_ms": milliseconds(self.initial),
            "backoff_coefficient": self.coefficient,
            "max_interval_ms": milliseconds(self.max_interval),
            "jitter": self.jitter,
            "non_retryable_errors": list(self.not_for),
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
        policy: dict[str, Any] = {"key": list(self.by), "on_conflict": self.on_conflict}
        if self.period is not None:
            policy["period"] = f"PT{milliseconds(self.period) / 1_000:g}S"
        if self.states is not None:
            policy["states"] = list(self.states)
        return policy


class Options(TypedDict, total=False):
    """What may be said of a job beside its arguments."""

    queue: str
    retry: Retry
    timeout: Duration
    priority: int
    unique: Unique
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


def wire(options: Options) -> dict[str, Any]:
    """The members of `options` in a push. Raises ValueError for what no server would take."""
    sent: dict[str, Any] = {}
    for name in ("queue", "priority", "tags", "meta"):
        if name in options:
            sent[name] = options[name]
    if "retry" in options:
        sent["retry"] = options["retry"].wire()
    if "unique" in options:
        sent["unique"] = options["unique"].wire()
    if "timeout" in options:
        sent["timeout_ms"] = milliseconds(options["timeout"])
    if "delay" in options:
        sent["delay_until"] = f"+PT{milliseconds(options['delay']) / 1_000:g}S"
    if "at" in options:
        sent["delay_until"] = moment(options["at"], "at")
    if "expires_at" in options:
        sent["expires_at"] = moment(options["expires_at"], "expires_at")
    return sent
