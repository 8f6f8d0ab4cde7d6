"""The API over NATS of gateways of a test's own: several, one that stops, has too much to do, or other settings."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import nats
import nats.errors
import pytest

from integration.gateway.conftest import ROUTES, Asker, Serve, new_job
from ojs_engine.api.call import Call, Response
from ojs_engine.api.large_bodies import LargeBodies
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.jetstream.inboxes import Inboxes
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.wire.system.extensions import SupportedExtensions
from ojs_features.access.known_keys import KnownKeys
from ojs_features.access.slowing import Slowing
from ojs_gateway.http.door import Door
from ojs_gateway.http.endpoint import Endpoint
from ojs_gateway.nats_api.operation import Operation
from ojs_gateway.nats_api.service import NatsApi
from support.nats import NatsServer


async def test_a_handler_that_doesn_t_ask_for_the_queue_answers_nothing(
    shared_nats_server: NatsServer, ask: Asker, caplog: pytest.LogCaptureFixture
) -> None:
    async def forgetful(_call: Call) -> Response:
        return Response(200, b'{"secret": 1}')

    operation = Operation(Endpoint("forgetful", (), "read", forgetful, "job", by_queue=True), "GET", "/forgetful")
    api = NatsApi(
        [operation],
        StoreConfig(),
        Door(KnownKeys(lambda: 0), "always", Slowing().pause, lambda _call, _endpoint, _error: None),
        PayloadLimits(),
        LargeBodies(),
        Inboxes(["_INBOX"]),
        SupportedExtensions(()),
        most=10,
    )
    await api.start(shared_nats_server.url, "one")
    assert (await ask("forgetful._")).body == {"secret": 1}
    answer = await ask("forgetful.email")
    assert (answer.status, answer.body["error"]["code"]) == (500, "backend_error")
    await api.stop(1.0)
    assert not caplog.records


async def test_nats_micro_finds_every_operation_and_its_figures(serve: Serve, ask: Asker) -> None:
    await serve()

    async def told(verb: str) -> Any:
        return json.loads((await ask.nats.request(f"$SRV.{verb}.ojs", timeout=60)).data)

    assert (await told("PING"))["type"] == "io.nats.micro.v1.ping_response"
    info = await told("INFO")
    found = {endpoint["name"]: endpoint["subject"] for endpoint in info["endpoints"]}
    assert set(found) == {name for name, route in ROUTES.items() if not route.http_only}
    assert found["createJob"] == "ojs.api.createJob.>"
    assert found["listJobs"] == "ojs.api.listJobs._"
    await ask("getHealth._")
    await ask("getJob._")
    stats = {endpoint["name"]: endpoint for endpoint in (await told("STATS"))["endpoints"]}
    assert (stats["getHealth"]["num_requests"], stats["getHealth"]["num_errors"]) == (1, 0)
    assert (stats["getJob"]["num_errors"], stats["getJob"]["last_error"]) == (1, "400 invalid_request")
    assert stats["getHealth"]["processing_time"] > 0
    one = await ask.nats.request(f"$SRV.PING.ojs.{info['id']}", timeout=60)
    assert json.loads(one.data)["id"] == info["id"]


async def test_gateways_share_the_requests(serve: Serve, ask: Asker) -> None:
    await serve()
    await serve()
    await asyncio.gather(*(ask("getMaintenance._") for _ in range(200)))
    inbox = ask.nats.new_inbox()
    answers = await ask.nats.subscribe(inbox)
    await ask.nats.publish("$SRV.STATS.ojs", reply=inbox)
    counts: list[int] = []
    for _ in range(2):
        stats = json.loads((await answers.next_msg(timeout=60)).data)
        counts += [endpoint["num_requests"] for endpoint in stats["endpoints"] if endpoint["name"] == "getMaintenance"]
    assert sum(counts) == 200
    assert min(counts) > 20


async def test_a_job_that_has_no_room_beside_the_answers_to_acks_comes_with_the_next_fetch(
    serve: Serve, tmp_path: Path, queue: str
) -> None:
    with NatsServer(tmp_path, more="max_payload: 64KB") as server:
        gateway = await serve(server.url)
        client = await nats.connect(server.url)
        ask = Asker(client)
        pushed = await ask(f"createJob.{queue}", new_job(queue, args=["x" * 58_000]))
        assert pushed.status == 201
        acks = [{"job_id": f"0192f0c1-0000-7000-8000-{number:012}"} for number in range(20)]
        body = {"queues": [queue], "worker_id": "w1", "count": 21, "acks": acks}
        answer = await ask(f"fetchJobs.{queue}", body)
        assert (answer.status, answer.body["jobs"], answer.body["acks"]["failed"]) == (200, [], 20)
        again = await ask(f"fetchJobs.{queue}", {"queues": [queue], "worker_id": "w1", "wait_ms": 5_000})
        assert [job["id"] for job in again.body["jobs"]] == [pushed.body["job"]["id"]]
        await client.close()
        await gateway.stop()


async def test_a_gateway_with_too_much_to_do_says_so(serve: Serve, ask: Asker, queue: str) -> None:
    await serve(max_connections=1)
    inbox = ask.nats.new_inbox()
    answers = await ask.nats.subscribe(inbox)
    body = json.dumps({"queues": [queue], "worker_id": "w1", "wait_ms": 2_000}).encode()
    await ask.nats.publish(f"ojs.api.fetchJobs.{queue}", body, reply=inbox)
    refused = await ask("getMaintenance._")
    assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
    assert json.loads((await answers.next_msg(timeout=60)).data) == {"jobs": []}
    assert (await ask("getMaintenance._")).status == 200


async def test_a_gateway_that_stops_answers_what_has_come(serve: Serve, ask: Asker, queue: str) -> None:
    gateway = await serve()
    body = {"queues": [queue], "worker_id": "w1", "wait_ms": 30_000}
    waiting = asyncio.create_task(ask(f"fetchJobs.{queue}", body))
    pushes = [asyncio.create_task(ask(f"createJob.{queue}-2", new_job(f"{queue}-2"))) for _ in range(50)]
    assert (await pushes[0]).status == 201
    await gateway.stop()
    assert [(await push).status for push in pushes] == [201] * 50
    assert (await waiting).body == {"jobs": []}
    with pytest.raises(nats.errors.NoRespondersError):
        await ask("getMaintenance._")


async def test_it_can_be_left_out(serve: Serve, ask: Asker) -> None:
    gateway = await serve(nats_api="off")
    with pytest.raises(nats.errors.NoRespondersError):
        await ask("getManifest._")
    async with aiohttp.ClientSession(gateway.url) as http, http.get("/ojs/manifest") as answer:
        assert (await answer.json(content_type=None))["protocols"] == ["http"]
