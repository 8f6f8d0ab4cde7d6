"""What was measured, each figure with its source: the only inputs of sizing and simulation."""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Struct

from bench.report import number, table
from ojs_command.server_conf import KB_A_JOB


class Cost(NamedTuple):
    """One measured figure, and where it comes from."""

    what: str
    value: float
    unit: str
    source: str


_WHOLE: Final = "`python -m bench --quick whole`, A"
_BATCH: Final = "`python -m bench --quick batch`, A"
_DRAIN: Final = "`python -m bench --quick drain`, A"
_FOOTPRINT: Final = "`python -m bench footprint --finished 5000`, A"
_SOAK: Final = "the soak of docs/reliability.md, B"
_WALKS: Final = "docs/architecture.md, counted"
_STREAMS: Final = "C"


class Costs(Struct, frozen=True, kw_only=True):
    """The table of all costs. CPU times are of one core."""

    nats_whole: Cost = Cost("nats-server: a job one by one", 572, "CPU µs", _WHOLE)
    gateway_whole: Cost = Cost("gateway: a job one by one", 1_347, "CPU µs", _WHOLE)
    projector_whole: Cost = Cost("projector: a job one by one", 290, "CPU µs", _WHOLE)
    nats_batch: Cost = Cost("nats-server: a push in a batch of 100", 154, "CPU µs", _BATCH)
    gateway_batch: Cost = Cost("gateway: a push in a batch of 100", 100, "CPU µs", _BATCH)
    projector_batch: Cost = Cost("projector: a push in a batch of 100", 119, "CPU µs", _BATCH)
    nats_fetch: Cost = Cost("nats-server: a job in a fetch of ten", 189, "CPU µs", _DRAIN)
    gateway_fetch: Cost = Cost("gateway: a job in a fetch of ten", 224, "CPU µs", _DRAIN)
    projector_fetch: Cost = Cost("projector: a job in a fetch of ten", 136, "CPU µs", _DRAIN)
    nats_ack: Cost = Cost("nats-server: an ack", 146, "CPU µs", _DRAIN)
    gateway_ack: Cost = Cost("gateway: an ack", 360, "CPU µs", _DRAIN)
    projector_ack: Cost = Cost("projector: an ack", 153, "CPU µs", _DRAIN)
    disk: Cost = Cost("nats-server's files: a finished job", KB_A_JOB, "KB", _FOOTPRINT)
    index: Cost = Cost("a projector's index: a finished job", 2.5, "KB", _FOOTPRINT)
    nats_job_memory: Cost = Cost("nats-server's memory: a stored job", 0.7, "KB", "docs/performance.md, with a million")
    nats_memory: Cost = Cost("nats-server's memory under load, few jobs stored", 269, "MiB", _SOAK)
    gateway_memory: Cost = Cost("gateway's memory", 65, "MiB", _SOAK)
    projector_memory: Cost = Cost("projector's memory", 168, "MiB", _SOAK)
    service_memory: Cost = Cost("scheduler's, reaper's, coordinator's memory, each", 58, "MiB", _SOAK)
    record_writes: Cost = Cost("writes of its record: a job", 3, "messages", _WALKS)
    ready_writes: Cost = Cost("token stored and let go: a job", 2, "messages", _WALKS)
    events: Cost = Cost("events of a job that succeeds", 3, "messages", _WALKS)
    connections: Cost = Cost("connections of a process to NATS", 2, "connections", "`Store.connect`, counted")
    watches: Cost = Cost("watches of a gateway: queues, pools, schemas, keys, workers", 5, "consumers", "`Watch`, counted")
    consumer_memory: Cost = Cost("nats-server's memory: an idle consumer", 50, "KB", "docs/adr/029")
    empty_pull: Cost = Cost("nats-server: a pull that brings nothing", 15, "CPU µs", _STREAMS)
    heard_nats: Cost = Cost("nats-server: a message delivered to one more", 2.4, "CPU µs", "200 subscribers, C")
    # docs/adr/042: gateways took 10.6 of the generator's time with 4 and 15.6 with 16; 6.6 were 1,347 µs with one.
    heard_gateway: Cost = Cost(
        "gateway: a job that it hears of and another gets", 85, "CPU µs",
        "derived from docs/adr/042, A",
    )  # fmt: skip
    writes_alone: Cost = Cost("writes of one stream on one server", 37_000, "a second", _STREAMS)
    writes_cluster: Cost = Cost("writes of one stream on three servers", 14_000, "a second", _STREAMS)
    token_nats: Cost = Cost("nats-server: a token that the safety net reads", 5.5, "CPU µs", "docs/adr/033")
    token_projector: Cost = Cost("projector: a token that the safety net reads", 8, "CPU µs", "docs/adr/033")
    tokens_a_round: Cost = Cost(
        "tokens of a queue that the safety net reads every ten seconds", 20_000, "tokens", "docs/adr/033"
    )
    rebuilt: Cost = Cost("records a second that a new index takes up", 22_700, "a second", "docs/adr/019, a million records")
    busy_queues: Cost = Cost("consumers that a stream of tokens takes", 2_000, "consumers", "`StoreConfig`")
    service_consumers: Cost = Cost("consumers that the records' stream takes", 5_000, "consumers", "`StoreConfig`")


COSTS: Final = Costs()


class Work(NamedTuple):
    """CPU time that one job takes of each process, in µs."""

    nats: float
    gateway: float
    projector: float


def work(costs: Costs, *, batched: bool) -> Work:
    """Return what a job costs: pushed, fetched and acknowledged by itself, or pushed by 100 and fetched by ten."""
    if not batched:
        return Work(costs.nats_whole.value, costs.gateway_whole.value, costs.projector_whole.value)
    return Work(
        costs.nats_batch.value + costs.nats_fetch.value + costs.nats_ack.value,
        costs.gateway_batch.value + costs.gateway_fetch.value + costs.gateway_ack.value,
        costs.projector_batch.value + costs.projector_fetch.value + costs.projector_ack.value,
    )


def costs_table(costs: Costs = COSTS) -> str:
    """Return the table of all costs, as docs/sizing.md has it."""
    rows = [getattr(costs, name) for name in costs.__struct_fields__]
    return table(
        ["what", "figure", "unit", "source"], [[one.what, number(one.value), one.unit, one.source] for one in rows], left=1
    )
