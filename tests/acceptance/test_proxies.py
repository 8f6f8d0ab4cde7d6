"""The proxies of docs/proxies.md, with their configurations in deploy/proxies, between browsers and gateways."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp
import pytest

from support.browser import Browser, browser_program
from support.certificates import Authority
from support.proxies import Proxy, haproxy_arguments, nginx_arguments, running
from support.system import Command, System, environment
from support.waiting import eventually

pytestmark = pytest.mark.slow

Folders = pytest.TempPathFactory
KEY: Final = "a-key-of-the-environment"
CLIENTS: Final = (f"127.0.1.{number}" for number in itertools.count(1))
"""Addresses of clients, none of them the proxy's. Each is used once, since the audit counts what is repeated."""
JOB: Final = {"type": "a.b", "args": []}
HTML: Final = {"Accept": "text/html"}


PROXIES: Final = (
    Proxy("nginx", ("nginx.conf",), nginx_arguments("nginx.conf"), ("listen 80", "listen 443", "listen 8000")),
    Proxy("haproxy", ("haproxy.cfg",), haproxy_arguments("haproxy.cfg")),
    Proxy(
        "caddy",
        ("Caddyfile",),
        lambda folder: ["run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"],
    ),
    Proxy(
        "traefik",
        ("traefik.yaml", "traefik-routes.yaml"),
        lambda folder: [f"--configFile={folder / 'traefik.yaml'}"],
    ),
)


class Scene(NamedTuple):
    """A proxy's three addresses, and the gateways behind it."""

    plain: str
    tls: str
    below: str
    context: ssl.SSLContext


class Gateways(NamedTuple):
    """The ports of one at the root, and of one below /jobs."""

    ports: tuple[int, int]
    system: System


@pytest.fixture(scope="module")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateways]:
    folder = tmp_path_factory.mktemp("gateways")
    trusting = ("--trusted-proxies", "127.0.0.1")
    env = environment(OJS_API_KEY=KEY)
    with System.started(folder / "system", "--together", *trusting, env=env) as system:
        below = Command(
            folder, "gateway", "--nats", system.nats_url_by_role, "--port", "0", "--path-prefix", "/jobs", *trusting,
            "--log-format", "json", env=env,
        )  # fmt: skip
        try:
            ports = [int(url.rpartition(":")[2]) for url in (system.url, str(below.ready()["url"]))]
            yield Gateways((ports[0], ports[1]), system)
        finally:
            below.stop()


@pytest.fixture(scope="module", params=PROXIES, ids=[proxy.name for proxy in PROXIES])
def scene(request: pytest.FixtureRequest, gateways: Gateways, tmp_path_factory: Folders) -> Iterator[Scene]:
    proxy: Proxy = request.param
    program = proxy.program
    folder = tmp_path_factory.mktemp(proxy.name)
    authority = Authority(folder / "ca")
    pair = authority.server("jobs")
    whole = folder / "jobs.pem"
    whole.write_bytes(pair.certificate.read_bytes() + pair.key.read_bytes())
    behind = zip((8080, 8081), gateways.ports, strict=True)
    places = {f"127.0.0.1:{number}": f"127.0.0.1:{port}" for number, port in behind}
    places |= {"/etc/ssl/jobs.pem": str(whole), "/etc/ssl/jobs.key": str(pair.key), "/etc/traefik": str(folder)}
    with running(proxy, program, folder, places) as (plain, tls, below):
        yield Scene(f"http://{plain}", f"https://{tls}", f"http://{below}/jobs", authority.trusting())


@asynccontextmanager
async def browsing(url: str, scene: Scene, client: str | None = None) -> AsyncIterator[Callable[..., Any]]:
    """Requests to an address, as a browser of another machine sends them that has signed in."""
    connector = aiohttp.TCPConnector(local_addr=(client or next(CLIENTS), 0), ssl=scene.context)
    origin = re.sub(r"(?<=\d)/.*", "", url)
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=jar, headers={"Origin": origin}) as session:

        def ask(method: str, path: str, **more: Any) -> Any:
            return session.request(method, url + path, **more)

        yield ask


def addresses(scene: Scene) -> Mapping[str, bool]:
    """The proxy's addresses, and whether each speaks TLS."""
    return {scene.plain: False, scene.tls: True, scene.below: False}


async def test_a_browser_loads_the_dashboard_signs_in_and_pushes(scene: Scene) -> None:
    for url, secure in addresses(scene).items():
        async with browsing(url, scene) as ask:
            async with ask("GET", "/", headers=HTML) as page:
                assert page.status == 200, url
                text = await page.text()
            root = re.sub(r"(?<=\d)/.*", "", url)
            for asset in re.findall(r'(?:href|src)="([^"]+)"', text):
                async with ask("GET", (root + asset).removeprefix(url)) as found:
                    assert found.status == 200, (url, asset)
            async with ask("POST", "/ojs/v1/session", headers={"Authorization": f"Bearer {KEY}"}) as signed_in:
                assert signed_in.status == 201, await signed_in.text()
                [morsel] = SimpleCookie(signed_in.headers["Set-Cookie"]).values()
                assert bool(morsel["secure"]) is secure, url
            async with ask("POST", "/ojs/v1/jobs", json=JOB) as pushed:
                assert pushed.status == 201, await pushed.text()
            async with ask("POST", "/ojs/v1/jobs", json=JOB, headers={"Origin": "http://evil.example"}) as refused:
                assert refused.status == 403
            location = pushed.headers["Location"]
            async with ask("GET", (root + location).removeprefix(url)) as read:
                assert read.status == 200, location
            async with ask("GET", "/healthz") as health:
                assert health.status == 200


async def test_events_come_at_once_and_web_sockets_open(scene: Scene) -> None:
    for url in addresses(scene):
        async with browsing(url, scene) as ask:
            key = {"Authorization": f"Bearer {KEY}"}
            async with ask("GET", "/ojs/v1/events/stream", headers=key) as stream:
                assert stream.status == 200
                async with ask("POST", "/ojs/v1/jobs", json=JOB, headers=key) as pushed:
                    job_id = (await pushed.json(content_type=None))["job"]["id"]
                seen = b""
                async with asyncio.timeout(60):
                    while job_id.encode() not in seen:
                        seen += await stream.content.readany()
        connector = aiohttp.TCPConnector(ssl=scene.context)
        async with (
            aiohttp.ClientSession(connector=connector, headers=key) as session,
            session.ws_connect(f"{url}/ojs/v1/ws", protocols=["ojs-events-v1"]) as web_socket,
        ):
            assert not web_socket.closed


async def test_the_audit_names_the_client_and_not_the_proxy(scene: Scene) -> None:
    for url in addresses(scene):
        client = next(CLIENTS)
        async with browsing(url, scene, client) as ask:
            wrong = {"Authorization": "Bearer wrong", "X-Forwarded-For": "198.51.100.9"}
            async with ask("GET", "/ojs/v1/queues", headers=wrong) as refused:
                assert refused.status == 401

            async def is_written(ask: Callable[..., Any] = ask, client: str = client) -> bool:
                key = {"Authorization": f"Bearer {KEY}"}
                async with ask("GET", "/ojs/v1/admin/audit?limit=100", headers=key) as answer:
                    entries = (await answer.json(content_type=None))["entries"]
                return client in {entry["source_ip"] for entry in entries}

            await eventually(is_written)


async def test_the_dashboard_works_below_a_path(scene: Scene, tmp_path: Path) -> None:
    program = browser_program()
    if program is None:
        if "CI" in os.environ:
            pytest.fail("there is no Chromium here, and CI has to have one")
        pytest.skip("there is no Chromium here")
    async with Browser.started(program, tmp_path, {}) as browser:
        page = await browser.page()
        for start in (scene.below, f"{scene.below}/"):
            await page.go(start)

            async def asks_for_a_key() -> Any:
                return await page.run("!!document.querySelector('input[type=password]')")

            await eventually(asks_for_a_key)
        key = {"Authorization": f"Bearer {KEY}"}
        sign_in = f"fetch('/jobs/ojs/v1/session', {{method: 'POST', headers: {key!r}}}).then(a => a.status)"
        assert await page.run(sign_in) == 201
        await page.go(f"{scene.below}/")

        async def shows_links() -> Any:
            return await page.run("!!document.querySelector('nav a[href=\"/jobs/queues\"]')")

        await eventually(shows_links)
        await page.run("document.querySelector('nav a[href=\"/jobs/queues\"]').click()")

        async def shows_queues() -> Any:
            return await page.run("location.pathname === '/jobs/queues' && /default/.test(document.body.textContent)")

        await eventually(shows_queues)
