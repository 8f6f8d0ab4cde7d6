"""Gateways whose keys NATS has lost: they let in nobody else than before."""

from __future__ import annotations

from typing import Any

import aiohttp
import nats
import pytest

from integration.conftest import OpenStore
from integration.gateway.conftest import Asker, Serve
from integration.samples import KINDS
from ojs_command.client.doctor.streams import check_nats
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.contents import subjects_of
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.store import Store
from ojs_features.access.keys import NewKey, make_key
from ojs_features.access.store import Keys
from ojs_gateway.server import Gateway
from support.nats import NatsServer
from support.waiting import eventually

pytestmark = pytest.mark.usefixtures("own_stores")


@pytest.fixture
def url(nats_server: NatsServer) -> str:
    """The address of a nats-server that no other test uses: whoever makes a key there shuts it for good."""
    return nats_server.url


async def status(gateway: Gateway, token: str = "", path: str = "/admin/keys") -> int:
    """What a request over HTTP is answered with."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    url = f"{gateway.url}/ojs/v1{path}"
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as answer:
        return answer.status


async def first_key(store: Store) -> NewKey:
    new = make_key("first", "admin")
    await store.of(Keys).create(new)
    return new


async def lose_keys(store: Store) -> None:
    """Take the keys out of their stream without a trace, as a lost block of its file does, and end who follows them."""
    stream = store.config.records_stream
    for key in await store.of(Keys).all():
        found = await call(store.nats, f"STREAM.MSG.GET.{stream}", {"last_by_subj": store.config.key(key.id)})
        await call(store.nats, f"STREAM.MSG.DELETE.{stream}", {"seq": found["message"]["seq"]})
    names = (await call(store.nats, f"CONSUMER.NAMES.{stream}"))["consumers"]
    for name in names:
        if name.startswith("keys-"):
            await call(store.nats, f"CONSUMER.DELETE.{stream}.{name}")


async def keys_of(store: Store) -> int:
    return len(await subjects_of(store.nats, store.config.records_stream, store.config.key(ANY)))


async def test_running_gateways_keep_keys_and_write_them_back(url: str, serve: Serve, open_store: OpenStore) -> None:
    store = await open_store(url)
    gateways = [await serve(url) for _ in range(2)]
    key = await first_key(store)

    async def shut() -> bool:
        return [await status(gateway) for gateway in gateways] == [401, 401]

    await eventually(shut)
    await lose_keys(store)

    async def written_back() -> bool:
        assert await shut()
        return await keys_of(store) == 1

    await eventually(written_back)
    assert [await status(gateway, key.token) for gateway in gateways] == [200, 200]

    async def told() -> Any:
        for gateway in gateways:
            async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {key.token}"}) as session:
                answer = await (await session.get(f"{gateway.url}/ojs/v1/admin/findings")).json()
            for finding in answer["findings"]:
                if finding["check"] == "lost records":
                    return finding
        return None

    found = await eventually(told)
    assert found["severity"] == "problem"
    assert f"key.{key.key.id}" in found["message"]


async def test_a_gateway_that_starts_without_the_keys_that_were_there_refuses_until_a_key_is_made_on_nats(
    url: str, serve: Serve, open_store: OpenStore, capsys: pytest.CaptureFixture[str]
) -> None:
    store = await open_store(url)
    lost = await first_key(store)
    await lose_keys(store)
    assert await keys_of(store) == 0
    [told] = [one for one in await check_nats(url) if one.check == "keys"]
    assert (told.status, "has had keys" in told.found, "keys create" in told.remedy) == ("problem", True, True)
    gateway = await serve(url)
    client = await nats.connect(url)
    try:
        ask = Asker(client)
        assert await status(gateway) == 401
        assert await status(gateway, lost.token) == 401
        assert (await ask("listKeys._")).status == 401
        assert (await ask("createKey._", {"name": "mine", "role": "admin"})).status == 401
        new = await first_key(store)

        async def let_in() -> bool:
            return await status(gateway, new.token) == 200

        await eventually(let_in)
        assert await status(gateway) == 401
        assert (await ask("listKeys._", Authorization=f"Bearer {new.token}")).status == 200
    finally:
        await client.close()
    assert "this system has had some" in capsys.readouterr().out
    assert [one for one in await check_nats(url) if one.check == "keys"] == []


async def test_keys_of_an_earlier_version_are_marked_when_they_are_first_seen(
    url: str, serve: Serve, open_store: OpenStore
) -> None:
    store = await open_store(url)
    await first_key(store)
    stream = store.config.records_stream
    await call(store.nats, f"CONSUMER.DELETE.{stream}.has-had-keys")
    first = await serve(url)

    async def marked() -> bool:
        return "error" not in await call(store.nats, f"CONSUMER.INFO.{stream}.has-had-keys")

    await eventually(marked)
    await first.stop()
    await lose_keys(store)
    assert await status(await serve(url)) == 401


async def test_a_reset_and_a_new_namespace(url: str, serve: Serve, open_store: OpenStore) -> None:
    """A reset leaves keys and the mark; another namespace is another system."""
    store = await open_store(url)
    await first_key(store)
    await lose_keys(store)
    await store.reset(KINDS)
    assert await status(await serve(url)) == 401
    elsewhere = await open_store(url, namespace="elsewhere")
    seen: list[bool] = []
    await elsewhere.of(Keys).follow(lambda _keys, others: seen.append(others))
    assert seen == [False]
