"""Rules about the work: maintenance, queues and workers."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import quote

import msgspec

from ojs_engine.base.wording import counted, duration
from ojs_engine.domain.queues.record import QueueRecord
from ojs_engine.domain.starvation import USUAL_INTERVAL_MS, is_starved
from ojs_engine.operations.finding import Finding, Reason, problem, warning
from ojs_index.asking.messages import QueueFacts, WorkerPage

_WAITS_MS: Final = 5 * 60_000
_LEAST_ENDED: Final = 20
"""Attempts that must have ended within five minutes before a rate says anything."""
_FAILING: Final = 0.2
"""The part of attempts that fail."""
CAUSES: Final = frozenset({"limited", "no_handler"})
"""Codes of reasons for which the oldest job of a queue waits although the queue has workers."""


def maintenance(record: QueueRecord | None, now: int, namespace: str) -> Iterator[Finding]:
    """Say whether an operator holds everything, or a restored system waits for its release."""
    if record is not None and record.restored is not None:
        yield warning(
            "maintenance",
            record.restored.said,
            "no job is handed out, comes due or expires, no cron entry fires, no webhook is called until its release",
            f"once it may act: 'ojs-nats release --nats URL --namespace {namespace}' (docs/backup.md)",
            "/system",
        )
    if record is not None and record.paused_as_of(now):
        reason = record.maintenance.reason if record.maintenance is not None else None
        yield warning(
            "maintenance",
            f"there is maintenance{f': {reason}' if reason else ''}",
            "no job is handed out, no delay and no cron entry comes due, until it ends",
            'if it is over, end it: POST {"enabled": false} to $OJS/admin/system/maintenance (docs/admin.md)',
            "/system",
        )


def late(
    facts: Sequence[QueueFacts], paused: Collection[str], intervals: Mapping[str, int], now: int, *, held: bool
) -> list[QueueFacts]:
    """Return the queues with workers whose jobs wait for long, or of which none was handed out lately.

    `intervals` say by queue when it is starved, where that isn't as usual.
    """
    return [
        queue
        for queue in facts
        if queue.served and queue.name not in paused and queue.oldest_at is not None and not held
        if now - queue.oldest_at > _WAITS_MS
        or is_starved(queue.oldest_at, queue.last_at, intervals.get(queue.name, USUAL_INTERVAL_MS), now)
    ]


def queues(
    facts: Sequence[QueueFacts],
    paused: Collection[str],
    intervals: Mapping[str, int],
    now: int,
    *,
    held: bool,
    causes: Mapping[str, Reason],
) -> Iterator[Finding]:
    """Find queues whose jobs wait, and those whose jobs fail.

    `intervals` are as of `late`. `held` says that there is maintenance. `causes` has why the oldest job of a late
    queue waits.
    """
    waiting = {queue.name for queue in late(facts, paused, intervals, now, held=held)}
    for queue in facts:
        if queue.name in paused:
            if queue.available:
                yield warning(
                    "queues",
                    f"queue {queue.name} is paused, and {counted(queue.available, 'job')} in it can't start",
                    "its jobs are not handed out",
                    f"'ojs-nats queues resume {queue.name}', if that is not meant",
                    _queue(queue.name),
                    queue.available,
                )
        elif queue.oldest_at is not None and not held:
            yield from _waiting(queue, now, causes.get(queue.name), late=queue.name in waiting)
        yield from _failing(queue)


def _waiting(queue: QueueFacts, now: int, cause: Reason | None, *, late: bool) -> Iterator[Finding]:
    waited = now - (queue.oldest_at or now)
    long = waited > _WAITS_MS
    wait = "waits" if queue.available == 1 else "wait"
    what = f"{counted(queue.available, 'job')} of queue {queue.name} {wait}, the oldest for {duration(waited / 1_000)}"
    found = None
    if long and not queue.served:
        found = problem(
            "queues",
            f"{what}, and no worker fetches from it",
            "they wait until a worker of their queue comes",
            f"start one: 'ojs-nats worker MODULE --queues {queue.name}'",
        )
    elif late and cause is not None and cause.code == "no_handler":
        found = problem("queues", f"{what}: {_part(cause.message)}", "its workers never run it", cause.remedy or "")
    elif long and cause is not None:
        found = warning(
            "queues", f"{what}: {_part(cause.message)}", "more workers would not start it sooner", cause.remedy or ""
        )
    elif long:
        found = warning(
            "queues",
            what,
            "more jobs come than its workers finish",
            f"start more workers or raise --concurrency; 'ojs-nats queues get {queue.name}' shows its limits",
        )
    elif late and cause is None:
        found = warning(
            "queues",
            f"queue {queue.name} is starved: {counted(queue.available, 'job')} there, and none was handed out lately",
            "its workers are busy, or take jobs of other queues first",
            "give it workers of its own, or a pool with starvation prevention (docs/queues.md)",
        )
    if found is not None:
        yield msgspec.structs.replace(found, link=_queue(queue.name), weight=waited)


def _part(sentence: str) -> str:
    """Return a sentence as the last part of another one."""
    return f"{sentence[:1].lower()}{sentence[1:]}".removesuffix(".")


def _failing(queue: QueueFacts) -> Iterator[Finding]:
    ended = queue.completed + queue.failed
    rate = queue.failed / ended if ended else 0.0
    if ended >= _LEAST_ENDED and rate > _FAILING:
        yield warning(
            "failures",
            f"{rate:.0%} of the attempts of queue {queue.name} failed: {queue.failed:,} of {ended:,} in five minutes",
            "failed jobs are tried again, and discarded when their attempts are used up",
            "see the errors of its jobs, and mend or roll back what they run",
            f"/jobs?q={quote(f'queue:{queue.name} state:retryable')}",
            rate,
        )


def workers(stale: WorkerPage) -> Iterator[Finding]:
    """Whether workers have fallen silent. `stale` is the page of those."""
    silent = stale.summary.stale
    if not silent:
        return
    jobs = stale.summary.held_by_stale
    held = f", and hold {counted(jobs, 'job')}" if jobs else ""
    what = "worker has" if silent == 1 else "workers have"
    yield warning(
        "workers",
        f"{silent:,} {what} sent no heartbeat for a while{held}",
        "they have died or can't reach the server; their jobs go to others once their leases end",
        "see their logs, and that they reach the server",
        "/workers?state=stale",
        silent,
    )


def _queue(name: str) -> str:
    return f"/queues/{quote(name)}"
