from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.examples import amount
from support.nats import NatsServer
from support.processes import runs
from support.system import TOGETHER, Command, System, environment, send
from support.waiting import until

EVERYTHING = {"nats-server", "gateway", "scheduler", "reaper", "coordinator", "projector", "webhooks"}

FOUND_AGAIN = ["gateway", "nats-server"]
"""The children that others have to find again when they are started again."""
OTHERS = sorted(EVERYTHING - set(FOUND_AGAIN)) if amount() == "all" else ["projector"]
"""Further ones that are killed: all have one supervisor, and each is a start of Python. The projector has files of its own."""
LARGEST = 2_000
"""Bytes of a job that the shared system takes."""


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system with a process for each service, which tests leave running."""
    folder = tmp_path_factory.mktemp("services")
    with System.started(folder, "--max-envelope-bytes", str(LARGEST), with_users=False) as system:
        yield system


@pytest.fixture(scope="module")
def kept(services: System) -> str:
    """A job that waits there."""
    return str(services.push("hello", "world")["id"])


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def assert_stops(system: System, number: signal.Signals) -> None:
    """See that a signal stops everything, and that a fetch that waits is answered."""
    pids = list(system.children.values())
    address = system.url.removeprefix("http://").split(":")
    body = json.dumps({"queues": ["idle"], "wait_ms": 30_000}).encode()
    headers = f"Host: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    head = f"POST /ojs/v1/workers/fetch HTTP/1.1\r\n{headers}\r\n\r\n"
    with socket.create_connection((address[0], int(address[1])), timeout=60) as client:
        client.sendall(head.encode() + body)
        client.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.recv(1)
        client.settimeout(20)
        assert system.stop(number) == 0
        assert client.recv(4096).startswith(b"HTTP/1.1 ")
    assert [pid for pid in pids if runs(pid)] == []
    assert not system.run_file.exists()
    stopped = [line["service"] for line in system.events("stopped")]
    assert stopped[-1] == "dev"
    assert set(stopped) == EVERYTHING - {"nats-server"} | {"dev"}


def test_dev_and_its_gateway_name_the_address_of_the_dashboard(services: System) -> None:
    services.ready()
    named = [line["dashboard"] for line in services.events("ready") if "dashboard" in line]
    assert named == [f"{services.url}/"] * 2


@pytest.mark.slow
def test_dev_has_a_nats_server_of_its_own_whatever_address_others_set(tmp_path: Path) -> None:
    with System.started(tmp_path, TOGETHER, env=environment(NATS_URL="nats://127.0.0.1:1"), with_users=False) as system:
        assert "nats-server" in system.children


def test_one_command_starts_everything_and_says_how_to_go_on(services: System) -> None:
    assert set(services.children) == EVERYTHING
    assert all(runs(pid) for pid in services.children.values())
    ready = [line for line in services.events("ready") if line["service"] == "dev"]
    assert [line["url"] for line in ready] == [services.url]
    assert f"{services.url}/ojs/v1/jobs" in ready[0]["push"]
    assert send("GET", f"{services.url}/ojs/v1/health").body["status"] == "ok"


@pytest.mark.slow
def test_by_default_the_services_that_wait_share_a_process(tmp_path: Path) -> None:
    with System.started(tmp_path, with_users=False, shared=True) as system:
        assert set(system.children) == {"nats-server", "gateway", "projector", "services"}
        delayed = system.push("hello", "world", delay_until="+PT1S")["id"]
        killed = system.kill_child("services")
        system.wait_restarted("services", killed)
        until(lambda: system.job(delayed)["state"] == "available")
        assert system.stop() == 0
    stopped = {line["service"] for line in system.events("stopped")}
    assert stopped == {"gateway", "projector", "services", "dev"}


def test_settings_of_dev_reach_its_children(services: System) -> None:
    assert services.request("POST", "/ojs/v1/jobs", {"type": "hello", "args": ["x" * LARGEST]}).status == 413


def test_every_service_without_an_api_has_health_endpoints(services: System) -> None:
    urls = services.state["urls"]
    for name in EVERYTHING - {"nats-server", "gateway"}:
        assert send("GET", f"{urls[name]}/healthz").body["service"] == name
        ready = send("GET", f"{urls[name]}/readyz")
        assert (ready.status, ready.body["status"]) == (200, "ok")


def test_a_stop_in_the_middle_of_the_start_leaves_nothing(tmp_path: Path) -> None:
    system = System(tmp_path, with_users=False)
    pids = until(lambda: list(system.children.values()) if system.run_file.exists() else [])
    assert not system.state["ready"]
    assert system.stop(signal.SIGINT) == 0
    assert [pid for pid in pids if runs(pid)] == []


def assert_restarts(services: System, *names: str) -> None:
    """Kill children, and see that they are started again, that no other one is, and that all goes on."""
    job_id, url, nats_url = services.push("hello", "world")["id"], services.url, services.nats_url
    others = {child: pid for child, pid in services.children.items() if child not in names}
    killed = {name: services.kill_child(name) for name in names}
    for name, pid in killed.items():
        services.wait_restarted(name, pid)
    assert {child: pid for child, pid in services.children.items() if child not in names} == others
    assert (services.url, services.nats_url) == (url, nats_url)
    until(lambda: services.request("GET", "/ojs/v1/health").status == 200)
    assert services.job(job_id)["state"] == "available"
    for name in names:
        assert [line["status"] for line in services.events("died") if line["child"] == name] == ["killed by signal 9"]


@pytest.mark.parametrize("name", FOUND_AGAIN)
def test_a_child_that_is_killed_is_started_again(services: System, name: str) -> None:
    assert_restarts(services, name)


@pytest.mark.slow
def test_the_other_children_that_are_killed_are_started_again_too(services: System) -> None:
    assert_restarts(services, *OTHERS)


def test_a_second_dev_on_the_same_data_is_refused(services: System, tmp_path: Path) -> None:
    second = Command(tmp_path, "dev", "--port", "0", "--nats-port", "0", "--data", str(services.data))
    assert second.process.wait(60) == 1
    assert second.output == (
        f"ojs-nats dev: another 'ojs-nats dev' (pid {services.pid}, {services.url}) uses {services.data}: "
        "stop it, or choose another folder with --data\n"
    )
    assert send("GET", f"{services.url}/ojs/v1/health").status == 200


def test_a_taken_nats_port_is_told_in_one_sentence(tmp_path: Path, taken_port: int) -> None:
    command = Command(tmp_path, "dev", "--port", "0", "--nats-port", str(taken_port))
    assert command.process.wait(60) == 1
    assert not (tmp_path / "data/nats-server.log").exists(), "it was looked at before nats-server started"
    assert command.output == (
        f"ojs-nats dev: 127.0.0.1:{taken_port} is taken: choose another port with --nats-port (0 for any free one), or, if a "
        f"NATS server listens there, use it with --nats nats://127.0.0.1:{taken_port}\n"
    )


def test_a_taken_port_is_told_before_anything_starts(tmp_path: Path, taken_port: int) -> None:
    command = Command(tmp_path, "dev", "--port", str(taken_port), "--nats-port", "0", "--data", str(tmp_path / "data"))
    assert command.process.wait(60) == 1
    assert command.output == (
        f"ojs-nats dev: 127.0.0.1:{taken_port} is taken: stop what listens there, or choose another port (0 for any free one)\n"
    )
    assert not list((tmp_path / "data").glob("nats-server*log"))


def test_a_missing_nats_server_is_told_in_one_sentence(tmp_path: Path) -> None:
    command = Command(tmp_path, "dev", "--nats-server", "/nowhere/nats-server")
    assert command.process.wait(60) == 1
    assert command.output == ("ojs-nats dev: /nowhere/nats-server is no program that can be run; correct --nats-server\n")


@pytest.mark.parametrize("name", ["run.json", "ports", "nats-server.conf", "nats-server.log"])
def test_a_file_of_the_data_folder_that_can_not_be_written_is_told_in_one_sentence(tmp_path: Path, name: str) -> None:
    blocked = tmp_path / "data" / name
    if name == "ports":
        blocked.parent.mkdir()
        blocked.write_text("a file")
    else:
        blocked.mkdir(parents=True)
    command = Command(tmp_path, "dev", "--data", str(blocked.parent), "--port", "0", "--nats-port", "0")
    assert command.process.wait(60) == 1
    assert command.output.startswith("ojs-nats dev: ")
    assert "Traceback" not in command.output
    assert name in command.output


def test_dev_takes_a_nats_server_that_runs_already_and_leaves_it_running(tmp_path: Path, nats_server: NatsServer) -> None:
    with System.started(tmp_path, TOGETHER, "--nats", nats_server.url) as system:
        assert set(system.children) == EVERYTHING - {"nats-server"}
        assert system.nats_url == nats_server.url
        system.push("hello", "world")
        assert system.stop() == 0
    assert runs(nats_server.pid)


@pytest.mark.usefixtures("kept")
def test_sigterm_stops_everything_and_answers_a_waiting_fetch(services: System) -> None:
    """The last one of this file that takes what the others share: a start of all takes seven of Python."""
    assert_stops(services, signal.SIGTERM)


@pytest.mark.slow
def test_dev_has_its_jobs_again_after_a_stop_and_at_once_after_it_was_killed(services: System, kept: str) -> None:
    """What the others shared is started again, with two gateways behind one port. None of it outlives a kill."""
    assert services.stop() == 0
    folder = services.data.parent
    with System.started(folder, "--processes", "2", with_users=False) as again:
        assert again.job(kept)["state"] == "available"
        gateways = {line["pid"] for line in again.events("ready") if "health_url" in line and runs(line["pid"])}
        assert len(gateways) == 2
        pids = gateways | set(again.children.values())
        again.kill()
        with System.started(folder, TOGETHER, with_users=False) as at_once:
            until(lambda: not [pid for pid in pids if runs(pid)])
            assert kept in [job["id"] for job in at_once.fetch("default", count=100, worker_id="w")]
