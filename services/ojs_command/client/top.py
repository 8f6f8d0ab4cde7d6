"""`ojs-nats top`: how things are, again and again."""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime
from typing import Final

import msgspec
from rich.console import Group
from rich.live import Live
from rich.text import Text

from ojs_command.client.arguments import seconds
from ojs_command.client.output import clean, shown, table
from ojs_command.client.parser import CommandParser
from ojs_command.client.queues import QUEUE_COLUMNS, a_minute, queue_row
from ojs_command.client.session import Session
from ojs_command.client.workers import WORKER_COLUMNS, worker_row
from ojs_engine.base.wording import counted, duration
from ojs_nats import Client
from ojs_nats.errors import UnavailableError
from ojs_nats.models.jobs import Failure
from ojs_nats.models.queues import Queue
from ojs_nats.models.statistics import Window
from ojs_nats.models.system import Health, SystemStats
from ojs_nats.models.workers import Worker

_WINDOW_COLUMNS: Final = ("window", "pushed", "started", "done", "failed", "retried", "cancelled", "wait", "run p95")
_FAILURE_COLUMNS: Final = ("failed", "job", "type", "queue", "attempt", "error")
_READ: Final = 1_000
"""Queues and workers that are looked at."""
_FAILURES: Final = 10
_AROUND: Final = 14
"""Lines of a screen that aren't rows."""
_EXAMPLES: Final = """\
  ojs-nats top                       full screen; Ctrl+C ends it
  ojs-nats top --once                once, to be read or piped
  ojs-nats top --once --json | jq .stats.jobs.available
  ojs-nats top --json --interval 10s | jq .stats.throughput
"""


class Snapshot(msgspec.Struct, frozen=True):
    """How things are at a time. Queues have the busiest first, workers those with the most jobs."""

    at: datetime
    health: Health
    stats: SystemStats
    queues: list[Queue]
    workers: list[Worker]
    failures: list[Failure]


def define(parser: CommandParser) -> None:
    parser.add_argument("--interval", type=seconds, default=2.0, metavar="TIME", help="between looks [2s]")
    parser.add_argument("--once", action="store_true", help="look once")
    parser.does(_top, examples=_EXAMPLES)


async def _top(session: Session, given: argparse.Namespace) -> None:
    out = session.out
    if out.on_terminal and not (out.as_json or given.once):
        await _live(session, given.interval)
        return
    while True:
        snapshot = await look(session.client)
        if out.as_json and given.once:
            out.json(snapshot)
        elif out.as_json:
            out.json_line(snapshot)
        else:
            _tell(session, snapshot)
        out.flush()
        if given.once:
            return
        await asyncio.sleep(given.interval)


async def _live(session: Session, interval_s: float) -> None:
    console = session.out.console
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            try:
                seen = screen(session, await look(session.client), console.width, console.height)
            except UnavailableError as error:  # it may come back
                seen = Group(Text(clean(str(error)), "red"))
            live.update(seen, refresh=True)
            await asyncio.sleep(interval_s)


async def look(client: Client) -> Snapshot:
    """Everything at once. Raises what the client raises."""
    health, stats, queues, workers, failures = await asyncio.gather(
        client.system.health(), client.system.stats(), _queues(client), _workers(client), _failures(client)
    )
    return Snapshot(datetime.now(UTC), health, stats, queues, workers, failures)


async def _queues(client: Client) -> list[Queue]:
    found = [queue async for queue in client.queues.list(limit=_READ)]
    return sorted(found, key=lambda queue: (-queue.throughput.processed_per_minute, -queue.counts.available, queue.name))


async def _workers(client: Client) -> list[Worker]:
    found = [worker async for worker in client.workers.list(limit=_READ)]
    return sorted(found, key=lambda worker: (-worker.active_jobs, worker.id))


async def _failures(client: Client) -> list[Failure]:
    return [failure async for failure in client.system.failures(limit=_FAILURES)]


def screen(session: Session, now: Snapshot, width: int, height: int) -> Group:
    """What fits on a screen of so many columns and lines."""
    room = max(height - _AROUND, 9) // 3
    parts: list[object] = [_head(session, now), Text(_numbers(now))]
    for title, columns, rows in _tables(now):
        more = f", {len(rows) - room:,} more" if len(rows) > room else ""
        parts.append(Text(f"\n{title} ({len(rows):,}{more})", "bold"))
        if rows:
            parts.append(table(columns, [[shown(cell) for cell in row] for row in rows[:room]], width))
    return Group(*parts)  # type: ignore[arg-type]  # texts and tables are what it takes


def _tell(session: Session, now: Snapshot) -> None:
    """Print everything once, with the numbers of longer times, for which a screen has no room."""
    session.out.text(_head(session, now))
    session.out.text(_numbers(now))
    session.out.text()
    session.out.table(_WINDOW_COLUMNS, [_window_row(name, window) for name, window in now.stats.windows.items()])
    for title, columns, rows in _tables(now):
        session.out.heading(title)
        session.out.table(columns, rows, empty=f"{title}: none")
    session.out.text()


def _tables(now: Snapshot) -> list[tuple[str, tuple[str, ...], list[tuple[object, ...]]]]:
    failures: list[tuple[object, ...]] = [
        (one.failed_at, one.job_id, one.job_type, one.queue, one.attempt, f"{one.error.type}: {one.error.message}")
        for one in now.failures
    ]
    return [
        ("Queues", QUEUE_COLUMNS, [queue_row(queue) for queue in now.queues]),
        ("Workers", WORKER_COLUMNS, [worker_row(worker) for worker in now.workers]),
        ("Failures", _FAILURE_COLUMNS, failures),
    ]


def _window_row(name: str, window: Window) -> tuple[object, ...]:
    run = window.run_ms
    return (
        name, window.enqueued, window.started, window.processed, window.failed, window.retried, window.cancelled,
        duration(window.avg_latency_ms / 1_000), None if run is None else duration(run.p95 / 1_000),
    )  # fmt: skip


def _head(session: Session, now: Snapshot) -> Text:
    missing = now.health.services.missing
    lacks = f"  missing: {clean(', '.join(missing))}" if missing else ""
    return Text.assemble(
        (clean(session.target.shown), "bold"), "  ", shown(now.health.status), (lacks, "red"),
        f"  up {duration(now.stats.uptime_seconds)}  {now.at:%H:%M:%S} UTC",
    )  # fmt: skip


def _numbers(now: Snapshot) -> str:
    jobs = now.stats.jobs
    stale = f" ({now.stats.workers_stale} stale)" if now.stats.workers_stale else ""
    return (
        f"{jobs.available:,} available, {jobs.active:,} active, {jobs.scheduled:,} scheduled, {jobs.retryable:,} retryable, "
        f"{counted(now.stats.dead_letter, 'dead letter')}; {counted(now.stats.workers, 'worker')}{stale}; a minute: "
        f"{a_minute(now.stats.throughput)}"
    )
