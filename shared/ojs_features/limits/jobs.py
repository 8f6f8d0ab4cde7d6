"""Limits in answers about jobs."""

from __future__ import annotations

from typing import Any, Final

from ojs_engine.api.job_extras import Headers, JobExtras
from ojs_engine.base.errors import OjsError
from ojs_engine.base.times import format_ms
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.rate_limits.policy import LimitPolicy, policy_of, policy_of_queue
from ojs_engine.operations.finding import Reason
from ojs_engine.store.announce import announce
from ojs_engine.store.store import Store
from ojs_features.limits import rules
from ojs_features.limits.asking import limited
from ojs_features.limits.limits import Limits
from ojs_features.limits.permits import key_scope, queue_scope
from ojs_features.limits.rules import FreePermits, Hit

_LONGEST_CLOSED_MS: Final = 7 * 86_400_000
"""A failure can't stop a key for longer; the next one can do so again."""


async def limit_headers(store: Store, job: Job) -> Headers:
    """Return how many may start, how many more now, and when one more may, in Unix seconds.

    Requests themselves aren't limited. The latter two are for limits of starts alone: how many of the permits of a
    limit of concurrency are taken, and when the next will be free, depends on jobs that a push doesn't read. They are
    left out while NATS is away, too, since the job is stored.
    """
    policy = policy_of(job)
    if policy is None:
        return ()
    starts = policy.rate or policy.throttle
    if starts is None:
        return (("X-RateLimit-Limit", str(policy.concurrency)),) if policy.concurrency else ()
    try:
        _, record = await store.of(Limits).permits.read(_scope(job, policy))
    except OjsError:
        return (("X-RateLimit-Limit", str(starts.limit)),)
    now = store.clock.now()
    standing = rules.effective(record, policy, now)
    starts = standing.rate or standing.throttle or starts
    limit = ("X-RateLimit-Limit", str(starts.limit))
    if standing.concurrency is not None:
        return (limit,)
    free = rules.room(record, policy, now)
    reset = -(-(free.at or now) // 1_000)
    return (limit, ("X-RateLimit-Remaining", str(free.number)), ("X-RateLimit-Reset", str(reset)))


async def _show(store: Store, job: Job, answer: dict[str, Any]) -> None:
    """Add when the limit of an available job has room again by the passing of time."""
    policy = policy_of(job) if job.state is State.AVAILABLE else None
    if policy is None or policy.key is None:
        return
    until = (await store.of(Limits).permits.room(key_scope(policy.key), policy)).at
    if until is not None:
        answer["rate_limit_until"] = format_ms(until)


async def _why(store: Store, job: Job) -> list[Reason]:
    """Return those of the limits of its key and its queue that leave no room now."""
    await store.queues.settings(job.queue)
    policies = [policy_of(job), policy_of_queue(store.queues.config(job.queue))]
    asked = [policy for policy in policies if policy is not None]
    rooms = [(policy, await store.of(Limits).permits.room(_scope(job, policy), policy)) for policy in asked]
    return [reason for policy, room in rooms if (reason := limited_by(job.queue, policy.key, room)) is not None]


def limited_by(queue: str, key: str | None, room: FreePermits) -> Reason | None:
    """Return the reason that a limit gives jobs to wait: of a key, or of their queue. None if it has room."""
    if room.number > 0 or room.hit is None:
        return None
    name = f"The limit of queue {queue}" if key is None else f"Limit {key}"
    until = "" if room.at is None else f", until {format_ms(room.at)}"
    remedy = "It goes on by itself; an operator can override the limit."
    return Reason(code="limited", message=_said(name, room.hit, until), remedy=remedy)


def _said(name: str, hit: Hit, until: str) -> str:
    if hit.strategy == "dynamic":
        return f"{name} is closed, as a handler has said{until}."
    return f"{name} leaves no room: {hit.current:,} of {hit.limit:,} used by its {hit.strategy}{until}."


async def _close(store: Store, job: Job, until: int, reason: str) -> int | None:
    policy, now = policy_of(job), store.clock.now()
    if policy is None or policy.key is None or until <= now:
        return None
    until = min(until, now + _LONGEST_CLOSED_MS)
    if await store.of(Limits).permits.close_until(key_scope(policy.key), policy, until):
        said = {"key": policy.key, "until": format_ms(until), "reason": reason}
        await announce(store, "rate_limit.dynamic_adjusted", scope="limit", subject=policy.key, data=said)
    return until


def _scope(job: Job, policy: LimitPolicy) -> str:
    return queue_scope(job.queue) if policy.key is None else key_scope(policy.key)


EXTRAS: Final = JobExtras(asks=limited, pushed=limit_headers, show=_show, why=_why, close=_close)
