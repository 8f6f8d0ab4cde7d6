"""Bytes that aren't UTF-8, in headers, paths and queries: refused where they count, else passed over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
import msgspec
import pytest

from ojs_gateway.nats_api.call import headers_of
from support.fake_store import FakeStore

Start = Callable[..., Awaitable[aiohttp.ClientSession]]
JOB = b'{"type": "a.b", "args": []}'
NO_TEXT = b"\xe9\xff"
ORIGIN = "https://jobs.example.com"
KEY = "k" * 32
WEBSOCKET = {"Upgrade": b"websocket", "Connection": b"Upgrade", "Sec-WebSocket-Version": b"13"}


async def ask(http: aiohttp.ClientSession, method: str, path: str, body: bytes = b"", **headers: bytes) -> tuple[int, Any]:
    """Status and error of a request as bytes; without an error what was answered."""
    base = http._base_url
    assert base is not None
    sent = {"Host": b"localhost"} | {name.replace("_", "-"): value for name, value in headers.items()}
    if body:
        sent = {"Content-Type": b"application/json", "Content-Length": b"%d" % len(body)} | sent
    head = b"".join(b"%s: %s\r\n" % (name.encode(), value) for name, value in sent.items())
    reader, writer = await asyncio.open_connection(base.host, base.port)
    try:
        writer.write(b"%s %s HTTP/1.1\r\n%s\r\n%s" % (method.encode(), path.encode(), head, body))
        lines = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)).decode().split("\r\n")
        length = next((int(line[15:]) for line in lines if line.startswith("Content-Length:")), 0)
        answer = msgspec.json.decode(await asyncio.wait_for(reader.readexactly(length), 60)) if length else {}
    finally:
        writer.close()
    return int(lines[0].split()[1]), answer.get("error", answer)


@pytest.mark.parametrize(
    "header",
    [
        "Host",
        "Origin",
        "Sec-Fetch-Site",
        "Sec-Fetch-Mode",
        "Sec-Fetch-Dest",
        "OJS-Version",
        "OJS-Requires-Extension",
        "Idempotency-Key",
        "Content-Type",
    ],
)
async def test_a_header_that_counts_is_named(http: aiohttp.ClientSession, store: FakeStore, header: str) -> None:
    status, error = await ask(http, "POST", "/ojs/v1/jobs", JOB, **{header: NO_TEXT})
    assert (status, error["code"], error["details"]["field"]) == (400, "invalid_request", header)
    assert not store.records


@pytest.mark.parametrize(
    "header",
    [
        "User-Agent",
        "Accept",
        "Accept-Encoding",
        "Cookie",
        "X-Request-Id",
        "X-Forwarded-For",
        "X-Forwarded-Host",
        "Forwarded",
        "traceparent",
        "tracestate",
        "Last-Event-ID",
        "Authorization",
        "Referer",
        "X-Of-Others",
    ],
)
async def test_a_header_that_does_not_count_is_passed_over(http: aiohttp.ClientSession, header: str) -> None:
    assert (await ask(http, "POST", "/ojs/v1/jobs", JOB, **{header: NO_TEXT}))[0] == 201


async def test_a_key_counts_where_one_is_asked_for(start: Start) -> None:
    http = await start(api_key=KEY)
    for sent in (NO_TEXT, b"Bearer " + NO_TEXT):
        status, error = await ask(http, "GET", "/ojs/v1/jobs", Authorization=sent)
        assert (status, error["details"]["field"]) == (400, "Authorization")
        assert (await ask(http, "GET", "/ojs/v1/health", Authorization=sent))[0] == 200
    for header in ("Cookie", "User-Agent"):
        assert (await ask(http, "GET", "/ojs/v1/jobs", **{header: b"ojs_session_ojs=" + NO_TEXT}))[0] == 401


async def test_proxies_that_are_believed_say_what_can_be_read(start: Start) -> None:
    http = await start(trusted_proxies=("127.0.0.1",))
    for header in ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"):
        assert (await ask(http, "GET", "/ojs/v1/health", **{header: NO_TEXT}))[0] == 200


async def test_questions_of_browsers_are_refused_alike(start: Start) -> None:
    http = await start(allowed_origins=(ORIGIN,))
    asked = {"Origin": ORIGIN.encode(), "Access-Control-Request-Method": b"POST"}
    assert (await ask(http, "OPTIONS", "/ojs/v1/jobs", **asked))[0] == 204
    for header in ("Access-Control-Request-Headers", "Access-Control-Request-Method"):
        status, error = await ask(http, "OPTIONS", "/ojs/v1/jobs", **asked | {header: NO_TEXT})
        assert (status, error["details"]["field"]) == (400, header)


async def test_a_stream_does_not_begin_where_nobody_can_say(http: aiohttp.ClientSession) -> None:
    status, error = await ask(http, "GET", "/ojs/v1/events/stream", **{"Last-Event-ID": NO_TEXT})
    assert (status, error["details"]["field"]) == (400, "Last-Event-ID")


@pytest.mark.parametrize("sent", [NO_TEXT, "é".encode(), b"abc"])
@pytest.mark.parametrize("header", ["Sec-WebSocket-Key", "Sec-WebSocket-Version", "Upgrade"])
async def test_only_a_websocket_client_opens_one(http: aiohttp.ClientSession, header: str, sent: bytes) -> None:
    asked = WEBSOCKET | {"Sec-WebSocket-Key": b"dGhlIHNhbXBsZSBub25jZQ==", header: sent}
    status, error = await ask(http, "GET", "/ojs/v1/ws", **asked)
    assert (status, error["details"]["field"]) == (400, "Upgrade")


@pytest.mark.parametrize(
    ("path", "status", "field"),
    [
        ("/ojs/v1/jobs/%E9%FF", 400, "path"),
        ("/ojs/v1/cron/%E9", 400, "path"),
        ("/ojs/v1/queues/%ED%A0%80", 400, "path"),
        ("/ojs/v1/admin/workers/a%C3", 400, "path"),
        ("/nowhere/%E9", 404, None),
        ("/ojs/v1/nowhere/%E9", 404, None),
        ("/ojs/v1/jobs?state=%E9", 400, "query"),
        ("/ojs/v1/jobs?meta.%FF=1", 400, "query"),
        ("/ojs/v1/jobs?" + "&".join(f"meta.m{number}=1" for number in range(101)), 400, "query"),
        ("/ojs/v1/health?%E9", 200, None),
    ],
)
async def test_what_a_path_or_query_names_is_text(
    http: aiohttp.ClientSession, path: str, status: int, field: str | None
) -> None:
    found, answer = await ask(http, "GET", path)
    assert (found, answer.get("details", {}).get("field")) == (status, field)


@pytest.mark.parametrize("before", ["", "http://localhost"])
async def test_a_path_is_decoded_once_also_in_a_whole_address(http: aiohttp.ClientSession, before: str) -> None:
    status, error = await ask(http, "GET", f"{before}/ojs/v1/queues/a%2525b")
    assert (status, 'not "a%25b"' in error["message"]) == (400, True), error


@pytest.mark.parametrize("double", [b'"\\ud800"', b'"\\udce9a"'])
async def test_half_of_a_surrogate_pair_as_a_member_that_stands_twice_is_refused(
    http: aiohttp.ClientSession, double: bytes
) -> None:
    status, error = await ask(http, "PUT", "/ojs/v1/queues/mail/config", b"{%s: 1, %s: 2}" % (double, double))
    assert (status, error["code"]) == (400, "invalid_request")
    assert "stands twice" in error["message"]


def test_headers_over_nats_are_told_apart_alike() -> None:
    sent = (b"Idempotency-Key: \xe9", b"User-Agent: \xc3\xa9", b"X-A: 1", b"x-a: \xff", b"\xe9: 1", b"no colon")
    block = b"\r\n".join((b"NATS/1.0", *sent, b"", b""))
    values, unreadable = headers_of(block)
    lost = "\N{REPLACEMENT CHARACTER}"
    assert values == {"idempotency-key": lost, "user-agent": "é", "x-a": f"1, {lost}", lost: "1"}
    assert unreadable == {"idempotency-key", "x-a"}
    assert headers_of(None) == ({}, frozenset())
