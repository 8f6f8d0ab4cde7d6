"""What pictures for the documents show: a shop on a normal day, with one queue that somebody paused."""

from __future__ import annotations

import math
import time
from typing import Any, Final, NamedTuple

import msgspec
import nats

from ojs_features.statistics.activity import Activity
from ojs_features.statistics.histogram import bucket_of
from ojs_features.statistics.records import MINUTE_MS, Span
from support.system import System
from support.waiting import eventually

_MINUTES: Final = 60
_WORKERS: Final = ("mail-1", "mail-2", "images-1", "orders-1", "orders-2")
_QUEUES: Final = {"mail": 14.0, "images": 5.0, "orders": 8.0, "search": 3.0}
"""Jobs a second of each queue, about."""
_ERROR: Final = {
    "code": "SmtpError",
    "type": "SmtpError",
    "message": "550 5.1.1 mailbox unavailable",
    "backtrace": ['File "shop/mail.py", line 41, in send', 'File "smtplib.py", line 887, in sendmail'],
}


class Shop(NamedTuple):
    """The ids of what pictures are about."""

    failed: str
    order: str

    @classmethod
    async def made(cls, system: System) -> Shop:
        await _an_hour_of(system)
        beat(system)
        for number in range(24):
            push(system, "mail.welcome", "mail", {"to": f"customer{number}@example.org", "template": "welcome"})
            done(system, "mail", "mail-1", {"message_id": f"<{number}@shop.example>"})
        failed = push(system, "mail.invoice", "mail", {"to": "ada@example.org", "invoice": "2026-1142"}, retry=_quickly(2))
        for _ in range(2):
            await fails(system, "mail", "mail-2")
        push(system, "mail.invoice", "mail", {"to": "grace@example.org", "invoice": "2026-1143"}, retry=_quickly(5, "PT4M"))
        await fails(system, "mail", "mail-1")
        for number in range(3):
            push(system, "image.scale", "images", {"file": f"product-{number}.png", "width": 640})
        fetched(system, "images", "images-1")
        for number in range(6):
            push(system, "report.daily", "reports", {"shop": number}, scheduled_at="2026-12-24T06:00:00Z")
        jobs = [
            {"type": "billing.charge", "args": [{"order": 7_300 + one}], "options": {"queue": "billing"}} for one in range(38)
        ]
        system.call("POST", "/jobs/batch", {"jobs": jobs}, 201)
        system.call("POST", "/queues/billing/pause", {})
        order = system.call("POST", "/workflows", {"name": "order 7311", "steps": _steps()}, 201)["workflow"]["id"]
        for _ in range(3):
            done(system, "orders", "orders-1", {"ok": True})
        fetched(system, "orders", "orders-2")
        return cls(failed, order)


def beat(system: System) -> None:
    """Have the workers heard of, as they are every few seconds."""
    for worker in _WORKERS:
        held = [job["id"] for job in system.call("GET", f"/jobs?worker={worker}&state=active")["jobs"]]
        body = {"worker_id": worker, "active_jobs": held, "queues": [worker.split("-")[0]], "concurrency": 20}
        system.call("POST", "/workers/heartbeat", {**body, "hostname": f"{worker}.shop.example"})


def _quickly(attempts: int, pause: str = "PT0.1S") -> dict[str, object]:
    return {"max_attempts": attempts, "initial_interval": pause, "jitter": False}


def _steps() -> list[dict[str, object]]:
    after = {
        "check": (),
        "reserve stock": ("check",),
        "charge": ("check",),
        "pack": ("reserve stock", "charge"),
        "label": ("charge",),
        "hand over": ("pack", "label"),
        "thank": ("hand over",),
    }
    return [
        {
            "id": name,
            "name": name,
            "type": f"order.{name.split()[0]}",
            "args": [7311],
            "depends_on": list(before),
            "options": {"queue": "orders"},
        }
        for name, before in after.items()
    ]


def push(system: System, kind: str, queue: str, arguments: dict[str, Any], **options: object) -> str:
    return str(system.push(kind, arguments, meta={"tenant": "eu"}, queue=queue, **options)["id"])


def fetched(system: System, queue: str, worker: str) -> str | None:
    """The job that a worker gets of a queue, if there is one."""
    jobs = system.fetch(queue, worker_id=worker, wait_ms=1_000)
    return str(jobs[0]["id"]) if jobs else None


def done(system: System, queue: str, worker: str, result: dict[str, Any]) -> None:
    system.call("POST", "/workers/ack", {"job_id": fetched(system, queue, worker), "worker_id": worker, "result": result})


async def fails(system: System, queue: str, worker: str) -> None:
    held: list[str] = []

    def one_is_held() -> bool:
        held.extend(filter(None, [fetched(system, queue, worker)]))
        return bool(held)

    await eventually(one_is_held)
    system.call("POST", "/workers/nack", {"job_id": held[0], "worker_id": worker, "error": _ERROR})


async def _an_hour_of(system: System) -> None:
    """Store the statistics of the last hour, as a projector would have kept them."""
    now = int(time.time() * 1_000)
    last = now - now % MINUTE_MS - MINUTE_MS
    client = await nats.connect(system.nats_url)
    try:
        for back in range(_MINUTES):
            start = last - back * MINUTE_MS
            queues = {name: _minute(rate, start) for name, rate in _QUEUES.items()}
            span = Span(start=start, length=MINUTE_MS, queues=queues)
            await client.jetstream().publish(f"$KV.ojs.stats.minute.{start // 1_000}.0", msgspec.json.encode(span))
    finally:
        await client.close()


def _minute(rate: float, start: int) -> Activity:
    """A minute of a queue: more and less by and by, with a peak that some jobs had to wait in."""
    at = start / MINUTE_MS
    peak = math.exp(-(((at % 60) - 22) ** 2) / 18)
    number = round(60 * rate * (1 + 0.25 * math.sin(at / 7) + 0.06 * math.sin(at * 2.3) + 0.8 * peak))
    failed = round(number * (0.01 + 0.05 * peak))
    slow = round(number * 0.02 * (1 + 6 * peak))
    return Activity(
        pushed=number,
        started=number,
        completed=number - failed,
        failed=failed,
        retried=failed,
        wait_ms=number * 14,
        completed_ms=number * 180,
        waits={bucket_of(9 + round(20 * peak)): number - slow, bucket_of(60 + round(700 * peak)): slow},
        runs={bucket_of(150): number - slow, bucket_of(900): slow},
    )
