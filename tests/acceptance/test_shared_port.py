"""Several gateway processes behind one port: `ojs-nats gateway --processes N`."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from support.nats import NatsServer
from support.processes import free_ports, runs
from support.system import Command, Processes, send
from support.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux spreads connections over the processes of a port")

_COUNTED = re.compile(rb'ojs_http_request_duration_seconds_count\{method="POST",route="/ojs/v1/jobs",status="2xx"\} (\d+)')


def gateways(command: Command) -> list[dict[str, Any]]:
    """The ready lines of those that run."""
    lines = [line for line in command.events("ready") if "health_url" in line]
    return [line for line in lines if runs(line["pid"])]


def pushed(gateway: dict[str, Any]) -> int:
    """How many pushes a process says that it has answered."""
    with urllib.request.urlopen(f"{gateway['health_url']}/metrics", timeout=60) as answer:
        found = _COUNTED.search(answer.read())
    return int(found[1]) if found else 0


def push(url: str) -> int:
    """A push on a connection of its own."""
    return send("POST", f"{url}/ojs/v1/jobs", {"type": "t", "args": []}).status


@contextmanager
def started(processes: Processes, port: int) -> Iterator[Command]:
    """A gateway of two processes, asked for their health at this port and the next; they are gone at the end,
    whatever became of the one above them.
    """
    command = processes.start("gateway", "--processes", "2", "--health-port", str(port), "--drain-delay", "300")
    command.ready()
    yield command
    pids = [line["pid"] for line in command.events("ready")]
    command.process.terminate()
    command.stop()  # the second signal ends the draining
    until(lambda: not any(runs(pid) for pid in pids))


@pytest.fixture(scope="module")
def beside(shared_nats_server: NatsServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """Processes of this file beside one NATS server."""
    processes = Processes(tmp_path_factory.mktemp("processes"), shared_nats_server.url)
    yield processes
    processes.stop()


@pytest.fixture(scope="module")
def health_port() -> int:
    return free_ports(2)


@pytest.fixture(scope="module")
def pair(beside: Processes, health_port: int) -> Iterator[Command]:
    """A gateway of two processes for this file, whose last test stops it. Each of them is a start of Python."""
    with started(beside, health_port) as command:
        yield command


def test_the_first_is_asked_for_its_health_at_the_given_port_the_second_at_the_next(pair: Command, health_port: int) -> None:
    asked = sorted(line["health_url"].rpartition(":")[2] for line in gateways(pair))
    assert asked == [str(health_port), str(health_port + 1)]


def test_two_processes_share_one_port_and_tell_of_themselves_apart(pair: Command) -> None:
    url = pair.ready()["url"]
    both = gateways(pair)
    assert [line["url"] for line in both] == [url, url]
    before = [pushed(gateway) for gateway in both]
    assert [push(url) for _ in range(64)] == [201] * 64
    counts = [pushed(gateway) - earlier for gateway, earlier in zip(both, before, strict=True)]
    assert sum(counts) == 64
    assert min(counts) > 0  # by chance alone: once in 2^63
    for gateway in both:
        assert send("GET", f"{gateway['health_url']}/readyz").status == 200


@pytest.mark.parametrize("number", ["1", "2"])
def test_whoever_does_not_belong_to_them_finds_the_port_taken(beside: Processes, pair: Command, number: str) -> None:
    port = pair.ready()["url"].rpartition(":")[2]
    other = beside.start("gateway", "--processes", number, "--port", port)
    assert other.process.wait(60) == 1
    assert other.output.splitlines()[-1].startswith(f"ojs-nats gateway: 127.0.0.1:{port} is taken")


def test_one_that_dies_leaves_its_clients_to_the_other_and_comes_back(pair: Command) -> None:
    url = pair.ready()["url"]
    victim, survivor = gateways(pair)
    os.kill(victim["pid"], signal.SIGKILL)

    def is_answered() -> bool:
        with contextlib.suppress(OSError):  # of who comes while the victim's port is being closed
            return push(url) == 201
        return False

    until(is_answered)

    def newcomers() -> list[dict[str, Any]]:
        return [line for line in gateways(pair) if line["pid"] not in {victim["pid"], survivor["pid"]}]

    until(newcomers)  # nobody comes before the victim has ended, and its port is closed
    [newcomer] = newcomers()
    until(lambda: push(url) == 201 and pushed(newcomer) > 0)


def test_they_drain_and_a_second_signal_stops_all_of_them(pair: Command) -> None:
    """The last one of this file: it stops what the others share."""
    url, pids = pair.ready()["url"], [line["pid"] for line in gateways(pair)]
    assert len(pids) == 2
    pair.process.terminate()
    until(lambda: len(pair.events("draining")) == 3)
    assert send("GET", f"{url}/readyz").status == 503
    assert push(url) == 201
    pair.process.terminate()
    assert pair.process.wait(180) == 0
    assert not any(runs(pid) for pid in pids)
    assert len(pair.events("stopped")) == 3
