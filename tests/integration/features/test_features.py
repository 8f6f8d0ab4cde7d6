"""The server without features: what needs none of them passes through none, and each can be left out."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, NamedTuple, get_args

import aiohttp
import pytest

from integration.conftest import OpenStore
from ojs_engine.base.problems import StartupProblem
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.subjects import Kind
from ojs_engine.store.store import Store
from ojs_engine.store.workers.presence import ROLES
from ojs_features.access.keys import make_key
from ojs_features.access.store import Keys
from ojs_features.all import FEATURES
from ojs_features.findings.plug import FINDINGS
from ojs_features.plug import Feature
from ojs_features.startup import STARTUPS
from ojs_gateway.openapi.document import places
from ojs_gateway.routes import parts
from ojs_gateway.server import Gateway
from ojs_runtime.settings import Settings
from support.calls import calls_of_features
from support.nats import NatsServer
from support.waiting import eventually


class Keyless(NamedTuple):
    gateway: Gateway
    store: Store


Serve = Callable[[tuple[Feature, ...]], Awaitable[aiohttp.ClientSession]]

COMPOSITIONS: Final = {
    "none": (),
    **{f"all but {feature.name}": tuple(one for one in FEATURES if one is not feature) for feature in FEATURES},
}


@pytest.fixture
async def serve(open_store: OpenStore, shared_nats_server: NatsServer) -> AsyncIterator[Serve]:
    """Start a gateway with these features; returns a client of it."""
    gateways: list[Gateway] = []
    clients: list[aiohttp.ClientSession] = []

    async def started(features: tuple[Feature, ...]) -> aiohttp.ClientSession:
        store = await open_store(shared_nats_server.url)
        gateway = Gateway(store, Settings(port=0, nats=shared_nats_server.url, nats_api="off"), features)
        gateways.append(gateway)
        await gateway.start()
        clients.append(aiohttp.ClientSession(f"{gateway.url}/ojs/v1/"))
        return clients[-1]

    yield started
    for client in clients:
        await client.close()
    for gateway in gateways:
        await gateway.stop()


async def send(client: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> Any:
    async with client.post(path, json=body) as answer:
        assert answer.status < 300, await answer.text()
        return await answer.json(content_type=None)


async def runs_a_job(client: aiohttp.ClientSession, queue: str) -> None:
    """Push a plain job, fetch it and report its success."""
    pushed = (await send(client, "jobs", {"type": "email.send", "args": [1], "options": {"queue": queue}}))["job"]
    fetched = (await send(client, "workers/fetch", {"queues": [queue], "worker_id": "w", "wait_ms": 5_000}))["jobs"]
    assert [job["id"] for job in fetched] == [pushed["id"]]
    await send(client, "workers/ack", {"job_id": pushed["id"], "worker_id": "w"})


def test_both_lists_have_the_same_features() -> None:
    assert {startup.name for startup in STARTUPS} <= {feature.name for feature in FEATURES}
    roles = [process.role for feature in FEATURES for process in feature.processes]
    assert roles == [entry.name for startup in STARTUPS for entry in startup.processes]


def test_no_two_features_bring_the_same() -> None:
    """The first or the last one would count, and the other be left out in silence."""
    brought = {
        "name": [feature.name for feature in FEATURES],
        "gates": ["gates" for feature in FEATURES if feature.gates is not None],
        "backup commands": ["commands" for feature in FEATURES if feature.backup_commands is not None],
        "end of a job": [what for feature in FEATURES for what in feature.ends],
        "locks": ["locks" for feature in FEATURES if feature.locks is not None],
        "order": ["order" for feature in FEATURES if feature.order is not None],
        "guard": ["guard" for feature in FEATURES if feature.guard is not None],
        "command on NATS": [command for feature in FEATURES for command in feature.on_nats],
        "record": [reader.kind for feature in FEATURES for reader in (*feature.records, *feature.lasting)],
        "table": [one.table.name for feature in FEATURES for one in feature.followed if one.table is not None],
        "question": [word for feature in FEATURES for one in feature.followed for word in one.questions],
        "check": [check.name for feature in FEATURES for check in feature.checks],
        "role": [process.role for feature in FEATURES for process in feature.processes],
        "end of a key": [end.member for feature in FEATURES for end in feature.key_ends],
        "note": [kind for feature in FEATURES for kind in feature.backup.notes],
        "restored record": [kind for feature in FEATURES for kind in feature.backup.revive],
        "count": [name for feature in FEATURES for name in feature.backup.counted],
    }
    assert {place: sorted(words) for place, words in brought.items() if len(set(words)) < len(words)} == {}


def test_no_feature_brings_what_the_engine_has() -> None:
    kinds = {reader.kind for feature in FEATURES for reader in (*feature.records, *feature.lasting)}
    assert kinds.isdisjoint(get_args(Kind))
    roles = {process.role for feature in FEATURES for process in feature.processes}
    assert roles.isdisjoint(ROLES)


async def test_a_plain_push_fetch_and_ack_pass_through_no_module_of_a_feature(serve: Serve, queue: str) -> None:
    client = await serve(FEATURES)
    await runs_a_job(client, queue)  # what is made once is there
    modules = set(sys.modules)
    with calls_of_features() as calls:
        await runs_a_job(client, queue)
    assert calls == set()
    assert [name for name in set(sys.modules) - modules if name.startswith("ojs_features")] == []


async def test_calls_of_a_feature_are_seen(serve: Serve) -> None:
    client = await serve(FEATURES)
    with calls_of_features() as calls:
        async with client.get("webhooks/subscriptions") as answer:
            assert answer.status == 200
    assert "webhooks/handlers.py: WebhookHandlers.list" in calls


@pytest.mark.parametrize("features", COMPOSITIONS.values(), ids=COMPOSITIONS)
async def test_the_server_runs_jobs_without_a_feature(serve: Serve, queue: str, features: tuple[Feature, ...]) -> None:
    client = await serve(features)
    await runs_a_job(client, queue)
    async with client.get("openapi.json") as answer:
        described = {
            operation["operationId"] for path in (await answer.json())["paths"].values() for operation in path.values()
        }
    there = {next(places(route)).operation_id for part in parts(features) for route in part.routes if not route.test_only}
    gone = {next(places(route)).operation_id for part in parts(FEATURES) for route in part.routes} - there
    assert there <= described
    assert gone.isdisjoint(described)
    if FINDINGS not in features:
        return
    async with client.get("admin/findings") as answer:
        checks = (await answer.json())["checks"]
    assert {check.name for feature in features for check in feature.checks} <= set(checks)
    assert {check.name for one in FEATURES if one not in features for check in one.checks}.isdisjoint(checks)


@pytest.mark.parametrize("features", COMPOSITIONS.values(), ids=COMPOSITIONS)
async def test_the_server_supports_the_extensions_of_its_features_alone(serve: Serve, features: tuple[Feature, ...]) -> None:
    client = await serve(features)
    async with client.get("/ojs/manifest") as answer:
        manifest = await answer.json()
    supported = set(manifest["extensions"])
    for feature in FEATURES:
        for capability in feature.capabilities:
            assert (manifest["capabilities"].get(capability) is True) == (feature in features)
        for extension in feature.extensions:
            assert (extension.name in supported) == (feature in features)
            async with client.get("health", headers={"OJS-Requires-Extension": extension.uri}) as answer:
                assert answer.status == (200 if feature in features else 422), await answer.text()


@pytest.mark.parametrize("features", COMPOSITIONS.values(), ids=COMPOSITIONS)
async def test_what_a_feature_answers_is_unknown_without_it(serve: Serve, features: tuple[Feature, ...]) -> None:
    client = await serve(features)
    for left_out in (one for one in FEATURES if one not in features):
        for route in (route for part in left_out.parts for route in part.routes):
            place = next(places(route))
            path = place.path.removeprefix("/ojs/v1/").replace("{", "").replace("}", "")
            async with client.request(place.method, path, json={}) as answer:
                assert answer.status in {404, 405}, place.operation_id  # another method may be there


@pytest.fixture
async def keyless(own_namespace: str, open_store: OpenStore, shared_nats_server: NatsServer) -> AsyncIterator[Keyless]:
    """A gateway without keys, and a store of its system."""
    store = await open_store(shared_nats_server.url, namespace=own_namespace)
    settings = Settings(port=0, nats=shared_nats_server.url, namespace=own_namespace, nats_api="off")
    gateway = Gateway(store, settings, tuple(one for one in FEATURES if one.guard is None))
    yield Keyless(gateway, store)
    await gateway.stop()


async def test_a_system_that_has_keys_is_not_served_without_them(keyless: Keyless) -> None:
    await keyless.store.of(Keys).create(make_key("first", "admin"))
    with pytest.raises(StartupProblem, match="this system has keys, and this server was installed without keys"):
        await keyless.gateway.start()


async def test_a_system_that_has_had_keys_is_not_served_without_them(keyless: Keyless) -> None:
    store = keyless.store
    key = await store.of(Keys).create(make_key("first", "admin"))
    stream = store.config.records_stream
    found = await call(store.nats, f"STREAM.MSG.GET.{stream}", {"last_by_subj": store.config.key(key.id)})
    await call(store.nats, f"STREAM.MSG.DELETE.{stream}", {"seq": found["message"]["seq"]})
    with pytest.raises(StartupProblem, match="this system has keys"):
        await keyless.gateway.start()


async def test_a_key_that_is_made_meanwhile_shuts_a_gateway_without_keys(keyless: Keyless) -> None:
    await keyless.gateway.start()
    new = make_key("first", "admin")
    async with aiohttp.ClientSession(f"{keyless.gateway.url}/ojs/v1/") as client:

        async def status(path: str, **headers: str) -> int:
            async with client.get(path, headers=headers) as answer:
                return answer.status

        assert await status("cron") == 200
        await keyless.store.of(Keys).create(new)

        async def shut() -> bool:
            return await status("cron") == 401

        await eventually(shut)
        assert await status("cron", Authorization=f"Bearer {new.token}") == 401
        assert await status("health") == 200
