"""Records that are their jobs' timers: nats-server rings until the record is written again (docs/adr/041)."""

from __future__ import annotations

from typing import Final

from ojs_engine.domain.job import Job, State, Timer

OWN_TIMER_MS: Final = 10_000
"""Deadlines that are nearer are kept to the millisecond, which takes a message."""
LONGEST_EVERY_S: Final = 60
"""A crash of nats-server may skip a ring; the next one comes this much later, at most."""


def every_s(job: Job, ahead_ms: int) -> int | None:
    """The seconds between two rings of the job's record; None if its timer is a message.

    The record is the timer of running jobs whose deadline isn't near: hardly any of them comes to it. nats-server counts from
    the full second next to the write, so that the first ring is half a second to one and a half behind the deadline, unless
    the deadline is far: then the record rings on the way, too.
    """
    if job.state is not State.ACTIVE or ahead_ms < OWN_TIMER_MS:
        return None
    return min(-(-(ahead_ms + 500) // 1_000), LONGEST_EVERY_S)


def rings_for(timer: Timer, at: int, now: int) -> bool:
    """Whether the record rings before `at`, or for it, after `now`: no message is needed."""
    if timer.every_s is None:
        return False
    return now + timer.every_s * 1_000 < at or (at == timer.at and not _rings_on_the_way(timer))


def may_have_message(timer: Timer, now: int) -> bool:
    """Whether a message of the timer's op may be stored: also beside a record, if it rang too early for the next deadline."""
    if timer.every_s is None:
        return True
    return timer.at <= now + (timer.every_s * 1_000 if _rings_on_the_way(timer) else 0)


def _rings_on_the_way(timer: Timer) -> bool:
    return timer.every_s == LONGEST_EVERY_S
