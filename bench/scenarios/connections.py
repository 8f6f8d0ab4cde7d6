"""The connections that several scenarios use: pushers, acknowledgers and long polls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from bench.client import Target
from bench.load import Looper, Phase, drive
from bench.messages import Requests, fetched_jobs
from bench.plan import Bench

WAIT_MS: Final = 2_000
"""How long a long poll asks the server to wait."""

_FILL_CONNECTIONS: Final = 32
_FILL_LIMIT_S: Final = 300.0
_IMPATIENT_PAUSE_S: Final = 0.01


class Pusher(Looper):
    """Sends the pushes of an iterator, which pushers may share."""

    def __init__(self, target: Target, phase: Phase, requests: Iterator[bytes]) -> None:
        super().__init__(target, phase)
        self._requests = requests

    def next_request(self) -> bytes | None:
        return next(self._requests, None)

    def taken(self, body: bytes, now: float) -> None:  # noqa: ARG002 - the status says all
        self.phase.count(now, now - self.sent)


class Acker(Looper):
    """Acknowledges the jobs of a list, which ackers may share, and empties it."""

    def __init__(self, target: Target, phase: Phase, requests: Requests, ids: list[str]) -> None:
        super().__init__(target, phase)
        self._requests = requests
        self._ids = ids

    def next_request(self) -> bytes | None:
        return self._requests.ack(self._ids.pop()) if self._ids else None

    def taken(self, body: bytes, now: float) -> None:  # noqa: ARG002 - the status says all
        self.phase.count(now, now - self.sent)


class Arrivals:
    """When each numbered job was fetched (`perf_counter`), until all `wanted` numbers from 0 up are there."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.at: dict[int, float] = {}
        self.again = 0

    def add(self, number: int, now: float) -> None:
        """Negative numbers are for warming up and aren't kept."""
        if number in self.at:
            self.again += 1
        elif number >= 0:
            self.at[number] = now

    @property
    def complete(self) -> bool:
        return len(self.at) >= self.wanted

    def errors(self) -> dict[str, int]:
        """What is wrong when nothing more is going to arrive, by name."""
        found = {"never fetched": self.wanted - len(self.at), "fetched again": self.again}
        return {name: times for name, times in found.items() if times}


class Waiter(Looper):
    """Long-polls for jobs, notes their arrival, and acknowledges them."""

    def __init__(self, target: Target, phase: Phase, requests: Requests, fetch: bytes, arrivals: Arrivals) -> None:
        super().__init__(target, phase)
        self._requests = requests
        self._fetch = fetch
        self._arrivals = arrivals
        self._to_ack: list[str] = []
        self._acking = False
        self._pause_s = 0.0

    def next_request(self) -> bytes | None:
        self._acking = bool(self._to_ack)
        return self._requests.ack(self._to_ack.pop()) if self._to_ack else self._fetch

    def taken(self, body: bytes, now: float) -> None:
        self._pause_s = 0.0
        if self._acking:
            return
        jobs = fetched_jobs(body)
        for job in jobs:
            self._arrivals.add(job.args[0], now)
        if jobs:
            self._to_ack.extend(job.id for job in jobs)
            self.phase.count(now, now - self.sent, len(jobs))
            if self._arrivals.complete:
                self.phase.finish()
        elif now - self.sent < WAIT_MS / 2000:
            # A server that doesn't hold the request would otherwise be asked without a pause.
            self._pause_s = _IMPATIENT_PAUSE_S
            self.phase.empty += 1

    def pause_s(self) -> float:
        return self._pause_s


async def fill(bench: Bench, requests: Iterable[bytes]) -> Phase:
    """Send pushes as set-up, as fast as the server takes them. `jobs` and `errors` of the answer say what came of it."""
    phase = Phase()
    shared = iter(requests)
    await drive(phase, [Pusher(bench.target, phase, shared) for _ in range(_FILL_CONNECTIONS)], seconds=_FILL_LIMIT_S)
    return phase


async def settle(bench: Bench, ids: list[str]) -> None:
    """Acknowledge what a scenario still holds, so that no server is left with jobs that look active."""
    phase = Phase()
    ackers = [Acker(bench.target, phase, bench.requests, ids) for _ in range(_FILL_CONNECTIONS)]
    await drive(phase, ackers, seconds=_FILL_LIMIT_S)
