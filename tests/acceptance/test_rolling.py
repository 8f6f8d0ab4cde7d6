"""Gateways that are told to stop: they drain first, and behind a balancer no request fails while each is restarted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import aiohttp
import pytest

from support.examples import amount
from support.processes import end, free_port, runs
from support.system import Command, Processes, environment, send
from support.waiting import eventually, until

CONFIG = Path(__file__).parents[2] / "deploy" / "haproxy.cfg"
JOB = {"type": "rolled", "args": []}
PAUSE_S = 0.06
"""Between two requests of a client: what counts is that there are some at any time, not how many."""
HAPROXY = os.environ.get("OJS_HAPROXY") or shutil.which("haproxy") or "/usr/sbin/haproxy"

needs_haproxy = pytest.mark.skipif(
    not Path(HAPROXY).exists() and "CI" not in os.environ, reason="there is no HAProxy here; CI has one"
)


def test_a_connection_to_a_gateway_that_drains_ends_with_its_answer(processes: Processes) -> None:
    """Or a balancer that is told of nothing would go on with the connections that it has, until they are cut off."""
    port = free_port()
    gateway = processes.start("gateway", "--port", str(port), "--drain-delay", "300")
    gateway.ready()
    connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def ends() -> bool:
        connection.request("GET", "/ojs/v1/health")
        with connection.getresponse() as answer:
            answer.read()
            return answer.will_close

    assert not ends()
    gateway.process.send_signal(signal.SIGTERM)
    until(ends)
    connection.close()
    assert end(gateway.process, signal.SIGTERM) == 0


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


@pytest.mark.parametrize("number", [1, 2] if amount() == "all" else [1])
def test_a_gateway_ends_by_itself_when_its_time_to_drain_is_over(processes: Processes, number: int) -> None:
    """Several of one port stop together in test_shared_port.py. Each of them is a start of Python."""
    gateway = processes.start("gateway", "--processes", str(number), "--drain-delay", "1")
    gateway.ready()
    pids = {gateway.pid, *(line["pid"] for line in gateway.events("ready") if "health_url" in line)}
    assert len(pids) == (1 if number == 1 else number + 1)
    gateway.process.send_signal(signal.SIGTERM)
    assert gateway.process.wait(180) == 0
    assert len(gateway.events("draining")) == len(gateway.events("stopped")) == len(pids)
    assert [pid for pid in pids if runs(pid)] == []


def test_a_gateway_has_a_health_port_if_it_is_given_one(processes: Processes) -> None:
    port = free_port()
    gateway = processes.start("gateway", "--health-port", str(port))
    gateway.ready()
    assert send("GET", f"http://127.0.0.1:{port}/readyz").status == 200


class Proxied(NamedTuple):
    """A HAProxy as deploy/haproxy.cfg has it: its address, the ports of the two gateways behind it, and what it says."""

    url: str
    ports: list[int]
    log: Path


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[Proxied]:
    ports = [free_port(), free_port()]
    bind = free_port()
    own = {f"OJS_GATEWAY_{number}": f"127.0.0.1:{port}" for number, port in enumerate(ports, 1)}
    log = tmp_path / "haproxy.log"
    with log.open("wb") as output:
        proxy = subprocess.Popen(
            [HAPROXY, "-W", "-db", "-f", str(CONFIG)],
            env=environment(OJS_BIND=f"127.0.0.1:{bind}", **own),
            stdout=output,
            stderr=output,
        )

    def listens() -> bool:
        assert proxy.poll() is None, log.read_text(encoding="utf-8")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", bind)):
            return True
        return False

    try:
        until(listens)
        yield Proxied(f"http://127.0.0.1:{bind}", ports, log)
    finally:
        end(proxy, signal.SIGTERM)


def gateway_at(processes: Processes, port: int, drain_delay: str = "5") -> Command:
    started = processes.start("gateway", "--port", str(port), "--drain-delay", drain_delay)
    started.ready()
    return started


@needs_haproxy
def test_where_no_gateway_is_ready_one_that_drains_is_asked(processes: Processes, proxied: Proxied) -> None:
    """So it is when one has started again, and the other drains before HAProxy has looked."""
    gateways = [gateway_at(processes, port, "300") for port in proxied.ports]

    def none_is_ready() -> bool:
        said = proxied.log.read_text(encoding="utf-8")
        return all(said.rfind(f"gateway-{number} is DOWN") > said.rfind(f"gateway-{number} is UP") for number in (1, 2))

    assert send("GET", f"{proxied.url}/readyz").status == 200
    for gateway in gateways:
        gateway.process.send_signal(signal.SIGTERM)
    until(none_is_ready)
    assert send("POST", f"{proxied.url}/ojs/v1/jobs", JOB).status == 201
    # One of them is gone: what it refuses reaches the other.
    assert end(gateways[0].process, signal.SIGTERM) == 0
    assert [send("POST", f"{proxied.url}/ojs/v1/jobs", JOB).status for _ in range(4)] == [201] * 4


@needs_haproxy
@pytest.mark.slow
async def test_no_request_fails_while_each_gateway_is_restarted(processes: Processes, proxied: Proxied) -> None:
    url, ports = proxied.url, proxied.ports
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
            await asyncio.sleep(PAUSE_S)

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
