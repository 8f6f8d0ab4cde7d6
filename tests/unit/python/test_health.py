"""The health endpoint, and what it adds to a worker."""

from __future__ import annotations

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from ojs_nats.chains import ExecutionChain
from ojs_nats.middleware import Metrics
from ojs_nats.worker._health import Health
from ojs_nats.worker._lifecycle import Vitals, WorkerState


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


async def status(port: int, host: str, path: str = "/healthz") -> int:
    url = f"http://127.0.0.1:{port}{path}"
    async with aiohttp.ClientSession() as http, http.get(url, headers={"Host": host}) as answer:
        return answer.status


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/nowhere"])
async def test_a_port_on_loopback_answers_to_no_name_that_a_web_page_points_at_it(path: str) -> None:
    with Health("127.0.0.1", 0, ExecutionChain(), vitals) as health:
        async with health.serving():
            assert await status(health.port, f"evil.example:{health.port}", path) == 403


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:9000", "[::1]:9000", "::1"])
async def test_a_port_on_loopback_answers_to_the_names_of_loopback(host: str) -> None:
    with Health("127.0.0.1", 0, ExecutionChain(), vitals) as health:
        async with health.serving():
            assert await status(health.port, host) == 200


async def test_a_port_for_others_answers_to_any_name_as_orchestrators_have_their_own() -> None:
    with Health("0.0.0.0", 0, ExecutionChain(), vitals) as health:
        async with health.serving():
            assert await status(health.port, "worker-1.jobs.svc.cluster.local:9000") == 200
