"""How punctual cron entries are when many of them are due in the same second."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Final

from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import fill
from bench.scenarios.lateness import lateness

_REGISTRATIONS_PER_S: Final = 200
"""What the server is trusted to accept at least: the entries are due when all have been registered at this rate."""


def _expression(due_s: int) -> str:
    """Once a year, at this second."""
    at = datetime.fromtimestamp(due_s, UTC)
    return f"{at.second} {at.minute} {at.hour} {at.day} {at.month} *"


def _body(queue: str, number: int, due_s: int) -> dict[str, object]:
    return {
        "name": f"{queue}-{number}",
        "cron": _expression(due_s),
        "type": "bench.job",
        "args": [number],
        "options": {"queue": queue},
    }


async def run(bench: Bench) -> AsyncIterator[Result]:
    await bench.reset()
    number = bench.plan.crons
    queue = bench.queue("crons")
    due_s = int(time.time()) + 3 + number // _REGISTRATIONS_PER_S
    filled = await fill(bench, (bench.requests.post("/ojs/v1/cron", _body(queue, n, due_s)) for n in range(number)))
    yield await lateness(
        bench,
        "crons",
        f"{number:,} due in one second",
        queue,
        filled,
        filled_as="registered per s",
        first_s=due_s,
        spread_s=0.0,
        due_s=lambda _number: due_s,
    )
    await fill(bench, (bench.requests.delete(f"/ojs/v1/cron/{queue}-{n}") for n in range(number)))
