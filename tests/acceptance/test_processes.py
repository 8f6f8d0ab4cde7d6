"""Each service as a process of its own, as in production."""

from __future__ import annotations

import signal
import socket
from collections.abc import Sequence
from pathlib import Path

from support.nats import NatsServer
from support.processes import end, free_port
from support.system import Command, Processes, environment, send
from support.waiting import until

SERVICES = ("gateway", "scheduler", "reaper", "coordinator", "projector", "webhooks")


def answers(commands: Sequence[Command], path: str) -> set[int]:
    """Return the statuses with which they answer."""
    return {send("GET", f"{command.ready()['url']}{path}").status for command in commands}


def test_services_wait_for_nats_say_when_they_are_ready_follow_its_ends_and_stop_cleanly(
    processes: Processes, nats_server: NatsServer
) -> None:
    nats_server.stop()
    commands = [processes.start(service) for service in SERVICES]
    until(lambda: all(command.events("waiting for NATS") for command in commands))
    nats_server.start()
    assert [command.ready()["service"] for command in commands] == list(SERVICES)
    assert answers(commands, "/readyz") == answers(commands, "/healthz") == {200}
    for command in commands:
        [waiting] = command.events("waiting for NATS")
        assert str(nats_server.port) in waiting["reason"]
    nats_server.kill()
    until(lambda: answers(commands, "/readyz") == {503})
    assert answers(commands, "/healthz") == {200}
    nats_server.start()
    until(lambda: answers(commands, "/readyz") == {200})
    half = len(commands) // 2
    assert [command.stop() for command in commands[:half]] == [0] * half
    nats_server.kill()
    assert [command.stop() for command in commands[half:]] == [0] * half
    assert all(command.events("stopped") for command in commands)


def test_health_ports_are_this_machines_unless_told_otherwise(processes: Processes) -> None:
    gateway = processes.start("gateway", "--host", "0.0.0.0", "--insecure", "--health-port", str(free_port()))
    elsewhere = processes.start("scheduler", "--health-host", "0.0.0.0")
    off = processes.start("reaper", "--health-port", "off")
    assert gateway.ready()["health_url"].startswith("http://127.0.0.1:")
    assert elsewhere.ready()["url"].startswith("http://0.0.0.0:")
    assert off.ready()["url"] is None


def test_a_service_gives_up_with_one_sentence_when_nats_stays_away(processes: Processes, nats_server: NatsServer) -> None:
    nats_server.stop()
    command = processes.start("scheduler", "--connect-timeout", "0.5")
    assert command.process.wait(60) == 1
    last = command.output.splitlines()[-1]
    assert last.startswith(f"ojs-nats scheduler: NATS can't be reached at nats://127.0.0.1:{nats_server.port}")
    assert "Traceback" not in command.output


def test_a_service_that_waits_for_nats_stops_at_once(processes: Processes, nats_server: NatsServer) -> None:
    nats_server.stop()
    command = processes.start("reaper")
    until(lambda: command.events("waiting for NATS"))
    assert command.stop() == 0


def test_passwords_are_neither_logged_nor_told(tmp_path: Path) -> None:
    url = "nats://ada:hunter2@127.0.0.1:1"
    command = Command(tmp_path, "scheduler", "--connect-timeout", "0", env=environment(OJS_NATS=url))
    assert command.process.wait(60) == 1
    assert "nats://***@127.0.0.1:1" in command.output
    assert "hunter2" not in command.output


def test_a_taken_port_is_told_in_one_sentence(processes: Processes) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        for service, flag in (("gateway", "--port"), ("reaper", "--health-port")):
            command = processes.start(service, flag, str(port))
            assert command.process.wait(60) == 1
            assert command.output.splitlines()[-1] == (
                f"ojs-nats {service}: 127.0.0.1:{port} is taken: stop what listens there, "
                "or choose another port (0 for any free one)"
            )


def test_a_second_signal_ends_a_service_at_once(processes: Processes) -> None:
    command = processes.start("gateway")
    url = command.ready()["url"]
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as client:
        # A request whose body never comes keeps the first stop waiting.
        client.sendall(
            b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{"
        )
        until(lambda: send("GET", f"{url}/healthz").status == 200)
        command.process.send_signal(signal.SIGTERM)
        until(lambda: refused(url))
        assert end(command.process, signal.SIGTERM, 2) == 128 + signal.SIGTERM


def refused(url: str) -> bool:
    try:
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))).close()
    except ConnectionRefusedError:
        return True
    return False
