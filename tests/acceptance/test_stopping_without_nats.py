"""SIGTERM while NATS is away: each process ends in order, in the time that it has for that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ojs_runtime.service import CUT_OFF
from support.nats import NatsServer
from support.system import Command, Processes
from support.waiting import until

SERVICES = ["gateway", "services"]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    with NatsServer(tmp_path / "nats") as server:
        yield server


@pytest.fixture
def processes(server: NatsServer, tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path / "processes", server.url)
    yield processes
    processes.stop()


def ends_in_order(command: Command) -> None:
    """A process that needs longer than its time, 5 s, says so and ends with 70."""
    assert (command.stop(), CUT_OFF in command.output) == (0, False)


@pytest.mark.parametrize("service", SERVICES)
def test_one_that_waits_for_nats_at_its_start_ends(server: NatsServer, processes: Processes, service: str) -> None:
    server.kill()
    command = processes.start(service)
    until(lambda: command.events("waiting for NATS"))
    ends_in_order(command)


@pytest.mark.parametrize("service", SERVICES)
def test_one_whose_nats_is_away_ends(server: NatsServer, processes: Processes, service: str) -> None:
    command = processes.start(service)
    command.ready()
    server.kill()
    until(lambda: command.events("nats connection lost"))
    ends_in_order(command)


@pytest.mark.parametrize("service", SERVICES)
def test_one_whose_nats_comes_back_at_that_moment_ends(server: NatsServer, processes: Processes, service: str) -> None:
    command = processes.start(service)
    command.ready()
    server.kill()
    until(lambda: command.events("nats connection lost"))
    server.start()
    until(lambda: command.events("nats connection is back"))
    ends_in_order(command)
