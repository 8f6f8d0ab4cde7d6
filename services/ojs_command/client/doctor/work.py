"""Whether the work goes on: queues, workers, maintenance, webhooks."""

from __future__ import annotations

from typing import Final

from ojs_command.client.doctor.findings import Finding, ok, warning
from ojs_command.client.output import counted, duration
from ojs_nats import Client
from ojs_nats.answers.queues import Queue
from ojs_nats.answers.workers import Worker

_READ: Final = 1_000
"""Queues and workers that are looked at."""
_WAITS_MS: Final = 60_000
_SHOWN: Final = 5


async def check_queues(client: Client) -> list[Finding]:
    """Whether jobs wait that nobody takes."""
    queues = [queue async for queue in client.queues.list(limit=_READ)]
    workers = [worker async for worker in client.workers.list(limit=_READ)]
    found = []
    if paused := [queue.name for queue in queues if queue.paused]:
        found.append(
            warning(
                "queues",
                f"paused: {_named(paused)}",
                "their jobs are not handed out",
                "'ojs-nats queues resume QUEUE', if that is not meant",
            )
        )
    late = [queue for queue in queues if not queue.paused and (queue.oldest_available_age_ms or 0) > _WAITS_MS]
    if alone := [queue for queue in late if not _served(queue, workers)]:
        found.append(
            warning(
                "queues",
                f"jobs wait and no worker takes them: {_waits(alone)}",
                "they wait until a worker of their queue comes",
                f"start one: 'ojs-nats worker MODULE --queues {alone[0].name}'",
            )
        )
    if slow := [queue for queue in late if _served(queue, workers)]:
        found.append(
            warning(
                "queues",
                f"jobs have waited for long: {_waits(slow)}",
                "more comes than the workers do, or a limit or the jobs' types keep them back",
                "start more workers or raise --concurrency; 'ojs-nats queues get QUEUE' shows limits (docs/debugging.md)",
            )
        )
    return found or [ok("queues", f"{counted(len(queues), 'queue')}, no job has waited for more than a minute")]


def _served(queue: Queue, workers: list[Worker]) -> bool:
    return any(queue.name in worker.queues and worker.state == "running" for worker in workers)


def _waits(queues: list[Queue]) -> str:
    return _named([f"{queue.name} ({duration((queue.oldest_available_age_ms or 0) / 1_000)})" for queue in queues])


def _named(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


async def check_workers(client: Client) -> list[Finding]:
    """Whether workers have fallen silent."""
    fleet = await client.workers.summary()
    if fleet.stale:
        return [
            warning(
                "workers",
                f"{counted(fleet.stale, 'worker')} of {fleet.total:,} have sent no heartbeat for a while",
                "they have died or can't reach the server; their jobs go to others once their leases end",
                "'ojs-nats workers --state stale' names them: see their logs",
            )
        ]
    quiet = f", {fleet.quiet:,} of them quiet" if fleet.quiet else ""
    return [ok("workers", f"{counted(fleet.active, 'worker')}{quiet}")]


async def check_maintenance(client: Client) -> list[Finding]:
    """Whether an operator holds everything."""
    now = await client.system.maintenance()
    if not now.maintenance:
        return [ok("maintenance", "there is none")]
    return [
        warning(
            "maintenance",
            f"there is maintenance{f': {now.reason}' if now.reason else ''}",
            "no job is handed out, no delay and no cron entry comes due, until it ends",
            'if it is over, end it: POST {"enabled": false} to $OJS/admin/system/maintenance (docs/admin.md)',
        )
    ]


async def check_webhooks(client: Client) -> list[Finding]:
    """Whether somebody was not told what they wanted to hear."""
    dead = [delivery async for delivery in client.webhooks.deliveries(status="dead", limit=_SHOWN)]
    if not dead:
        return [ok("webhooks", "no delivery was given up")]
    why = _named([f"{one.id} ({one.error or one.last_status_code})" for one in dead])
    return [
        warning(
            "webhooks",
            f"deliveries were given up: {why}",
            "their receivers have missed these events",
            "mend the receiver, and send them again (docs/webhooks.md)",
        )
    ]
