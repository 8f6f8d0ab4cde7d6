"""The check of crons: entries that should have run and have not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from msgspec import Struct

from ojs_engine.base.wording import duration
from ojs_engine.operations.finding import SHOWN, Finding, problem
from ojs_engine.store.store import Store
from ojs_features.crons.index import QUESTION, LateCrons, LateCronsAsk
from ojs_features.crons.record import Cron
from ojs_features.crons.store import Crons
from ojs_features.crons.ticks import LATE_MS
from ojs_index.asking.client import Queries


class LateCron(Struct, frozen=True, kw_only=True):
    """An entry that should have run at `due_at` (Unix ms). `full` says that its bounded queue has no room."""

    name: str
    due_at: int
    queue: str
    full: bool


async def look(store: Store, queries: Queries) -> Iterable[Finding]:
    """Ask the index for late entries, and read them. Raises OjsError backend_unavailable."""
    if await store.queues.under_maintenance():
        return ()
    now = store.clock.now()
    tokens = (await queries.ask(QUESTION, LateCronsAsk(due=now - LATE_MS), LateCrons)).tokens
    crons = [one.cron for one in (await store.of(Crons).many(tokens)).values() if one.cron is not None]
    late = [cron for cron in crons if cron.enabled and not cron.deleted and is_late(cron.next_at, now)]
    return findings([await _late(store, queries, cron) for cron in late[:SHOWN]], now)


async def _late(store: Store, queries: Queries, cron: Cron) -> LateCron:
    queue = cron.draft.queue
    await store.queues.settings(queue)
    bound = store.queues.bound(queue)
    full = bound > 0 and (await queries.queue(queue)).counts.available >= bound
    return LateCron(name=cron.name, due_at=cron.next_at or 0, queue=queue, full=full)


def is_late(due_at: int | None, now: int) -> bool:
    """Return whether an entry should have run by now (Unix ms)."""
    return due_at is not None and now - due_at > LATE_MS


def findings(late: Iterable[LateCron], now: int) -> Iterator[Finding]:
    """Say which entries should have run and have not."""
    for entry in late:
        yield problem(
            "crons",
            f"cron entry {entry.name} should have run {duration((now - entry.due_at) / 1_000)} ago"
            f"{f', and its queue {entry.queue} is full' if entry.full else ''}",
            "it runs once when that is over; its other ticks until then are left out",
            f"make room: start workers, or raise max_size of queue {entry.queue}"
            if entry.full
            else "see whether a scheduler runs, and its log for 'cron entry waits' with the reason",
            f"/crons/{quote(entry.name, safe='')}",
            now - entry.due_at,
        )
