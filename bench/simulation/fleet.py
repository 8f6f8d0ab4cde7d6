"""What many gateways cost the servers beside the jobs: connections, watches, wakes, the safety net. Pure."""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from msgspec import Struct

from bench.simulation.costs import COSTS, Costs

_HOME_SERVICES: Final = 4
"""Watches that scheduler, reaper, coordinator and projector have of settings, one each at least."""
_BEAT_S: Final = 5.0
"""How often a process says that it is there."""
_PULL_S: Final = 1.0
"""How often a watch asks: `ojs_core.jetstream.watch`."""
ROUND_S: Final = 10.0
"""How often the safety net looks."""


class Fleet(Struct, frozen=True, kw_only=True):
    """Gateways around N shards. `listeners` is how many gateways have a worker that waits for a queue, on the mean."""

    gateways: int
    servers: int
    shards: int
    listeners: int
    per_second: float
    speed: float = 1.0


class Around(NamedTuple):
    """What they cost. Cores are of all nats-servers together, but `gateway_hearing`: of each gateway."""

    connections_a_server: int
    watch_consumers: int
    too_many_watches: bool
    watch_memory_mib: float
    watch_cores: float
    change_ms: float
    beats: float
    wakes: float
    wake_cores: float
    gateway_hearing: float


def around(fleet: Fleet, costs: Costs = COSTS) -> Around:
    """Return what a fleet costs while jobs come at its rate.

    All settings are in one stream, so its consumers are those of all gateways, whatever the number of shards.
    """
    projectors = fleet.shards
    processes = fleet.gateways + projectors + _HOME_SERVICES
    consumers = round(fleet.gateways * costs.watches.value) + projectors + _HOME_SERVICES
    wakes = fleet.per_second * fleet.listeners
    heard = fleet.per_second * fleet.listeners / fleet.gateways
    return Around(
        connections_a_server=math.ceil(processes * costs.connections.value / fleet.servers),
        watch_consumers=consumers,
        too_many_watches=consumers > costs.service_consumers.value,
        watch_memory_mib=consumers * costs.consumer_memory.value / 1024,
        watch_cores=consumers / _PULL_S * costs.empty_pull.value / 1e6 / fleet.speed,
        change_ms=fleet.gateways * costs.heard_nats.value / 1e3 / fleet.speed,
        beats=processes / _BEAT_S,
        wakes=wakes,
        wake_cores=wakes * costs.heard_nats.value / 1e6 / fleet.speed,
        gateway_hearing=heard * costs.heard_gateway.value / 1e6 / fleet.speed,
    )


class Search(NamedTuple):
    """How the safety net looks for a lost token in the longest queue."""

    rounds: int
    seconds: float
    nats_cores: float
    projector_cores: float


def search(backlog: float, lanes: int, costs: Costs = COSTS, speed: float = 1.0) -> Search:
    """Return what it takes to look through the tokens of one queue that lie in so many streams."""
    a_round = min(backlog / lanes, costs.tokens_a_round.value)
    rounds = max(1, math.ceil(backlog / lanes / costs.tokens_a_round.value))
    return Search(
        rounds,
        rounds * ROUND_S,
        a_round * lanes * costs.token_nats.value / 1e6 / ROUND_S / speed,
        a_round * costs.token_projector.value / 1e6 / ROUND_S / speed,
    )
