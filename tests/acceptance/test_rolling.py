"""Gateways that are told to stop: they drain first, and behind a balancer no request fails while each is restarted."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest

from support.processes import end, free_port, runs
from support.system import Command, Processes, environment, send
from support.waiting import eventually, until

CONFIG = Path(__file__).parents[2] / "deploy" / "haproxy.cfg"
JOB = {"type": "rolled", "args": []}
HAPROXY = os.environ.get("OJS_HAPROXY") or shutil.which("haproxy") or "/usr/sbin/haproxy"

needs_haproxy = pytest.mark.skipif(
    not Path(HAPROXY).exists() and "CI" not in os.environ, reason="there is no HAProxy here; CI has one"
)


def test_a_gateway_that_drains_answers_but_is_not_ready(processes: Processes) -> None:
    gateway = processes.start("gateway", "--drain-delay", "300")
    url = str(gateway.ready()["url"])
    assert send("GET", f"{url}/readyz").status == 200
    gateway.process.send_signal(signal.SIGTERM)

    def unready() -> bool:
        return send("GET", f"{url}/readyz").status == 503

    until(unready)
    assert send("GET", f"{url}/healthz").status == 200
    assert send("POST", f"{url}/ojs/v1/jobs", JOB).status == 201
    # A second signal ends the draining, and the stop is a clean one.
    assert end(gateway.process, signal.SIGTERM) == 0


def test_a_gateway_ends_by_itself_when_its_time_to_drain_is_over(processes: Processes) -> None:
    gateway = processes.start("gateway", "--drain-delay", "1")
    gateway.ready()
    gateway.process.send_signal(signal.SIGTERM)
    assert gateway.process.wait(180) == 0
    assert gateway.events("draining")
    assert gateway.events("stopped")


@pytest.mark.slow
def test_gateways_of_one_port_drain_and_all_end_cleanly_at_the_end_of_its_time(processes: Processes) -> None:
    gateway = processes.start("gateway", "--processes", "2", "--drain-delay", "1")
    gateway.ready()
    pids = {line["pid"] for line in gateway.events("ready")}
    assert len(pids) == 3
    gateway.process.send_signal(signal.SIGTERM)
    until(lambda: len(gateway.events("draining")) == 3)
    assert gateway.process.wait(180) == 0
    assert len(gateway.events("stopped")) == 3
    assert [pid for pid in pids if runs(pid)] == []


def test_a_gateway_has_a_health_port_if_it_is_given_one(processes: Processes) -> None:
    port = free_port()
    gateway = processes.start("gateway", "--health-port", str(port))
    gateway.ready()
    assert send("GET", f"http://127.0.0.1:{port}/readyz").status == 200


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[tuple[str, list[int]]]:
    """The address of a HAProxy as deploy/haproxy.cfg has it, and the ports of two gateways behind it."""
    ports = [free_port(), free_port()]
    bind = free_port()
    own = {f"OJS_GATEWAY_{number}": f"127.0.0.1:{port}" for number, port in enumerate(ports, 1)}
    with (tmp_path / "haproxy.log").open("wb") as output:
        proxy = subprocess.Popen(
            [HAPROXY, "-W", "-db", "-f", str(CONFIG)],
            env=environment(OJS_BIND=f"127.0.0.1:{bind}", **own),
            stdout=output,
            stderr=output,
        )
    yield f"http://127.0.0.1:{bind}", ports
    end(proxy, signal.SIGTERM)


def gateway_at(processes: Processes, port: int) -> Command:
    started = processes.start("gateway", "--port", str(port), "--drain-delay", "5")
    started.ready()
    return started


@needs_haproxy
@pytest.mark.slow
async def test_no_request_fails_while_each_gateway_is_restarted(processes: Processes, proxied: tuple[str, list[int]]) -> None:
    url, ports = proxied
    running = [await asyncio.to_thread(gateway_at, processes, port) for port in ports]
    answers: Counter[int] = Counter()
    failed: list[str] = []
    ending = asyncio.Event()

    async def ask(http: aiohttp.ClientSession, path: str, body: object) -> None:
        while not ending.is_set():
            try:
                async with http.post(f"/ojs/v1{path}", json=body) as answer:
                    answers[answer.status] += 1
                    if answer.status >= 400:
                        failed.append(f"{path} {answer.status} {await answer.text()}")
                    else:
                        await answer.read()
            except aiohttp.ClientError as error:
                failed.append(f"{path} {error!r}")

    async def balanced() -> bool:
        try:
            async with aiohttp.ClientSession(url) as http, http.get("/readyz") as answer:
                return answer.status == 200
        except aiohttp.ClientConnectionError:
            return False

    async def pushed_more() -> None:
        before = answers[201]

        def pushed() -> bool:
            return answers[201] > before + 20

        await eventually(pushed)

    await eventually(balanced)
    async with aiohttp.ClientSession(url) as http:
        pushes = [asyncio.create_task(ask(http, "/jobs", JOB)) for _ in range(3)]
        fetches = asyncio.create_task(
            ask(http, "/workers/fetch", {"queues": ["default"], "worker_id": "w", "count": 10, "wait_ms": 500})
        )
        for number, port in enumerate(ports):
            await pushed_more()
            assert await asyncio.to_thread(end, running[number].process, signal.SIGTERM) == 0
            running[number] = await asyncio.to_thread(gateway_at, processes, port)
        await pushed_more()
        ending.set()
        await asyncio.gather(*pushes, fetches)
    assert failed == []
    assert set(answers) == {200, 201}
