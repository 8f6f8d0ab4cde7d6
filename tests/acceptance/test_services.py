"""`ojs-nats services`: everything but the gateway in one process."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js.errors import NotFoundError

from ojs_command.services import BACKGROUND
from ojs_engine.base.times import format_ms
from support.nats import NatsServer
from support.system import Command, Processes, send
from support.waiting import until

V1 = "/ojs/v1"


def started(command: Command) -> dict[str, Any]:
    """Return the line of the whole process, once all services were tried."""

    def line() -> dict[str, Any] | None:
        assert command.process.poll() is None, command.output
        return next((line for line in command.events("ready") if "services" in line), None)

    found = until(line, 180.0)
    assert found is not None
    return found


def readiness(url: str) -> Any:
    return send("GET", f"{url}/readyz").body


def go_through(api: str) -> None:
    """Have a delayed job and a workflow come to their ends, and be listed."""
    soon = format_ms(int(time.time() * 1_000) + 300)
    later = {"type": "later", "args": [], "options": {"queue": "q", "scheduled_at": soon}}
    assert send("POST", f"{api}/jobs", later).status == 201
    steps: list[dict[str, object]] = [{"type": name, "args": [], "options": {"queue": "q"}} for name in ("first", "second")]
    flow = send("POST", f"{api}/workflows", {"type": "chain", "steps": steps}).body["workflow"]["id"]
    done: list[str] = []

    def worked() -> bool:
        for job in send("POST", f"{api}/workers/fetch", {"queues": ["q"], "worker_id": "w", "wait_ms": 200}).body["jobs"]:
            send("POST", f"{api}/workers/ack", {"job_id": job["id"], "worker_id": "w"})
            done.append(job["type"])
        return len(done) == 3

    until(worked)
    assert sorted(done) == ["first", "later", "second"]
    until(lambda: send("GET", f"{api}/workflows/{flow}").body["workflow"]["state"] == "completed")
    until(lambda: send("GET", f"{api}/jobs?queue=q&state=completed").body["pagination"]["total"] == 3)


def test_some_of_them_by_name(processes: Processes) -> None:
    services = processes.start("services", "scheduler", "reaper")
    line = started(services)
    assert line["services"] == ["scheduler", "reaper"]
    assert readiness(line["url"])["services"] == {"scheduler": "ok", "reaper": "ok"}
    assert services.stop() == 0


def test_one_that_fails_is_started_again_and_does_not_hold_up_the_others(processes: Processes, tmp_path: Path) -> None:
    in_the_way = tmp_path / "index"
    in_the_way.write_text("a file where the projector's folder belongs", encoding="utf-8")
    services = processes.start("services", "--projector-data", str(in_the_way))
    line = started(services)
    assert line["services"] == [entry.name for entry in BACKGROUND if entry.name != "projector"]
    told = send("GET", f"{line['url']}/readyz")
    assert (told.status, told.body["services"]["scheduler"]) == (503, "ok")
    assert str(in_the_way) in told.body["services"]["projector"]
    assert send("GET", f"{line['url']}/healthz").status == 200
    until(lambda: services.events("could not be started again"))
    in_the_way.unlink()
    until(lambda: send("GET", f"{line['url']}/readyz").status == 200)
    assert [line["child"] for line in services.events("started again")] == ["projector"]
    assert services.stop() == 0


def test_two_processes_are_a_whole_system_and_make_again_what_nats_loses_under_them(
    processes: Processes, nats_server: NatsServer
) -> None:
    """Consumers of all services are deleted, as by somebody who tidies up in NATS."""
    gateway, services = processes.start("gateway"), processes.start("services")
    api, line = f"{gateway.ready()['url']}{V1}", started(services)
    assert line["services"] == [entry.name for entry in BACKGROUND]
    assert {line["role"] for line in services.events("ready") if "role" in line} == {entry.name for entry in BACKGROUND}
    until(lambda: all(readiness(gateway.ready()["url"])["services"]["processes"].values()))
    assert asyncio.run(delete_consumers(nats_server.url)) >= len(BACKGROUND)
    go_through(api)
    said = readiness(line["url"])
    assert (said["status"], said["services"]) == ("ok", {entry.name: "ok" for entry in BACKGROUND})
    assert services.events("died") == services.events("started again") == []
    assert services.stop() == 0


async def delete_consumers(url: str) -> int:
    """Delete every consumer of every stream; returns their number."""
    client = await nats.connect(url)
    try:
        api, number = client.jsm(), 0
        for stream in await api.streams_info():
            for consumer in await api.consumers_info(str(stream.config.name)):
                with suppress(NotFoundError):  # some end by themselves
                    number += await api.delete_consumer(str(stream.config.name), consumer.name)
        return number
    finally:
        await client.close()


def test_they_wait_for_nats_and_a_signal_meanwhile_ends_all(processes: Processes, nats_server: NatsServer) -> None:
    nats_server.stop()
    services = processes.start("services")
    until(lambda: len(services.events("waiting for NATS")) == len(BACKGROUND))
    assert services.stop() == 0
    nats_server.start()


def test_where_none_can_start_the_process_says_why_and_ends(processes: Processes, nats_server: NatsServer) -> None:
    nats_server.stop()
    services = processes.start("services", "--connect-timeout", "0")
    assert services.process.wait(120) == 1
    [said] = [line for line in services.output.splitlines() if line.startswith("ojs-nats services: ")]
    assert str(nats_server.port) in said
    nats_server.start()


@pytest.mark.parametrize("name", ["gateway", "schedular"])
def test_a_name_that_is_none_of_them_is_refused(processes: Processes, name: str) -> None:
    services = processes.start("services", name)
    assert services.process.wait(60) == 2
    assert f"'{name}' is none of scheduler, reaper, projector, coordinator, webhooks" in services.output
