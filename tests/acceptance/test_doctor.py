"""`ojs-nats doctor` in front of real troubles."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import nats
import pytest
import uuid6

from support.cli import Cli, Said
from support.nats import NatsServer
from support.processes import free_port, stopped
from support.system import Processes, System
from support.waiting import until


def found(said: Said) -> dict[str, dict[str, Any]]:
    """What isn't ok, by the check."""
    return {finding["check"]: finding for finding in said.json["findings"] if finding["status"] != "ok"}


def edit_stream(nats_url: str, name: str, **changes: Any) -> None:
    """As an operator's `nats stream edit` does."""

    async def edit() -> None:
        client = await nats.connect(nats_url)
        try:
            stream = client.jetstream()
            config = (await stream.stream_info(name)).config
            await stream.update_stream(config.evolve(**changes))
        finally:
            await client.close()

    asyncio.run(edit())


def test_a_server_that_is_well(system: System, tmp_path: Path) -> None:
    cli = Cli(tmp_path, system.url)

    def asked(*words: str) -> Said | None:
        """Return what is said once NATS isn't slowed down by other work of this machine."""
        said = cli("doctor", *words)
        return None if "a write takes NATS" in said.out else said

    said = until(lambda: asked("--nats", system.nats_url_by_role, "--json"))
    assert said is not None
    assert (said.code, said.json["status"], said.err) == (0, "warning", "")
    assert {finding["of"] for finding in said.json["findings"]} == {system.url, "namespace ojs in NATS"}
    assert set(found(said)) == {"durability", "test mode"}
    checked = {finding["check"] for finding in said.json["findings"]}
    assert checked >= {"nats", "storage", "services", "projector", "versions", "clock", "queues", "records", "streams"}
    printed = until(asked)
    assert printed is not None
    assert "0 problems, 2 warnings." in printed.out
    assert "mend: " in printed.out


def test_nobody_at_home(tmp_path: Path) -> None:
    said = Cli(tmp_path)("doctor", "--server", "http://127.0.0.1:1", "--nats", "nats://127.0.0.1:1", "--json")
    assert said.code == 3
    assert {finding["check"]: finding["status"] for finding in said.json["findings"]} == {
        "server": "problem", "nats-server": "problem",
    }  # fmt: skip
    assert "ojs-nats dev" in found(said)["server"]["remedy"]
    assert Cli(tmp_path)("doctor", "--server", "http://127.0.0.1:1", "--nats", "http://x").code == 2


def test_a_gateway_of_another_system_tells_nothing_of_this_one(
    system: System, shared_nats_server: NatsServer, tmp_path: Path
) -> None:
    cli, elsewhere = Cli(tmp_path, system.url), ("--nats", shared_nats_server.url)
    shop = (*elsewhere, "--namespace", "shop")
    for where in (elsewhere, shop):
        assert cli("setup", *where).code == 0
    nowhere = ("--server", "http://127.0.0.1:1")
    other_nats, other_namespace = (elsewhere, "is of another NATS"), (shop, "is of namespace ojs")
    for words, why in (other_nats, other_namespace, ((*shop, *nowhere), "none answers")):
        said = cli("doctor", *words, "--json")
        assert (said.code, list(found(said))) == (0, ["server"]), said
        assert "was asked: " in found(said)["server"]["found"]
        assert why in found(said)["server"]["found"]
        of = {finding["check"]: finding["of"] for finding in said.json["findings"]}
        assert "projector" not in of
        assert of["streams"] == f"namespace {'shop' if 'shop' in words else 'ojs'} in NATS"
    assert "\nnamespace shop in NATS:\n" in cli("doctor", *shop).out


@pytest.mark.slow
def test_a_projector_that_does_not_answer_and_services_that_are_missing(processes: Processes, tmp_path: Path) -> None:
    gateway, projector = (processes.start(name) for name in ("gateway", "projector"))
    cli = Cli(tmp_path, gateway.ready()["url"])
    projector.ready()

    def both_told() -> dict[str, dict[str, Any]]:
        said = cli("doctor", "--json")
        assert said.code == 1
        return found(said) if {"projector", "services"} <= found(said).keys() else {}

    with stopped(projector.pid):
        troubles = until(both_told, 90)
    assert troubles["projector"]["status"] == troubles["services"]["status"] == "problem"
    assert "ojs-nats projector" in troubles["projector"]["remedy"]
    assert troubles["records"]["found"].startswith("could not be checked: ")
    assert troubles["services"]["remedy"].startswith("start one: 'ojs-nats ")
    until(lambda: "projector" not in found(cli("doctor", "--json")))


def test_processes_of_several_versions(system: System, tmp_path: Path) -> None:
    cli = Cli(tmp_path, system.url)

    def told() -> dict[str, Any] | None:
        now = int(time.time() * 1_000)
        beat = {"role": "reaper", "instance": "older:1", "since": now, "at": now, "version": "0.0.1"}
        system.put_record("service.reaper.older", json.dumps(beat).encode())
        return found(cli("doctor", "--json")).get("mixed versions")

    trouble = until(told)
    assert trouble is not None
    assert trouble["status"] == "warning"
    assert "0.0.1: reaper; " in trouble["found"]


def test_what_nats_server_says_of_itself(system: System, tmp_path: Path) -> None:
    cli = Cli(tmp_path, system.url)
    port = free_port()
    with NatsServer(tmp_path / "nats", more=f'http: "127.0.0.1:{port}"'):
        said = cli("doctor", "--nats-monitor", f"http://127.0.0.1:{port}", "--json")
    monitored = {finding["check"]: finding for finding in said.json["findings"]}
    assert monitored["users"]["found"] == "test asks nobody who they are, and listens on this machine alone"
    assert monitored["sync"]["status"] == "warning"
    assert monitored["sync"]["found"] == "test is alone, and forces writes to the disk every 2m"
    away = cli("doctor", "--nats-monitor", f"http://127.0.0.1:{port}", "--json")
    assert found(away)["nats-monitor"]["found"].startswith(f"http://127.0.0.1:{port} does not answer as nats-server does: ")
    assert cli("doctor", "--nats-monitor", "nats://127.0.0.1:4222").code == 2


def test_a_stream_that_was_changed_by_hand_and_what_is_mended_is_well(system: System, tmp_path: Path) -> None:
    cli = Cli(tmp_path, system.url)
    edit_stream(system.nats_url, "OJS_READY", max_msgs=1_000)
    try:
        by_server = until(lambda: found(cli("doctor", "--json")).get("streams"))
        said = cli("doctor", "--nats", system.nats_url_by_role, "--json")
    finally:
        edit_stream(system.nats_url, "OJS_READY", max_msgs=-1)
    assert by_server is not None
    assert (by_server["of"], by_server["status"]) == (system.url, "problem")
    assert said.code == 1
    trouble = found(said)["streams"]
    assert (trouble["of"], trouble["status"]) == ("namespace ojs in NATS", "problem")
    assert "OJS_READY" in trouble["found"]
    assert "max_msgs is 1000" in trouble["found"]
    # One look of the server is for all who ask within a second: it may be from before.
    until(lambda: cli("doctor", "--nats", system.nats_url_by_role).code == 0)


def test_a_record_that_can_not_be_read(system: System, tmp_path: Path) -> None:
    cli = Cli(tmp_path, system.url)
    job_id = str(uuid6.uuid7())
    system.put_record(f"job.{job_id}", b'{"id": 5}')

    def told() -> dict[str, Any] | None:
        return found(cli("doctor", "--json")).get("records")

    trouble = until(told, 60)
    assert trouble is not None
    assert trouble["status"] == "problem"
    assert f"job {job_id}" in trouble["found"]
    system.call("DELETE", f"/admin/unreadable/job/{job_id}")
    until(lambda: "records" not in found(cli("doctor", "--json")))


def test_queues_that_are_held_and_maintenance_are_to_be_known(system: System, tmp_path: Path) -> None:
    cli = Cli(tmp_path, system.url)
    cli.asked("push", "t", "--queue", "q")
    cli.asked("queues", "pause", "q")
    system.call("POST", "/admin/system/maintenance", {"enabled": True, "reason": "moving house"})
    # One look is for all who ask within a second: it may be from before.
    until(lambda: {"queues", "maintenance"} <= found(cli("doctor", "--json")).keys())
    said = cli("doctor", "--json")
    assert said.code == 0
    assert found(said)["queues"]["found"] == "queue q is paused, and 1 job in it can't start"
    assert "moving house" in found(said)["maintenance"]["found"]
