"""Headers of pushes: how full their queue is (ojs-backpressure §7), and what their limit leaves (ojs-rate-limiting §10.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ojs_core.base.errors import OjsError
from ojs_core.domain.job import Job
from ojs_core.domain.rate_limits import permits
from ojs_core.domain.rate_limits.policy import policy_of
from ojs_core.store.rate_limits.permits import key_scope, queue_scope

if TYPE_CHECKING:
    from ojs_core.store.store import Store

Headers = tuple[tuple[str, str], ...]


def pressure_headers(store: Store, queues: Iterable[str]) -> Headers:
    """Warning headers for the fullest of the queues that have come to their threshold; none if no queue has."""
    found = [pressure for queue in dict.fromkeys(queues) if (pressure := store.capacity.pressure(queue)) is not None]
    pressed = [pressure for pressure in found if pressure.ratio >= pressure.threshold]
    if not pressed:
        return ()
    fullest = max(pressed, key=lambda pressure: pressure.ratio)
    return (
        ("X-OJS-Queue-Depth", str(fullest.depth)),
        ("X-OJS-Queue-Bound", str(fullest.bound)),
        ("X-OJS-Queue-Pressure", f"{min(fullest.ratio, 1.0):.2f}"),
    )


def refusal_headers(errors: Iterable[OjsError | None]) -> Headers:
    """For an answer about several things, some of which can't be done now: when to ask for those again."""
    seconds = max((error.retry_after or 0 for error in errors if error is not None and error.retryable), default=0)
    return (("Retry-After", str(seconds)),) if seconds else ()


async def limit_headers(store: Store, job: Job) -> Headers:
    """For a pushed job with a limit: how many may start, how many more now, and when one more may, in Unix seconds.

    Requests themselves aren't limited. The latter two are told of limits of starts alone: how many of the permits of a limit of
    concurrency are taken, and when the next will be free, depends on jobs that a push doesn't look at. They are left out while
    NATS is away, too, since the job is stored.
    """
    policy = policy_of(job)
    if policy is None:
        return ()
    starts = policy.rate or policy.throttle
    if starts is None:
        return (("X-RateLimit-Limit", str(policy.concurrency)),) if policy.concurrency else ()
    try:
        _, record = await store.permits.read(queue_scope(job.queue) if policy.key is None else key_scope(policy.key))
    except OjsError:
        return (("X-RateLimit-Limit", str(starts.limit)),)
    now = store.clock.now()
    standing = permits.effective(record, policy, now)
    starts = standing.rate or standing.throttle or starts
    limit = ("X-RateLimit-Limit", str(starts.limit))
    if standing.concurrency is not None:
        return (limit,)
    free = permits.room(record, policy, now)
    reset = -(-(free.at or now) // 1_000)
    return (limit, ("X-RateLimit-Remaining", str(free.number)), ("X-RateLimit-Reset", str(reset)))
