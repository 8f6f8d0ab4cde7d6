"""From jobs a second to processes, memory, disk and network. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from bench.report import number, table
from bench.simulation.costs import COSTS, Costs, work
from ojs_command.server_conf import FILE_GB

USED: Final = 0.6
"""The part of a core, or of a stream, that a sizing fills: the rest is for bursts and what else goes on."""
DISK_ROOM: Final = 2.0
"""Disk that is given for each byte stored: what isn't compacted yet takes room, too (`ojs_command.server_conf`)."""
_SERVICES: Final = 3
"""Scheduler, reaper and coordinator. What they cost a job wasn't measured; one of each keeps up with a machine."""
_KIB: Final = 1024
_HOUR_S: Final = 3_600
_MESSAGE_BYTES: Final = 500
"""Of a stored message without arguments and results, with its subject and headers: estimated, not measured."""


class Load(Struct, frozen=True, kw_only=True):
    """What a system is to carry. `body_kb` is the size of arguments and result together, `kept_h` how long a job stays."""

    per_second: float
    kept_h: float = 24.0
    body_kb: float = 1.0
    replicas: int = 1
    batched: bool = False
    speed: float = 1.0
    """How much faster the cores are than those of the costs."""


class Need(NamedTuple):
    """What a load takes. Cores are of nats-server at its leader, of all gateways and of one projector."""

    gateway_cores: float
    gateways: int
    nats_cores: float
    projector_cores: float
    stored: float
    nats_disk_gb: float
    index_gb: float
    rebuilt_min: float
    nats_memory_gb: float
    services_memory_gb: float
    connections: int
    network_mb: float
    size: str

    @property
    def one_projector_keeps_up(self) -> bool:
        return self.projector_cores <= 1


def need(load: Load, costs: Costs = COSTS) -> Need:
    """Return what a steady load takes of each process and machine."""
    each = work(costs, batched=load.batched)
    cores = [load.per_second * us / 1e6 / load.speed for us in each]
    stored = load.per_second * load.kept_h * _HOUR_S
    gateways = max(1, math.ceil(cores[1] / USED - 1e-9))
    disk_gb = stored * (costs.disk.value + load.body_kb) / 1e6
    services_mib = gateways * costs.gateway_memory.value + costs.projector_memory.value + _SERVICES * costs.service_memory.value
    messages = costs.record_writes.value + costs.ready_writes.value + costs.events.value
    return Need(
        gateway_cores=cores[1],
        gateways=gateways,
        nats_cores=cores[0],
        projector_cores=cores[2],
        stored=stored,
        nats_disk_gb=disk_gb,
        index_gb=stored * (costs.index.value + load.body_kb) / 1e6,
        rebuilt_min=stored / costs.rebuilt.value / 60,
        nats_memory_gb=(costs.nats_memory.value * _KIB + stored * costs.nats_job_memory.value) / 1e6,
        services_memory_gb=services_mib / _KIB,
        connections=round((gateways + _SERVICES + 1) * costs.connections.value),
        network_mb=load.per_second * (messages * _MESSAGE_BYTES / 1e6 + 3 * load.body_kb / 1e3) * load.replicas,
        size=fitting_size(disk_gb),
    )


def fitting_size(disk_gb: float) -> str:
    """Return the smallest `--size` of `ojs-nats nats-conf` with room for that, or what to say in its place."""
    return next((size for size, gigabytes in FILE_GB.items() if gigabytes >= disk_gb * DISK_ROOM), "none: --jobs, or keep less")


def sizing_table(loads: Sequence[Load], costs: Costs = COSTS) -> str:
    """Return worked examples, a column for each load."""
    needs = [need(load, costs) for load in loads]
    header = ["", *(f"{number(load.per_second)}/s, kept {number(load.kept_h)} h" for load in loads)]
    rows: list[tuple[str, list[str]]] = [
        ("cores of all gateways", [number(one.gateway_cores) for one in needs]),
        (f"gateways, each used to {USED:.0%}", [number(one.gateways) for one in needs]),
        ("cores of nats-server", [number(one.nats_cores) for one in needs]),
        ("cores of a projector", [number(one.projector_cores) for one in needs]),
        ("one projector keeps up", ["yes" if one.one_projector_keeps_up else "**no**" for one in needs]),
        ("jobs stored", [number(round(one.stored)) for one in needs]),
        ("nats-server's files, GB", [number(one.nats_disk_gb) for one in needs]),
        ("a projector's index, GB", [number(one.index_gb) for one in needs]),
        ("that index built anew, minutes", [number(one.rebuilt_min) for one in needs]),
        ("nats-server's memory, GB", [number(one.nats_memory_gb) for one in needs]),
        ("memory of all services, GB", [number(one.services_memory_gb) for one in needs]),
        ("connections to NATS", [number(one.connections) for one in needs]),
        ("stored messages, MB/s (estimated)", [number(one.network_mb) for one in needs]),
        ("`nats-conf --size`", [one.size for one in needs]),
    ]
    return table(header, [[name, *cells] for name, cells in rows])


EXAMPLES: Final = (
    Load(per_second=10, kept_h=7 * 24),
    Load(per_second=1_000, kept_h=6),
    Load(per_second=10_000, kept_h=1, batched=True),
)
"""The examples of docs/sizing.md."""
