"""What a run leaves: one `Result` per scenario, variant and repetition, and the report around them."""

from __future__ import annotations

from typing import Final

from msgspec import Struct, field

from bench.processes import Spent
from bench.stats import Quantiles

FORMAT: Final = 1


class Result(Struct, frozen=True, kw_only=True):
    """One measurement. `rate` is jobs a second; `latency` is what the scenario's description says, in ms.

    `errors` counts whatever went wrong, by name. `doubts` are the reasons not to trust the figures. `more` holds the
    scenario's other figures, by name with unit.
    """

    scenario: str
    variant: str
    jobs: int
    seconds: float
    rate: float | None = None
    latency: Quantiles | None = None
    more: dict[str, float] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    doubts: list[str] = field(default_factory=list)
    spent: Spent | None = None


class Machine(Struct, frozen=True, kw_only=True):
    """Where the figures come from. `load` is the one-minute load average when the run began."""

    cores: int
    cpu: str
    memory_gib: float
    system: str
    python: str
    versions: dict[str, str]
    load: float


class Report(Struct, frozen=True, kw_only=True):
    """A whole run, as `--json` stores it. `date` is RFC 3339 in UTC."""

    format: int = FORMAT
    date: str
    command: str
    server: str
    machine: Machine
    results: list[Result]
