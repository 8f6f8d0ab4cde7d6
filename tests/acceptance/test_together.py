"""`ojs-nats dev --together`: all services in one process."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ojs_core.base.times import format_ms
from support.processes import end, runs
from support.system import Command, System, send
from support.waiting import until


@pytest.fixture
def together(tmp_path: Path) -> Iterator[System]:
    with System.started(tmp_path, "--together") as system:
        yield system


@pytest.fixture
def with_its_own_nats(tmp_path: Path) -> Iterator[System]:
    with System.started(tmp_path, "--together", with_users=False) as system:
        yield system


def test_all_services_work_in_one_process(together: System) -> None:
    assert {pid for name, pid in together.children.items() if name != "nats-server"} == {together.pid}
    soon = format_ms(int(time.time() * 1_000) + 300)
    together.push("later", queue="q", scheduled_at=soon)
    steps = [
        {"type": "first", "args": [], "options": {"queue": "q"}},
        {"type": "second", "args": [], "options": {"queue": "q"}},
    ]
    chain = together.call("POST", "/workflows", {"type": "chain", "steps": steps}, 201)["workflow"]["id"]
    done: list[str] = []

    def worked() -> bool:
        for job in together.fetch("q", worker_id="w", wait_ms=200):
            together.call("POST", "/workers/ack", {"job_id": job["id"], "worker_id": "w"})
            done.append(job["type"])
        return len(done) == 3

    until(worked)
    assert sorted(done) == ["first", "later", "second"]
    until(lambda: together.call("GET", f"/workflows/{chain}")["workflow"]["state"] == "completed")
    assert together.call("GET", "/jobs?queue=q&state=completed")["pagination"]["total"] == 3


def test_each_has_health_endpoints(together: System) -> None:
    for name, url in together.state["urls"].items():
        if name != "gateway":
            assert send("GET", f"{url}/healthz").body["service"] == name


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_everything(with_its_own_nats: System, number: signal.Signals) -> None:
    pids = list(with_its_own_nats.children.values())
    assert end(with_its_own_nats.process, number) == 0
    assert [pid for pid in pids if runs(pid)] == []
    assert "Traceback" not in with_its_own_nats.output


def test_a_nats_server_that_is_killed_is_started_again(with_its_own_nats: System) -> None:
    job = with_its_own_nats.push("kept")["id"]
    with_its_own_nats.wait_restarted("nats-server", with_its_own_nats.kill_child("nats-server"))
    until(lambda: with_its_own_nats.request("GET", f"/ojs/v1/jobs/{job}").status == 200)


def test_a_taken_port_is_told_in_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        command = Command(tmp_path, "dev", "--together", "--port", str(port), "--nats-port", "0")
        assert command.process.wait(60) == 1
    assert f"127.0.0.1:{port} is taken: stop what listens there" in command.output
    assert "Traceback" not in command.output
    assert not runs(int((tmp_path / "data" / "nats-server.pid").read_text()))
