"""A gateway behind a proxy: whom it believes, its name, and the path below which it stands (docs/proxies.md)."""

from __future__ import annotations

import re
from http.cookies import SimpleCookie
from typing import Any

import aiohttp
import pytest
import structlog
from yarl import URL

from ojs_dashboard import files
from ojs_nats import Client
from ojs_nats.client import JobHandle
from ojs_nats.jobs import JobRequest
from support.dashboard import need_libraries
from unit.gateway.conftest import Start

KEY = "a-key-of-the-environment"
HTML = {"Accept": "text/html"}
SHOWN = {"Authorization": f"Bearer {KEY}"}
HTTPS = {"X-Forwarded-Proto": "https"}
JOB = {"type": "a.b", "args": []}


async def signed_in(http: aiohttp.ClientSession, **headers: str) -> Any:
    """The cookie of a sign-in."""
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with http.post("/ojs/v1/session", headers=SHOWN | sent) as answer:
        assert answer.status == 201, await answer.text()
        [morsel] = SimpleCookie(answer.headers["Set-Cookie"]).values()
    http.cookie_jar.clear()
    return morsel


@pytest.mark.parametrize(
    ("settings", "headers", "secure"),
    [
        ({}, {"X_Forwarded_Proto": "https"}, False),  # nobody is believed unless it is said
        ({"trusted_proxies": ("10.0.0.0/8",)}, {"X_Forwarded_Proto": "https"}, False),
        ({"trusted_proxies": ("127.0.0.0/8",)}, {"X_Forwarded_Proto": "https"}, True),
        ({"trusted_proxies": ("127.0.0.0/8",)}, {"X_Forwarded_Proto": "HTTPS, http"}, True),
        ({"trusted_proxies": ("127.0.0.0/8",)}, {"X_Forwarded_Proto": "http"}, False),
        ({"trusted_proxies": ("127.0.0.0/8",)}, {"Forwarded": "proto=https"}, False),
        ({"trusted_proxies": ("127.0.0.0/8",), "forwarded_by": "forwarded"}, {"Forwarded": "proto=https"}, True),
    ],
)
async def test_a_cookie_is_secure_where_a_trusted_proxy_says_that_the_browser_speaks_tls(
    start: Start, settings: dict[str, Any], headers: dict[str, str], secure: bool
) -> None:
    http = await start(api_key=KEY, **settings)
    assert bool((await signed_in(http, **headers))["secure"]) is secure


async def test_the_name_of_a_cookie_says_whose_it_is(start: Start) -> None:
    http = await start(api_key=KEY, namespace="shop", trusted_proxies=("127.0.0.1",))
    port = http._base_url and http._base_url.port
    assert (await signed_in(http)).key == f"ojs_session_shop_{port}"
    assert (await signed_in(http, Host="localhost")).key == "ojs_session_shop"
    assert (await signed_in(http, X_Forwarded_Host="localhost:8443")).key == "ojs_session_shop_8443"
    below = await start(api_key=KEY, path_prefix="/team/jobs")
    morsel = await signed_in(below, Host="localhost")
    assert (morsel.key, morsel["path"]) == ("ojs_session_ojs.team.jobs", "/team/jobs")


async def test_a_browser_stays_signed_in_on_two_servers_of_one_host(start: Start) -> None:
    one, other = await start(api_key=KEY), await start(api_key="another-key")
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser:
        for server, key in ((one, KEY), (other, "another-key")):
            headers = {"Authorization": f"Bearer {key}"}
            async with browser.post(f"{server._base_url}/ojs/v1/session", headers=headers) as answer:
                assert answer.status == 201
        for server in (one, other, one):
            own = {"Sec-Fetch-Site": "same-origin"}
            async with browser.post(f"{server._base_url}/ojs/v1/jobs", json=JOB, headers=own) as answer:
                assert answer.status == 201, await answer.text()


async def test_a_session_of_an_earlier_version_is_cleaned_up(start: Start) -> None:
    http = await start(api_key=KEY)
    morsel = await signed_in(http)
    for old, cleaned in ((morsel.value, True), ("of.another.server", False)):
        cookies = {"Cookie": f"{morsel.key}={morsel.value}; ojs_session={old}"}
        async with http.get("/ojs/v1/session", headers=cookies) as answer:
            assert answer.status == 200
            said = answer.headers.get("Set-Cookie", "")
        assert said.startswith("ojs_session=; Path=/; Max-Age=0;") is cleaned
    async with http.get("/ojs/v1/queues", headers={"Cookie": f"ojs_session={morsel.value}"}) as answer:
        assert answer.status == 401


async def test_a_page_is_known_by_the_host_that_a_trusted_proxy_names(start: Start) -> None:
    http = await start(api_key=KEY, trusted_proxies=("127.0.0.1",), allowed_hosts=("jobs.example",))
    asked = {"X-Forwarded-Host": "jobs.example:8443", "X-Forwarded-Proto": "https"}
    morsel = await signed_in(http, **{name.replace("-", "_"): value for name, value in asked.items()})
    cookie = {"Cookie": f"{morsel.key}={morsel.value}"}
    for origin, status in (("https://jobs.example:8443", 201), ("https://jobs.example", 403)):
        async with http.post("/ojs/v1/jobs", json=JOB, headers=asked | cookie | {"Origin": origin}) as answer:
            assert answer.status == status, await answer.text()
    async with http.get("/ojs/manifest", headers={"X-Forwarded-Host": "evil.example"}) as answer:
        assert answer.status == 403


@pytest.mark.parametrize("path", ["/ojs/v1/jobs/x?_=1", "/nowhere"])
async def test_the_log_names_the_client_behind_a_trusted_proxy(start: Start, path: str) -> None:
    sent = {"X-Forwarded-For": "198.51.100.1, 203.0.113.7"}
    for trusted, address in ((("127.0.0.1",), "203.0.113.7"), ((), "127.0.0.1")):
        http = await start(trusted_proxies=trusted, request_log="all")
        with structlog.testing.capture_logs() as logs:
            async with http.get(path, headers=sent) as answer:
                assert answer.status == 404
        assert [entry["address"] for entry in logs if entry["event"] == "request"] == [address]


@pytest.mark.parametrize("prefix", ["/jobs", "/team/jobs", "/a.b~c"])
async def test_everything_is_below_the_prefix_and_at_the_root(start: Start, prefix: str) -> None:
    """A proxy takes the prefix off, or doesn't."""
    need_libraries()
    http = await start(path_prefix=prefix)
    text = ""
    for below in (prefix, ""):
        for page in ("/", *(page.replace("{name}", "mail").replace("{id}", "x") for page in files.PAGES)):
            async with http.get(below + page, headers=HTML) as answer:
                assert answer.status == 200, below + page
                text = await answer.text()
            assert f'<meta name="ojs-base" content="{prefix}">' in text
        assets = re.findall(r'(?:href|src)="([^"]+)"', text)
        assert all(asset.startswith(f"{prefix}/ui/") for asset in assets)
        for asset in assets:
            async with http.get(below + asset.removeprefix(prefix)) as found:
                assert found.status == 200, asset
        async with http.post(f"{below}/ojs/v1/jobs", json=JOB) as pushed:
            assert pushed.status == 201
            job = (await pushed.json(content_type=None))["job"]
        assert pushed.headers["Location"] == f"{prefix}/ojs/v1/jobs/{job['id']}"
        async with http.get(URL(pushed.headers["Location"], encoded=True)) as read:
            assert read.status == 200
        async with http.get(f"{below}/ojs/v1/openapi.json") as described:
            assert [server["url"] for server in (await described.json(content_type=None))["servers"]] == [prefix]
        async with http.get(f"{below}/ojs/manifest") as manifest:
            assert (await manifest.json(content_type=None))["endpoints"]["base_url"] == f"{prefix}/ojs/v1"
        async with http.delete(f"{below}/ojs/v1/jobs/batch") as refused:
            assert (refused.status, refused.headers["Allow"]) == (405, "POST")
        async with http.get(f"{below}/nowhere/at/all") as missing:
            assert f"path '{below}/nowhere/at/all' was not found" in await missing.text()
    async with http.get(prefix, headers=HTML) as answer:
        assert answer.status == 200
    async with http.get(f"{prefix}x/ojs/manifest") as answer:
        assert answer.status == 404


async def test_the_python_client_takes_an_address_with_a_path(start: Start) -> None:
    http = await start(path_prefix="/team/jobs")
    async with Client(f"{http._base_url}/team/jobs") as client:
        job: JobHandle[object] = await client.push(JobRequest("a.b", (1,)))
        assert (await client.jobs.get(job.id)).args == [1]
