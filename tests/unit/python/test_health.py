"""The health endpoint, and what it adds to a worker."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from ojs_nats._chains import ExecutionChain
from ojs_nats._worker.health import Health
from ojs_nats._worker.lifecycle import Vitals, WorkerState
from ojs_nats.middleware import Metrics


def vitals(
    state: WorkerState = WorkerState.RUNNING, *, turns: bool = True, fetches: bool = True, silent_s: float = 1.0
) -> Vitals:
    return Vitals(state, 2, 10, turns, fetches, silent_s, 5.0)


@pytest.mark.parametrize(
    ("now", "ready"),
    [
        (vitals(), True),
        (vitals(WorkerState.QUIET), False),
        (vitals(WorkerState.TERMINATE), False),
        (vitals(turns=False), False),
        (vitals(fetches=False), False),
        (vitals(silent_s=15.0), False),
    ],
)
def test_a_worker_is_ready_while_it_takes_jobs(now: Vitals, *, ready: bool) -> None:
    assert now.ready is ready


@pytest.mark.parametrize("name", ["Metrics", "numbers"])
def test_jobs_are_counted_once(name: str) -> None:
    chain = ExecutionChain()
    with Health("127.0.0.1", 0, chain, vitals):
        assert chain.names == ("Metrics",)
    chain = ExecutionChain()
    chain.add(Metrics(CollectorRegistry()), name)
    with Health("127.0.0.1", 0, chain, vitals):
        assert chain.names == (name,)


def test_a_port_can_t_be_had_twice() -> None:
    with Health("127.0.0.1", 0, ExecutionChain(), vitals) as first, pytest.raises(OSError, match="in use"):
        Health("127.0.0.1", first.port, ExecutionChain(), vitals)
