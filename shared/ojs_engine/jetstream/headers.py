"""The headers that say to JetStream under which condition a message is stored, when it leaves and what goes with it."""

from __future__ import annotations

from typing import Final

from ojs_engine.base.times import format_ms

_LATEST_AT: Final = 7_258_118_400_000
"""The year 2200 (Unix ms). nats-server counts nanoseconds in 64 bits, and a schedule past 2262 fires at once. One that
is set for less than its deadline fires early and is set again, like any other early one."""


def expecting(sequence: int) -> str:
    """Stored only over this revision of the subject; 0: only if it holds nothing."""
    return f"Nats-Expected-Last-Subject-Sequence: {sequence}\r\n"


def time_to_live(seconds: int | None) -> str:
    """None: it stays."""
    return "" if seconds is None else f"Nats-TTL: {seconds}s\r\n"


def record_headers(expected: int, cancel: str | None, ttl_s: int | None, among: str | None = None, rings: str = "") -> str:
    """Of a record that replaces the revision `expected`, purges the timer `cancel` and leaves after `ttl_s`.

    With the wildcard `among` it is stored only if `expected` is the last message under it. `rings` makes it a timer.
    """
    headers = rings + expecting(expected)
    if among is not None:
        headers += f"Nats-Expected-Last-Subject-Sequence-Subject: {among}\r\n"
    if cancel is not None:
        headers += f"Nats-Scheduler: {cancel}\r\nNats-Schedule-Next: purge\r\n"
    return headers if ttl_s is None else headers + time_to_live(ttl_s)


def ringing(every_s: int, target: str, source: str) -> str:
    """Of a record that is a timer: a copy of the message `source` on `target` every so many seconds, until it is replaced."""
    return f"Nats-Schedule: @every {every_s}s\r\nNats-Schedule-Target: {target}\r\nNats-Schedule-Source: {source}\r\n"


def schedule(at: int, target: str, ttl_s: int | None = None) -> str:
    """Of a timer: a message on `target` at a time (Unix ms), which leaves after `ttl_s`, if that is given."""
    headers = f"Nats-Schedule: @at {format_ms(min(max(at, 0), _LATEST_AT))}\r\nNats-Schedule-Target: {target}\r\n"
    return headers if ttl_s is None else f"{headers}Nats-Schedule-TTL: {ttl_s}s\r\n"
