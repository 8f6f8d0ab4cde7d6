"""What uniqueness costs a push: keys that are all new, and a few that all pushes fight for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import count

from bench.load import Phase, drive
from bench.plan import Bench
from bench.result import Result
from bench.scenarios.connections import Pusher
from bench.scenarios.outcome import outcome

_CONNECTIONS = 32
_FOUGHT_FOR = 10


def _pushes(bench: Bench, queue: str, on_conflict: str, keys: int | None) -> Iterator[bytes]:
    unique = {"keys": ["type", "queue", "args"], "on_conflict": on_conflict}
    for number in count():
        key = number if keys is None else number % keys
        body = {"type": "bench.job", "args": [key], "options": {"queue": queue, "unique": unique}}
        yield bench.requests.post("/ojs/v1/jobs", body)


async def run(bench: Bench) -> AsyncIterator[Result]:
    for variant, on_conflict, keys in (
        ("new keys", "reject", None),
        (f"{_FOUGHT_FOR} keys, ignore", "ignore", _FOUGHT_FOR),
        (f"{_FOUGHT_FOR} keys, replace", "replace", _FOUGHT_FOR),
    ):
        await bench.reset()
        phase = Phase()
        pushes = _pushes(bench, bench.queue("unique"), on_conflict, keys)
        pushers = [Pusher(bench.target, phase, pushes) for _ in range(_CONNECTIONS)]
        spent = await drive(phase, pushers, seconds=bench.plan.duration, warmup=bench.plan.warmup, meter=bench.meter)
        yield outcome("unique", variant, phase, spent, rate=True)
