"""`ojs-nats dev --together`: all services in one process."""

from __future__ import annotations

import signal
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.processes import end, runs
from support.system import Command, System, send
from support.waiting import until


@pytest.fixture
def together(tmp_path: Path) -> Iterator[System]:
    """With a nats-server of its own, whichever users there are."""
    with System.started(tmp_path, "--together", with_users=False) as system:
        yield system


def test_all_services_are_one_process_and_have_health_endpoints_each(system: System) -> None:
    """That they work is shown by all tests that take `system`."""
    assert {pid for name, pid in system.children.items() if name != "nats-server"} == {system.pid}
    for name, url in system.state["urls"].items():
        if name != "gateway":
            assert send("GET", f"{url}/healthz").body["service"] == name


def assert_stopped(system: System, number: signal.Signals) -> None:
    pids = list(system.children.values())
    assert end(system.process, number) == 0
    assert [pid for pid in pids if runs(pid)] == []
    assert "Traceback" not in system.output


def test_sigterm_stops_everything_and_ends_streams(together: System) -> None:
    with urllib.request.urlopen(f"{together.url}/ojs/v1/admin/stats/stream", timeout=60) as stream:
        assert stream.readline()
        assert_stopped(together, signal.SIGTERM)
        stream.read()


def test_a_nats_server_that_is_killed_is_started_again_and_ctrl_c_stops_everything(together: System) -> None:
    job = together.push("kept")["id"]
    together.wait_restarted("nats-server", together.kill_child("nats-server"))
    until(lambda: together.request("GET", f"/ojs/v1/jobs/{job}").status == 200)
    assert_stopped(together, signal.SIGINT)


def test_a_taken_port_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        command = Command(tmp_path, "dev", "--together", "--port", str(port), "--nats-port", "0")
        assert command.process.wait(60) == 1
    assert f"127.0.0.1:{port} is taken: stop what listens there" in command.output
    assert "Traceback" not in command.output
    assert not (tmp_path / "data" / "nats-server.pid").exists(), "the port was looked at before nats-server started"
