"""How many streams a load needs, by layout: what the busiest of them carries, and what is too much. Pure."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from msgspec import Struct

from bench.simulation.costs import COSTS, work
from bench.simulation.day import DAY_S, Followed, curve, follow
from bench.simulation.shards import Layout, shares, zipf
from bench.simulation.sizing import USED

MOST_SHARDS: Final = 1_024
LANE_USED: Final = 0.2
"""The part of a stream's writes that one lane of a queue fills at the peak: several find room in a stream."""


class Scenario(Struct, frozen=True, kw_only=True):
    """A day's load. `skew` is the exponent of Zipf, `peak` the day's highest rate as a multiple of its mean.

    Hashes put queues elsewhere in each of `seeds` tries: the worst counts.
    """

    per_day: float = 1e9
    queues: int = 1_000
    skew: float = 1.0
    peak: float = 2.0
    replicas: int = 3
    batched: bool = False
    speed: float = 1.0
    most_lag_s: float = 60.0
    seeds: int = 10

    @property
    def per_second(self) -> float:
        return self.per_day / DAY_S

    @property
    def stream_writes(self) -> float:
        """Writes a second of one stream."""
        return (COSTS.writes_alone if self.replicas == 1 else COSTS.writes_cluster).value

    @property
    def lane(self) -> float:
        """The share of all jobs that one lane of a queue takes."""
        return LANE_USED * self.stream_writes / (self.per_second * self.peak * COSTS.ready_writes.value)


class Outcome(NamedTuple):
    """The busiest shard of a layout: the parts of a stream's writes that it uses at the peak, and how its projector gets on."""

    layout: Layout
    shards: int
    records_used: float
    tokens_used: float
    projector: Followed
    too_much: tuple[str, ...]

    @property
    def enough(self) -> bool:
        return not self.too_much


@cache
def outcome(scenario: Scenario, layout: Layout, shards: int) -> Outcome:
    """Return how so many shards carry the load, where the hash put the queues worst."""
    queues = zipf(scenario.queues, scenario.skew)
    tries = [shares(layout, queues, shards, seed, scenario.lane) for seed in range(scenario.seeds)]
    records = max(max(one.records) for one in tries)
    tokens = max(max(one.tokens) for one in tries)
    peak = scenario.per_second * scenario.peak
    records_used = peak * records * COSTS.record_writes.value / scenario.stream_writes
    tokens_used = peak * tokens * COSTS.ready_writes.value / scenario.stream_writes
    day = [scenario.per_second * records * part for part in curve(scenario.peak)]
    _, stored = follow(day, scenario.stream_writes / COSTS.record_writes.value)
    projector, _ = follow(stored, scenario.speed * 1e6 / work(COSTS, batched=scenario.batched).projector)
    return Outcome(
        layout,
        shards,
        records_used,
        tokens_used,
        projector,
        tuple(
            name
            for name, over in (
                ("writes of records", records_used > USED),
                ("writes of tokens", tokens_used > USED),
                ("projector", not projector.keeps_up or projector.lag_s > scenario.most_lag_s),
            )
            if over
        ),
    )


def smallest(scenario: Scenario, layout: Layout) -> Outcome:
    """Return the outcome of the smallest power of two that is enough, else that of the largest that is tried."""
    shards = 1
    while not (found := outcome(scenario, layout, shards)).enough and shards < MOST_SHARDS:
        shards *= 2
    return found
