"""TCP load balancers in front of gateways, which say whose bytes they carry by the PROXY protocol (docs/proxies.md)."""

from __future__ import annotations

import asyncio
import itertools
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import pytest

from support.balancer import binary
from support.certificates import Authority
from support.proxies import Proxy, haproxy_arguments, nginx_arguments, running
from support.system import Command, System, environment
from support.waiting import eventually

pytestmark = pytest.mark.slow

Folders = pytest.TempPathFactory
KEY: Final = "a-key-of-the-environment"
SHOWN: Final = {"Authorization": f"Bearer {KEY}"}
CLIENTS: Final = (f"127.0.2.{number}" for number in itertools.count(1))
"""Addresses of clients, none of them the balancer's. Each is used once, since the audit counts what is repeated."""
JOB: Final = {"type": "a.b", "args": []}
MODULE: Final = Path("/usr/lib/nginx/modules/ngx_stream_module.so")

BALANCERS: Final = (
    Proxy("haproxy", ("haproxy-tcp.cfg",), haproxy_arguments("haproxy-tcp.cfg"), (":80", ":443")),
    Proxy(
        "nginx",
        ("nginx-stream.conf",),
        nginx_arguments("nginx-stream.conf"),
        ("listen 80", "listen 443"),
        MODULE,
    ),
)


class Gateways(NamedTuple):
    """One that speaks plain HTTP, and one that speaks TLS, and whose certificates a client trusts."""

    plain: Command
    tls: Command
    context: ssl.SSLContext

    @property
    def addresses(self) -> list[str]:
        return [str(gateway.ready()["url"]).partition("//")[2] for gateway in (self.plain, self.tls)]


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: Folders) -> Iterator[Gateways]:
    folder = tmp_path_factory.mktemp("gateways")
    authority = Authority(folder)
    pair = authority.server("jobs")
    env = environment(OJS_API_KEY=KEY)
    with System.started(folder / "system", "--together", env=env) as system:

        def started(name: str, *more: str) -> Command:
            return Command(
                folder / name, "gateway", "--nats", system.nats_url_by_role, "--port", "0",
                "--trusted-proxies", "127.0.0.1", "--proxy-protocol", "--request-log", "all",
                "--log-format", "json", *more, env=env,
            )  # fmt: skip

        plain = started("plain")
        tls = started("tls", "--tls-cert", str(pair.certificate), "--tls-key", str(pair.key))
        try:
            yield Gateways(plain, tls, authority.trusting())
        finally:
            plain.stop()
            tls.stop()


class Way(NamedTuple):
    """An address of a balancer, and the gateway behind it."""

    url: str
    gateway: Command
    context: ssl.SSLContext

    def client(self, address: str, **more: Any) -> aiohttp.ClientSession:
        """A client at this address."""
        connector = aiohttp.TCPConnector(local_addr=(address, 0), ssl=self.context)
        jar = aiohttp.CookieJar(unsafe=True)
        return aiohttp.ClientSession(self.url, connector=connector, cookie_jar=jar, **more)

    async def has_logged(self, route: str, address: str) -> None:
        """Return when the gateway's log names the client of a route."""

        def is_named() -> bool:
            return address in {line["address"] for line in self.gateway.events("request") if line["route"] == route}

        await eventually(is_named)


@pytest.fixture(scope="module", params=BALANCERS, ids=[proxy.name for proxy in BALANCERS])
def ways(request: pytest.FixtureRequest, gateways: Gateways, tmp_path_factory: Folders) -> Iterator[tuple[Way, Way]]:
    balancer: Proxy = request.param
    program = balancer.program
    places = dict(zip(("127.0.0.1:8080", "127.0.0.1:8443"), gateways.addresses, strict=True))
    with running(balancer, program, tmp_path_factory.mktemp(balancer.name), places) as (plain, tls):
        yield (
            Way(f"http://{plain}", gateways.plain, gateways.context),
            Way(f"https://{tls}", gateways.tls, gateways.context),
        )


async def test_a_browser_loads_the_dashboard_signs_in_and_pushes(ways: tuple[Way, Way]) -> None:
    for way in ways:
        async with way.client(next(CLIENTS), headers={"Origin": way.url}) as http:
            async with http.get("/", headers={"Accept": "text/html"}) as page:
                assert page.status == 200
                text = await page.text()
            for asset in re.findall(r'(?:href|src)="([^"]+)"', text):
                async with http.get(asset) as found:
                    assert found.status == 200, asset
            async with http.post("/ojs/v1/session", headers=SHOWN) as signed_in:
                assert signed_in.status == 201, await signed_in.text()
                assert ("Secure" in signed_in.headers["Set-Cookie"]) is way.url.startswith("https:")
            async with http.post("/ojs/v1/jobs", json=JOB) as pushed:
                assert pushed.status == 201, await pushed.text()


async def test_events_come_at_once_and_web_sockets_open(ways: tuple[Way, Way]) -> None:
    for way in ways:
        async with (
            way.client(next(CLIENTS), headers=SHOWN) as http,
            http.get("/ojs/v1/events/stream") as stream,
            http.ws_connect("/ojs/v1/ws", protocols=["ojs-events-v1"]) as web_socket,
        ):
            assert stream.status == 200
            assert not web_socket.closed
            async with http.post("/ojs/v1/jobs", json=JOB) as pushed:
                job_id = (await pushed.json(content_type=None))["job"]["id"]
            seen = b""
            async with asyncio.timeout(60):
                while job_id.encode() not in seen:
                    seen += await stream.content.readany()


async def test_audit_and_log_name_the_client_and_not_what_it_invents(ways: tuple[Way, Way]) -> None:
    for way in ways:
        client = next(CLIENTS)
        invented = {"X-Forwarded-For": "198.51.100.9"}
        async with way.client(client, headers=invented) as http, way.client(next(CLIENTS), headers=SHOWN) as operator:
            async with http.get("/ojs/v1/queues", headers={"Authorization": "Bearer wrong"}) as refused:
                assert refused.status == 401

            async def is_written(operator: aiohttp.ClientSession = operator, client: str = client) -> bool:
                async with operator.get("/ojs/v1/admin/audit?limit=100") as answer:
                    entries = (await answer.json(content_type=None))["entries"]
                found = {entry["source_ip"] for entry in entries}
                assert "198.51.100.9" not in found
                return client in found

            await eventually(is_written)
        await way.has_logged("/ojs/v1/queues", client)
        assert "198.51.100.9" not in way.gateway.output


async def test_health_checks_of_haproxy_are_its_own(ways: tuple[Way, Way], request: pytest.FixtureRequest) -> None:
    if "nginx" in request.node.name:
        return  # it has none
    for way in ways:
        await way.has_logged("/readyz", "127.0.0.1")


async def test_who_comes_past_the_balancer_names_no_address(gateways: Gateways) -> None:
    address, _ = gateways.addresses
    host, _, port = address.rpartition(":")
    request = f"GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n".encode()
    answers = {}
    for peer, sent in (
        ("127.0.0.1", request),
        ("127.0.0.1", binary("203.0.113.7") + request),
        ("127.0.3.1", request),
        ("127.0.3.1", binary("203.0.113.7") + request),
    ):
        reader, writer = await asyncio.open_connection(host, int(port), local_addr=(peer, 0))
        writer.write(sent)
        async with asyncio.timeout(60):
            answers[peer, sent is request] = int((await reader.readline()).split()[1])
        writer.close()
    assert answers == {
        ("127.0.0.1", True): 400,
        ("127.0.0.1", False): 200,
        ("127.0.3.1", True): 200,
        ("127.0.3.1", False): 405,  # it isn't HTTP
    }
