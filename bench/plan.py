"""What to run: the options of a run, and what every scenario is given."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from bench.client import Target, exchange
from bench.messages import Requests, error_name
from bench.processes import Meter

_RESET_TIMEOUT_S: Final = 30.0


class ServerRefused(Exception):
    """The server answered something that makes the run pointless; the message says what."""


class Plan(Struct, frozen=True, kw_only=True):
    """The sizes of a run. Durations in seconds, `rate` in pushes and `transitions` in transitions a second."""

    connections: tuple[int, ...] = (1, 32, 128)
    counts: tuple[int, ...] = (1, 10)
    duration: float = 5.0
    warmup: float = 1.0
    backlog: int = 20_000
    rate: float = 50.0
    samples: int = 500
    batches: tuple[int, ...] = (10, 100, 1_000, 10_000)
    blocked: int = 100_000
    transitions: float = 5_000.0
    sustained: float = 20.0


class Bench(NamedTuple):
    """A server to measure, and how."""

    target: Target
    requests: Requests
    plan: Plan
    meter: Meter
    run: str
    nats: str | None = None
    """The URL of the system's NATS, for scenarios that reach behind the HTTP API."""
    data: Path | None = None
    """The folder in which the system keeps its data."""

    @classmethod
    def against(
        cls, target: Target, plan: Plan, pids: Mapping[str, int], nats: str | None = None, data: Path | None = None
    ) -> Bench:
        return cls(target, Requests(target), plan, Meter(pids), secrets.token_hex(4), nats, data)

    def queue(self, name: str) -> str:
        """A queue name that no other run and no other scenario uses."""
        return f"bench-{self.run}-{name}-{secrets.token_hex(2)}"

    async def reset(self) -> bool:
        """Wipe a server in test mode; False when it isn't in test mode. Raises ServerRefused, OSError, TimeoutError."""
        status, body = await exchange(self.target, self.requests.reset(), timeout_s=_RESET_TIMEOUT_S)
        if status in (404, 405):
            return False
        if status >= 300:
            raise ServerRefused(f"the reset before a scenario was refused: {error_name(status, body)}")
        return True
