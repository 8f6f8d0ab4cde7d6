"""The scenarios by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple

from bench.plan import Bench
from bench.result import Result
from bench.scenarios import (
    batch,
    blocked,
    crons,
    dashboard,
    delays,
    dispatch,
    drain,
    enqueue,
    events,
    footprint,
    growth,
    idle,
    index,
    keys,
    lists,
    projector,
    queues,
    whole,
    wide,
    workflows,
)


class Scenario(NamedTuple):
    """`about` is one line for people; `run` yields a result for each variant of the plan.

    One that `needs_nats` is left out when the system's NATS isn't known.
    """

    about: str
    run: Callable[[Bench], AsyncIterator[Result]]
    needs_nats: bool = False


SCENARIOS: Final[dict[str, Scenario]] = {
    "enqueue": Scenario("POST one job per request; latency is that of a request", enqueue.run),
    "batch": Scenario("POST many jobs per request, one request at a time; latency is that of a request", batch.run),
    "drain": Scenario("fetch a backlog, then ack it (reported as fetch and ack); latency is that of a request", drain.run),
    "whole": Scenario("each connection pushes, fetches and acks, again and again; latency is that of all three", whole.run),
    "wide": Scenario("the same, each fetch naming 1, 20 and 100 queues; latency is that of all three", wide.run),
    "idle": Scenario("many long polls for which there is nothing; cores is what they take", idle.run),
    "dispatch": Scenario("pushes at a low fixed rate to idle long polls; latency from push to fetch answer", dispatch.run),
    "delays": Scenario("many delayed jobs pending; latency is how late after its due time a job is fetched", delays.run),
    "workflows": Scenario("workflows of growing size; latency is the time per member, from creation to the end", workflows.run),
    "crons": Scenario("cron entries due in the same second; latency is how late the job of each is fetched", crons.run),
    "events": Scenario(
        "pushes at a fixed rate; latency from the answer to the event at a NATS subscriber", events.run, needs_nats=True
    ),
    "projector": Scenario(
        "transitions at a fixed rate; latency is how far the projector is behind", projector.run, needs_nats=True
    ),
    "keys": Scenario("requests at the door, with keys and without, in this process; CPU of one request", keys.run),
    "blocked": Scenario(
        "jobs behind many that wait for a permit of their key; latency is from the push to the fetch's answer", blocked.run
    ),
    "queues": Scenario("one job in each of many queues, through a store; memory and CPU of NATS", queues.run, needs_nats=True),
    "footprint": Scenario("jobs that are all done; bytes on the disk, and memory of the processes", footprint.run),
    "growth": Scenario(
        "whole jobs beside more and more stored ones, and over more and more queues", growth.run, needs_nats=True
    ),
    "index": Scenario(
        "build the index of many records from nothing, then ask; latency is that of a request", index.run, needs_nats=True
    ),
    "lists": Scenario(
        "lists and counts of many jobs by every filter and order; latency is that of a request", lists.run, needs_nats=True
    ),
    "dashboard": Scenario(
        "the dashboard over many jobs, in Chromium; latency is until it is seen", dashboard.run, needs_nats=True
    ),
}
