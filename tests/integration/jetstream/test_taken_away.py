"""A right to subscribe that a reload takes away and another gives back: what listens hears again, once."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ojs_engine.jetstream.connection import Connection, Failed, Reply
from support.nats import NatsServer
from support.waiting import eventually

NOTHING = "deny: []"
USER = f'authorization {{ users = [{{ user: a, password: b, permissions: {{ subscribe: {{ allow: ">", {NOTHING} }} }} }}] }}'

Allow = Callable[[str], None]


@pytest.fixture
def server(tmp_path: Path) -> NatsServer:
    return NatsServer(tmp_path / "nats", more=USER)


@pytest.fixture
def deny(server: NatsServer) -> Allow:
    """Have the server's user be refused these subjects from now on, or none."""

    def change(subjects: str) -> None:
        file = server.folder / "nats-server.conf"
        kept, _, _ = file.read_text(encoding="utf-8").partition("authorization {")
        file.write_text(kept + USER.replace(NOTHING, f"deny: [{subjects}]"), encoding="utf-8")
        os.kill(server.pid, signal.SIGHUP)

    return change


@pytest.fixture
async def nats(server: NatsServer) -> AsyncIterator[Connection]:
    with server:
        connection = Connection("test")
        await connection.connect(server.url.replace("//", "//a:b@"))
        yield connection
        await connection.close()


async def deaf(nats: Connection) -> None:
    async def it_is() -> bool:
        return nats.deaf_to is not None

    await eventually(it_is)


async def hears_all(nats: Connection) -> None:
    async def it_does() -> bool:
        return nats.deaf_to is None

    await eventually(it_does)


@pytest.mark.parametrize("group", ["", "workers"])
async def test_what_listens_hears_again_once_for_each_message(nats: Connection, deny: Allow, group: str) -> None:
    heard: list[bytes] = []
    await nats.listen("Said.*", lambda message: heard.append(message.data), group=group)
    for number in (1, 2):
        deny('"Said.>"')
        await deaf(nats)
        assert nats.deaf_to == "said.*"
        nats.publish("Said.it", b"lost")
        await nats.flush()
        deny("")
        await hears_all(nats)
        nats.publish("Said.it", b"heard")
        await nats.flush()
        assert heard == [b"heard"] * number


async def test_answers_come_again(nats: Connection, deny: Allow) -> None:
    assert isinstance(await nats.request("$JS.API.INFO"), Reply)
    deny('"_INBOX.>"')
    await deaf(nats)
    assert isinstance(await nats.request("$JS.API.INFO", timeout_s=0.1), Failed)
    deny("")
    await hears_all(nats)
    assert isinstance(await nats.request("$JS.API.INFO"), Reply)


async def test_what_is_no_longer_listened_to_is_not_asked_for_again(nats: Connection, deny: Allow) -> None:
    heard: list[bytes] = []
    stop = await nats.listen("said", lambda message: heard.append(message.data))
    deny('"said"')
    await deaf(nats)
    await stop()
    await hears_all(nats)
    deny("")
    nats.publish("said", b"late")
    await nats.flush()
    assert heard == []
