from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, cast

import aiohttp
import pytest
from structlog.testing import capture_logs

from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.base.problems import StartupProblem
from ojs_engine.domain.storage_room import StorageLevel
from ojs_engine.store.store import Store
from ojs_engine.wire.system.extensions import SupportedExtensions
from ojs_features.all import FEATURES
from ojs_gateway import build
from ojs_gateway.answers.manifest import manifest
from ojs_gateway.context import GatewayTimings
from ojs_gateway.server import Gateway
from ojs_runtime.settings import Settings
from support.fake_store import FakeStore, unavailable_store
from support.waiting import eventually

Start = Callable[..., Awaitable[aiohttp.ClientSession]]

CAPABILITIES = [name for feature in FEATURES for name in feature.capabilities]
SUPPORTED = SupportedExtensions(one for feature in FEATURES for one in feature.extensions).all


@pytest.fixture
def timings() -> GatewayTimings:
    return GatewayTimings(damage_s=0.01)


async def test_the_manifest_says_what_works_and_where_it_ends(start: Start) -> None:
    http = await start(max_body_bytes=9_000_000, max_envelope_bytes=2_000_000)
    async with http.get("/ojs/manifest") as answer:
        body = await answer.json(content_type=None)
    assert (body["specversion"], body["implementation"]["name"]) == ("1.0", "ojs-nats")
    assert isinstance(body["conformance_level"], int)
    assert "http" in body["protocols"]
    assert all(isinstance(value, bool) for value in body["capabilities"].values())
    assert all(isinstance(name, str) for name in body["extensions"])
    assert "admin-api" in body["extensions"], "the admin UI asks for it"
    assert "queue-config" not in body["extensions"], "parts of it are refused"
    assert (body["conformance_tier"], body["unique_job_strength"]) == ("runtime", "strong")
    assert (body["schema_validation"], body["event_delivery"]) == (body["capabilities"]["schema_validation"], "at_least_once")
    assert not [name for name in body if name.startswith("test_suite")], "a server can't know how a suite went"
    assert body["payload_limits"]["max_envelope_bytes"] == 2_000_000
    assert "gzip" in body["payload_limits"]["supported_compression"]
    assert body["limits"]["max_body_bytes"] == 9_000_000
    assert body["limits"]["max_busy_queues"] == 2_000
    for path in body["endpoints"].values():
        assert path.startswith("/ojs/")


def test_capabilities_are_claimed_only_with_what_they_need() -> None:
    claimed = manifest(DEFAULT_LIMITS, 2_000, (), SUPPORTED, CAPABILITIES, nats=True, keys=False)
    assert claimed.capabilities["schema_validation"] is True
    assert claimed.capabilities["unique_jobs"] is True
    assert claimed.uniqueness.strength == "strong"
    assert claimed.capabilities["batch_enqueue"] is True
    assert claimed.limits["max_batch_jobs"] == 10_000
    assert claimed.capabilities["workflows"] is True
    assert claimed.capabilities["cron_jobs"] is True


def test_what_supports_an_extension_is_said_in_every_form_that_clients_read() -> None:
    claimed = manifest(DEFAULT_LIMITS, 2_000, (), SUPPORTED, CAPABILITIES, nats=True, keys=False)
    details = [*claimed.extension_details.official, *claimed.extension_details.experimental]
    assert [extension.name for extension in details] == list(claimed.extensions)
    assert all(extension.uri.startswith("urn:ojs:ext:") and extension.uri.endswith(extension.name) for extension in details)
    assert all(re.fullmatch(r"\d+\.\d+\.\d+(-rc\.\d+)?", extension.version) for extension in details)
    assert {"cron", "events", "fair_scheduling"} <= {name for name, value in claimed.capabilities.items() if value}


async def test_the_manifest_says_how_large_batches_may_be_on_this_nats_server(
    http: aiohttp.ClientSession, store: FakeStore
) -> None:
    async def largest() -> int:
        async with http.get("/ojs/manifest") as answer:
            return int((await answer.json(content_type=None))["limits"]["max_batch_jobs"])

    store.failure = unavailable_store()
    assert await largest() == 10_000
    store.failure = None
    store.atomic.room = 999
    assert await largest() == 999


@pytest.mark.parametrize("path", ["/ojs/v1/health", "/v1/health", "/health", "/readyz", "/ready"])
async def test_health_follows_nats(http: aiohttp.ClientSession, store: FakeStore, path: str) -> None:
    async with http.get(path) as answer:
        body = await answer.json(content_type=None)
    assert (answer.status, body["status"], body["version"]) == (200, "ok", "1.0")
    assert answer.headers["X-OJS-Version"] == "1.0", "the CLI's audit looks for it"
    assert body["backend"] == {"type": "nats", "status": "healthy", "latency_ms": 1}
    assert body["uptime_seconds"] >= 0
    store.failure = unavailable_store()
    async with http.get(path) as answer:
        body = await answer.json(content_type=None)
    assert (answer.status, body["status"], answer.headers["Retry-After"]) == (503, "degraded", "3")
    assert body["backend"] == {"type": "nats", "status": "unhealthy", "error": "NATS is away"}


async def test_health_is_degraded_but_ready_while_new_jobs_are_refused(http: aiohttp.ClientSession, store: FakeStore) -> None:
    store.room.levels = [StorageLevel("server", "nats-server's storage", 60, 64, 8)]
    store.room.shortage = "nats-server's storage is full"
    async with http.get("/readyz") as answer:
        body = await answer.json(content_type=None)
    assert (answer.status, body["status"], body["backend"]["status"]) == (200, "degraded", "healthy")
    assert body["storage"] == {
        "status": "full",
        "error": "nats-server's storage is full",
        "levels": [{"of": "server", "used_bytes": 60, "limit_bytes": 64, "reserve_bytes": 8}],
    }


async def test_health_is_degraded_but_ready_where_nats_has_lost_something(
    http: aiohttp.ClientSession, store: FakeStore
) -> None:
    store.damaged = "stream KV_ojs has lost 3 messages: its file is damaged"

    async def told() -> dict[str, Any] | None:
        async with http.get("/readyz") as answer:
            assert answer.status == 200
            body: dict[str, Any] = await answer.json(content_type=None)
        return body if body["status"] == "degraded" else None

    body = await eventually(told)
    assert body is not None
    assert body["backend"] == {"type": "nats", "status": "damaged", "latency_ms": 1, "error": store.damaged}


async def test_health_is_degraded_but_ready_while_a_role_has_no_process(http: aiohttp.ClientSession, store: FakeStore) -> None:
    async with http.get("/readyz") as answer:
        assert (await answer.json(content_type=None))["services"]["missing"] == []
    del store.presence.roles["projector"]

    async def degraded() -> dict[str, Any] | None:
        async with http.get("/readyz") as answer:
            body: dict[str, Any] = await answer.json(content_type=None)
        assert answer.status == 200
        return body if body["status"] == "degraded" else None

    body = await eventually(degraded)
    assert body is not None
    assert body["services"]["missing"] == ["projector"]
    assert body["services"]["processes"]["projector"] == 0


async def test_the_process_is_alive_without_nats(http: aiohttp.ClientSession, store: FakeStore) -> None:
    store.failure = unavailable_store()
    async with http.get("/healthz") as answer:
        assert answer.status == 200


async def test_reset_is_for_test_mode(start: Start, store: FakeStore) -> None:
    async with (await start()).post("/ojs/v1/admin/reset") as answer:
        assert answer.status == 404
    assert store.resets == 0
    async with (await start(test_mode=True)).post("/ojs/v1/admin/reset") as answer:
        assert (answer.status, await answer.json(content_type=None)) == (200, {"reset": True})
    assert store.resets == 1


# Start and stop


def gateway(store: FakeStore, port: int = 0) -> Gateway:
    return build(cast("Store", store), Settings(port=port, nats_api="off"))


async def test_a_taken_port_is_one_sentence(store: FakeStore) -> None:
    first = gateway(store)
    await first.start()
    second = gateway(store, int(first.url.rpartition(":")[2]))
    with pytest.raises(StartupProblem, match="is taken"):
        await second.start()
    await second.stop()
    await first.stop()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_without_keys_this_machine_alone_may_ask(store: FakeStore, host: str) -> None:
    one = build(cast("Store", store), Settings(host=host, port=0, nats_api="off"))
    with capture_logs() as logs:
        await one.start()
    await one.stop()
    assert any("everybody on this machine" in line["event"] for line in logs)


async def test_beyond_loopback_it_starts_with_a_key_or_insecure_alone(store: FakeStore) -> None:
    refused = build(cast("Store", store), Settings(host="0.0.0.0", port=0, nats_api="off", connect_timeout=0))
    with pytest.raises(StartupProblem, match="ojs-nats keys create --role admin"):
        await refused.start()
    await refused.stop()
    warned: list[str] = []
    for more in ({"insecure": True}, {"api_key": "a-key-of-the-environment"}):
        one = build(cast("Store", store), Settings(host="0.0.0.0", port=0, nats_api="off", **more))
        with capture_logs() as logs:
            await one.start()
        await one.stop()
        warned += [line["event"] for line in logs if line["log_level"] == "warning"]
    assert any("--insecure" in text for text in warned)
    assert any("one key may do everything" in text for text in warned)
    assert "a-key-of-the-environment" not in str(warned)


async def test_a_gateway_that_never_started_can_stop(store: FakeStore) -> None:
    await gateway(store).stop()
    assert store.dispatcher.wakeups.closed.is_set()


async def test_stopping_answers_those_who_wait_and_lets_the_others_finish(store: FakeStore) -> None:
    running = gateway(store)
    await running.start()
    held = asyncio.Event()
    put = store.enqueue.push

    async def slow_push(draft: object) -> object:
        await held.wait()
        return await put(draft)  # type: ignore[arg-type]

    async with aiohttp.ClientSession(running.url) as http:
        await http.post(
            "/ojs/v1/jobs", json={"id": "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f", "type": "a", "args": [], "queue": "other"}
        )
        store.enqueue.push = slow_push  # type: ignore[assignment,method-assign]
        fetch = asyncio.create_task(http.post("/ojs/v1/workers/fetch", json={"queues": ["q"], "wait_ms": 30_000}))
        wait = asyncio.create_task(http.get("/ojs/v1/jobs/019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f/result?wait=true&timeout=60"))
        push = asyncio.create_task(http.post("/ojs/v1/jobs", json={"type": "b", "args": []}))
        await eventually(lambda: bool(store.dispatcher.asked) and bool(running._context._waiting))
        stopping = asyncio.create_task(running.stop())
        assert (await (await fetch).json(content_type=None)) == {"jobs": []}
        assert (await wait).status == 408
        assert not push.done()
        held.set()
        assert (await push).status == 201
        await asyncio.wait_for(stopping, 60.0)
        with pytest.raises(aiohttp.ClientConnectorError):
            await http.get("/healthz")


async def test_stopping_does_not_wait_for_ever(store: FakeStore) -> None:
    running = gateway(store)
    await running.start()

    begun = asyncio.Event()

    async def endless_push(_draft: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    store.enqueue.push = endless_push  # type: ignore[assignment,method-assign]
    async with aiohttp.ClientSession(running.url) as http:
        push = asyncio.create_task(http.post("/ojs/v1/jobs", json={"type": "b", "args": []}))
        await begun.wait()
        await asyncio.wait_for(running.stop(), 60.0)
        with pytest.raises(aiohttp.ClientError):
            await push


async def test_a_bad_page_of_the_totals_is_refused_before_anything_is_asked(http: aiohttp.ClientSession) -> None:
    async with http.get("/ojs/v1/admin/stats?detail=true&limit=many") as answer:
        assert (answer.status, (await answer.json(content_type=None))["error"]["details"]["field"]) == (400, "limit")
