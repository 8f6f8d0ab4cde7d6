"""A permission to subscribe that an operator takes away by a reload of nats-server, and gives back, is used again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import pytest

from ojs_nats import Client
from ojs_nats.jobs import JobRequest
from support import users
from support.nats import NatsServer
from support.system import Answer, Gateway, Processes, send
from support.waiting import until


class Guarded(NamedTuple):
    """A nats-server with a user for each role, and services on it by their names."""

    server: NatsServer
    urls: dict[str, str]

    @property
    def gateway(self) -> Gateway:
        return Gateway(self.urls["gateway"])

    def readiness(self, service: str) -> Answer:
        return send("GET", f"{self.urls[service]}/readyz")


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("given-back")
    with NatsServer(folder / "nats", more=users.section()) as server:
        address = users.all_rights(f"127.0.0.1:{server.port}")
        users.make_streams(address)
        processes = Processes(folder / "processes", address, with_users=True)
        try:
            started = {name: processes.start(name) for name in ("gateway", "projector", "scheduler")}
            yield Guarded(server, {name: str(command.ready()["url"]) for name, command in started.items()})
        finally:
            processes.stop()


def wake_up(gateway: Gateway) -> None:
    """Have a fetch wait for a job that comes later."""
    with ThreadPoolExecutor(1) as pool:
        fetching = pool.submit(gateway.fetch, "mail", wait_ms=20_000)
        pushed = gateway.push("email.send", queue="mail")
        [job] = fetching.result()
        gateway.call("POST", "/workers/ack", {"job_id": job["id"]})
    assert job["id"] == pushed["id"]


async def all_works(guarded: Guarded) -> None:
    wake_up(guarded.gateway)
    guarded.gateway.call("GET", "/queues")
    async with Client(users.by_role(f"nats://127.0.0.1:{guarded.server.port}", "client")) as client:
        await client.push(JobRequest("email.send"))


@pytest.mark.parametrize(
    ("service", "role", "subject"),
    [
        ("gateway", "gateway", "_INBOX_ojs_gateway.>"),
        ("gateway", "gateway", "ojs.wake.*.>"),
        ("gateway", "gateway-api", "_INBOX_ojs_gateway-api.>"),
        ("gateway", "gateway-api", "ojs.api.*.>"),
        ("gateway", "gateway-api", "$SRV.>"),
        ("projector", "projector", "_INBOX_ojs_projector.>"),
        ("projector", "projector", "ojs.query.>"),
        ("scheduler", "scheduler", "_INBOX_ojs_scheduler.>"),
    ],
)
async def test_what_was_taken_away_and_given_back_works_again(guarded: Guarded, service: str, role: str, subject: str) -> None:
    wake_up(guarded.gateway)  # so that it listens for new jobs
    guarded.server.reload(users.section(unheard=(role, subject)))

    def tells() -> bool:
        answer = guarded.readiness(service)
        return answer.status == 503 and "may not subscribe to" in str(answer.body)

    try:
        until(tells)
    finally:
        guarded.server.reload(users.section())

    def is_ready() -> Any:
        return guarded.readiness(service).status == 200

    until(is_ready)
    await all_works(guarded)
