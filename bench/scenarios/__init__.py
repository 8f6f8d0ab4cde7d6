"""The scenarios by name, in the order in which they run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Final, NamedTuple

from bench.plan import Bench
from bench.result import Result
from bench.scenarios import blocked, dispatch, drain, projector, push, whole


class Scenario(NamedTuple):
    """`about` is one line for people; `run` yields a result for each variant of the plan.

    One that `needs_nats` is left out when the system's NATS isn't known.
    """

    about: str
    run: Callable[[Bench], AsyncIterator[Result]]
    needs_nats: bool = False


SCENARIOS: Final[dict[str, Scenario]] = {
    "enqueue": Scenario("POST one job per request; latency is that of a request", push.enqueue),
    "batch": Scenario("POST many jobs per request, one request at a time; latency is that of a request", push.batch),
    "drain": Scenario("fetch a backlog, then ack it (reported as fetch and ack); latency is that of a request", drain.run),
    "whole": Scenario("each connection pushes, fetches and acks, again and again; latency is that of all three", whole.run),
    "dispatch": Scenario("pushes at a low fixed rate to idle long polls; latency from push to fetch answer", dispatch.run),
    "projector": Scenario(
        "transitions at a fixed rate; latency is how far the projector is behind", projector.run, needs_nats=True
    ),
    "blocked": Scenario(
        "jobs behind many that wait for a permit of their key; latency is from the push to the fetch's answer", blocked.run
    ),
}
