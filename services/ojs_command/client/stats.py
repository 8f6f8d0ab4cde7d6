"""`ojs-nats stats`."""

from __future__ import annotations

import argparse
from typing import Final

import msgspec

from ojs_command.client.output import Output
from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session
from ojs_core.base.wording import duration
from ojs_nats.models.statistics import Throughput, Window
from ojs_nats.models.system import SystemStats

_COLUMNS: Final = ("window", "pushed", "started", "done", "failed", "retried", "cancelled", "wait", "run p95")
_EXAMPLES: Final = """\
  ojs-nats stats
  ojs-nats stats --json | jq .jobs.available
"""


def define(parser: CommandParser) -> None:
    parser.does(_stats, examples=_EXAMPLES)


async def _stats(session: Session, _given: argparse.Namespace) -> None:
    stats = await session.client.system.stats()
    if session.out.as_json:
        session.out.json(stats)
    else:
        tell_stats(session.out, stats)


def tell_stats(out: Output, stats: SystemStats) -> None:
    oldest = stats.oldest_available_age_ms
    out.members(
        [
            *msgspec.structs.asdict(stats.jobs).items(),
            ("dead letters", stats.dead_letter),
            ("queues", stats.queues),
            ("workers", f"{stats.workers} ({stats.workers_stale} stale)" if stats.workers_stale else stats.workers),
            ("a minute", a_minute(stats.throughput)),
            ("oldest waits for", None if oldest is None else duration(oldest / 1_000)),
            ("gateway runs for", duration(stats.uptime_seconds)),
        ]
    )
    out.text()
    out.table(_COLUMNS, [_row(name, window) for name, window in stats.windows.items()])


def a_minute(rates: Throughput) -> str:
    """What comes, and what becomes of it."""
    pushed, done, failed = rates.enqueued_per_minute, rates.processed_per_minute, rates.failed_per_minute
    return f"{pushed:,.1f} pushed, {done:,.1f} done, {failed:,.1f} failed"


def _row(name: str, window: Window) -> tuple[object, ...]:
    run = window.run_ms
    return (
        name, window.enqueued, window.started, window.processed, window.failed, window.retried, window.cancelled,
        duration(window.avg_latency_ms / 1_000), None if run is None else duration(run.p95 / 1_000),
    )  # fmt: skip
