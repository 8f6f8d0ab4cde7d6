"""Credentials in files: of every kind, replaced while connections live, and wrong."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from ojs_engine.base.problems import StartupProblem, Unreachable
from ojs_engine.jetstream.connection import CannotConnect, Connection, ConnectionTimings
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store
from ojs_features.all import STORE_FEATURES
from ojs_link.login import new_seed
from ojs_nats import Client
from ojs_nats.errors import RefusedError
from support.certificates import Authority
from support.jwts import Operator
from support.nats import NatsServer
from support.waiting import eventually

OPERATOR = Operator()
SEED, PUBLIC = new_seed()
KINDS = {
    "creds": (OPERATOR.section, OPERATOR.creds()),
    "nkey": (f"authorization {{ users = [{{ nkey: {PUBLIC} }}] }}", SEED),
    "password": ('authorization { users = [{ user: "a", password: "se:cret" }] }', "a:se:cret"),
    "token": ('authorization { token: "t0ken" }', "t0ken"),
}


def address(server: NatsServer) -> str:
    return f"127.0.0.1:{server.port}"


async def refusal(url: str) -> str:
    """Return why a service can't start, once another try won't mend it; a refusal may look like a loss."""
    try:
        await Store.open(url, StoreConfig(), role="gateway", features=STORE_FEATURES)
    except Unreachable:
        return ""
    except StartupProblem as problem:
        return str(problem)
    raise AssertionError("it was let in")


@pytest.fixture
def reconfigured() -> Callable[[NatsServer, str, str], None]:
    def change(server: NatsServer, old: str, new: str) -> None:
        file = server.folder / "nats-server.conf"
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
        os.kill(server.pid, signal.SIGHUP)

    return change


@pytest.fixture
async def connection() -> AsyncIterator[Connection]:
    nats = Connection("test")
    yield nats
    await nats.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_file_of_each_kind_lets_services_and_clients_in(kind: str, tmp_path: Path, connection: Connection) -> None:
    section, text = KINDS[kind]
    file = tmp_path / "login"
    with NatsServer(tmp_path / "nats", more=section) as server:
        file.write_text(text, encoding="utf-8")
        await connection.connect(f"{address(server)}?creds={file}")
        assert connection.connected
        async with Client(f"nats://{address(server)}?creds={file}", retry_for=0.0) as client:
            with pytest.raises(Exception, match="no gateway listens there"):
                await client.system.health()


@pytest.mark.parametrize("kind", KINDS)
async def test_wrong_credentials_are_told_at_once_without_what_is_in_them(kind: str, tmp_path: Path) -> None:
    section, _ = KINDS[kind]
    wrong = {"creds": Operator().creds(), "nkey": new_seed()[0], "password": "a:wr0ng", "token": "wr0ng"}[kind]
    file = tmp_path / "login"
    file.write_text(wrong, encoding="utf-8")
    with NatsServer(tmp_path / "nats", more=section) as server:
        url = f"nats://{address(server)}?creds={file}"
        problem = await eventually(lambda: refusal(url))
        assert re.search(r"doesn't let this process in .*correct the credentials", problem)
        assert "wr0ng" not in problem
        async with Client(url, retry_for=10.0) as client:
            with pytest.raises(RefusedError, match="doesn't let this client in"):
                await client.system.health()


async def test_credentials_that_are_replaced_are_read_when_it_connects_anew(
    tmp_path: Path, connection: Connection, reconfigured: Callable[[NatsServer, str, str], None]
) -> None:
    file = tmp_path / "login"
    file.write_text(SEED, encoding="utf-8")
    seed, public = new_seed()
    with NatsServer(tmp_path / "nats", more=KINDS["nkey"][0]) as server:
        await connection.connect(f"{address(server)}?creds={file}")
        reconfigured(server, PUBLIC, public)
        await eventually(lambda: not connection.connected)
        file.write_text("half of", encoding="utf-8")  # a file that is just being written
        file.unlink()
        file.write_text(seed, encoding="utf-8")
        await eventually(lambda: connection.connected and connection.connections == 2)


async def test_a_login_that_is_revoked_comes_back_when_it_is_mended(
    tmp_path: Path, reconfigured: Callable[[NatsServer, str, str], None]
) -> None:
    file = tmp_path / "login"
    file.write_text("a:se:cret", encoding="utf-8")
    with NatsServer(tmp_path / "nats", more=KINDS["password"][0]) as server:
        async with Client(f"nats://{address(server)}?creds={file}", retry_for=0.0) as client:
            with pytest.raises(Exception, match="no gateway listens there"):
                await client.system.health()
            reconfigured(server, '"se:cret"', '"other"')

            async def says(words: str) -> bool:
                try:
                    await client.system.health()
                except Exception as error:  # noqa: BLE001  # whatever it is, its words count
                    return words in str(error)
                return False

            await eventually(lambda: says("there is no connection to NATS"))
            reconfigured(server, '"other"', '"se:cret"')
            await eventually(lambda: says("no gateway listens there"))


async def test_a_client_certificate_and_a_ca_are_files_as_well(tmp_path: Path, connection: Connection) -> None:
    ours, theirs = Authority(tmp_path / "ours"), Authority(tmp_path / "theirs")
    served, shown, other = ours.server(), ours.client("shop"), theirs.client("shop")
    names = f'cert_file: "{served.certificate}", key_file: "{served.key}", ca_file: "{ours.file}", verify: true'
    with NatsServer(tmp_path / "nats", more=f"tls {{ {names} }}") as server:
        url = f"nats://{address(server)}?ca={ours.file}&cert="
        await connection.connect(f"{url}{shown.certificate}&key={shown.key}")
        assert connection.connected
        for wrong, said in (
            (f"{url}{other.certificate}&key={other.key}", None),
            (f"nats://{address(server)}?ca={theirs.file}", "certificate verify failed"),
        ):
            stranger = Connection("stranger", ConnectionTimings(give_up_s=2.0))
            with pytest.raises(CannotConnect, match=said):
                await stranger.connect(wrong)
            await stranger.close()


async def test_nothing_is_sent_where_tls_is_wanted_and_not_offered(tmp_path: Path) -> None:
    file = tmp_path / "login"
    file.write_text("a:se:cret", encoding="utf-8")
    with NatsServer(tmp_path / "nats", more=KINDS["password"][0]) as server:
        stranger = Connection("stranger")
        with pytest.raises(CannotConnect, match="offers no TLS") as refused:
            await stranger.connect(f"tls://{address(server)}?creds={file}")
        await stranger.close()
    assert refused.value.refused
