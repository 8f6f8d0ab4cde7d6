from __future__ import annotations

import asyncio
import gzip
import threading
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import msgspec
import pytest
import structlog

from ojs_engine.api.large_bodies import LARGE_BYTES, LargeBodies
from support.fake_store import FakeStore, unavailable_store

Start = Callable[..., Awaitable[aiohttp.ClientSession]]
OJS = "application/openjobspec+json"
JOB = {"type": "a.b", "args": [1]}
BODY = msgspec.json.encode(JOB)
JSON = {"Content-Type": "application/json"}


async def raw(http: aiohttp.ClientSession, sent: bytes) -> tuple[int, dict[str, str], Any]:
    """One request as bytes, for what no HTTP client would send."""
    base = http._base_url
    assert base is not None
    reader, writer = await asyncio.open_connection(base.host, base.port)
    writer.write(sent)
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)).decode()
    lines = head.strip().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    body = await asyncio.wait_for(reader.readexactly(int(headers["Content-Length"])), 60.0)
    writer.close()
    return int(lines[0].split()[1]), headers, msgspec.json.decode(body)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/ojs/manifest", 200),
        ("GET", "/ojs/v1/health", 200),
        ("POST", "/ojs/v1/jobs", 201),
        ("GET", "/ojs/v1/jobs/019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f", 404),
        ("GET", "/nowhere", 404),
        ("PUT", "/ojs/v1/jobs", 405),
        ("POST", "/ojs/v1/workers/fetch", 400),
    ],
)
async def test_every_answer_has_the_headers_of_the_binding(
    http: aiohttp.ClientSession, method: str, path: str, status: int
) -> None:
    async with http.request(method, path, json=JOB if method != "GET" else None) as answer:
        assert answer.status == status
        assert answer.headers["Content-Type"] == OJS
        assert answer.headers["OJS-Version"] == "1.0"
        assert answer.headers["X-Request-Id"].startswith("req_")
        assert "aiohttp" not in answer.headers["Server"]
        if status >= 400:
            assert (await answer.json(content_type=None))["error"]["request_id"] == answer.headers["X-Request-Id"]


async def test_a_request_id_is_echoed_and_new_ones_differ(http: aiohttp.ClientSession) -> None:
    async with http.get("/nowhere", headers={"X-Request-ID": "mine-1"}) as answer:
        assert answer.headers["X-Request-Id"] == "mine-1"
        assert (await answer.json(content_type=None))["error"]["request_id"] == "mine-1"
    seen = {(await http.get("/nowhere", headers={"X-Request-Id": "not fit"})).headers["X-Request-Id"] for _ in range(3)}
    assert len(seen) == 3


async def test_answers_take_the_media_type_that_a_client_needs(http: aiohttp.ClientSession) -> None:
    async with http.get("/ojs/manifest", headers={"Accept": "application/json"}) as answer:
        assert answer.headers["Content-Type"] == "application/json"
    async with http.get("/nowhere", headers={"User-Agent": "acme/1", "Accept": OJS, "OJS-Version": "1.0"}) as answer:
        assert "application/json" in answer.headers["Content-Type"], "the Python SDK looks for these words"


@pytest.mark.parametrize(
    "header", ["urn:ojs:ext:rate-limiting", "urn:ojs:spec:retry", "urn:ojs:ext:rate-limiting, urn:ojs:ext:results", ""]
)
async def test_a_supported_extension_may_be_required(http: aiohttp.ClientSession, header: str) -> None:
    async with http.post("/ojs/v1/jobs", json=JOB, headers={"OJS-Requires-Extension": header}) as answer:
        assert answer.status == 201


@pytest.mark.parametrize("header", ["urn:ojs:ext:telepathy", "urn:ojs:ext:results,urn:ojs:ext:telepathy", "rate-limiting"])
async def test_an_extension_that_is_missing_is_told_before_anything_is_stored(
    http: aiohttp.ClientSession, store: FakeStore, header: str
) -> None:
    async with http.post("/ojs/v1/jobs", json=JOB, headers={"OJS-Requires-Extension": header}) as answer:
        status, error = answer.status, (await answer.json(content_type=None))["error"]
    missing = header.rpartition(",")[2]
    assert (status, error["code"], error["extension"]) == (422, "EXTENSION_NOT_SUPPORTED", missing)
    assert "urn:ojs:ext:rate-limiting" in error["details"]["supported_extensions"]
    assert not store.records


async def test_each_of_several_headers_counts(http: aiohttp.ClientSession) -> None:
    named = [("OJS-Requires-Extension", "urn:ojs:ext:results"), ("OJS-Requires-Extension", "urn:ojs:ext:telepathy")]
    async with http.get("/ojs/v1/health", headers=named) as answer:
        assert answer.status == 422


async def packed(http: aiohttp.ClientSession, path: str, accepted: str | None, **headers: str) -> tuple[bytes, dict[str, str]]:
    """The bytes of an answer as they came, and its headers."""
    sent = headers | ({} if accepted is None else {"Accept-Encoding": accepted})
    async with (
        aiohttp.ClientSession(http._base_url, auto_decompress=False) as session,
        session.get(path, headers=sent, skip_auto_headers=["Accept-Encoding"]) as answer,
    ):
        return await answer.read(), dict(answer.headers)


@pytest.mark.parametrize("accepted", ["gzip", "gzip, deflate, br", "GZIP;q=0.5", "*", "br, x-gzip"])
async def test_a_large_answer_comes_compressed_to_who_takes_it(http: aiohttp.ClientSession, accepted: str) -> None:
    plain, headers = await packed(http, "/ojs/v1/openapi.json", None)
    assert (headers.get("Content-Encoding"), headers["Vary"]) == (None, "Accept-Encoding")
    body, headers = await packed(http, "/ojs/v1/openapi.json", accepted)
    assert (headers["Content-Encoding"], headers["Vary"]) == ("gzip", "Accept-Encoding")
    assert int(headers["Content-Length"]) == len(body)
    assert len(body) < len(plain) / 5
    assert gzip.decompress(body) == plain


@pytest.mark.parametrize("accepted", ["", "identity", "gzip;q=0", "*;q=0.0", "gzip; q=0, *", "br"])
async def test_an_answer_comes_as_it_is_to_who_takes_no_gzip(http: aiohttp.ClientSession, accepted: str) -> None:
    _, headers = await packed(http, "/ojs/v1/openapi.json", accepted)
    assert "Content-Encoding" not in headers


async def test_a_small_answer_is_not_compressed(http: aiohttp.ClientSession) -> None:
    _, headers = await packed(http, "/ojs/manifest", "gzip")
    assert headers.keys().isdisjoint({"Content-Encoding", "Vary"})


async def test_an_answer_may_vary_by_origin_as_well(start: Start) -> None:
    http = await start(allowed_origins=("https://jobs.example.com",))
    _, headers = await packed(http, "/ojs/v1/openapi.json", "gzip", Origin="https://jobs.example.com")
    assert headers["Vary"] == "Origin, Accept-Encoding"
    assert headers["Access-Control-Allow-Origin"] == "https://jobs.example.com"


async def test_an_answer_does_not_wait_for_other_large_work_to_be_compressed(
    http: aiohttp.ClientSession, aside: LargeBodies
) -> None:
    done = threading.Event()
    other = asyncio.create_task(aside.run(LARGE_BYTES, done.wait))
    await asyncio.sleep(0)
    try:
        body, headers = await packed(http, "/ojs/v1/openapi.json", "gzip")
    finally:
        done.set()
        await other
    assert "Content-Encoding" not in headers
    assert msgspec.json.decode(body)["openapi"] == "3.1.0"


async def test_an_unknown_version_is_unsupported(http: aiohttp.ClientSession) -> None:
    async with http.get("/ojs/v1/health", headers={"OJS-Version": "2.0"}) as answer:
        assert answer.status == 422
        assert (await answer.json(content_type=None))["error"]["code"] == "unsupported"
    async with http.get("/ojs/v1/health", headers={"OJS-Version": "1.0.0-rc.1"}) as answer:
        assert answer.status == 200


async def test_a_wrong_method_names_the_right_ones(http: aiohttp.ClientSession) -> None:
    async with http.put("/ojs/manifest") as answer:
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD")
        assert (await answer.json(content_type=None))["error"]["code"] == "method_not_allowed"


@pytest.mark.parametrize(
    "path", ["/ojs", "/ojs/v1", "/ojs/v1/", "/ojs/v1/jobs/", "/ojs/v1/jobs//result", "//", "/ojs/v1/admin/reset"]
)
async def test_unknown_paths_are_not_found(http: aiohttp.ClientSession, path: str) -> None:
    status, _, body = await raw(
        http, f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 0\r\n\r\n".encode()
    )
    assert (status, body["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"ASSERT / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"ASSERT http://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"GARBAGE\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nBad Header: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nA: " + b"x" * 20_000 + b"\r\n\r\n", 400),
        (b"GET /healthz?" + b"x" * 8_191 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (b"POST /ojs/v1/jobs HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n\r\n", 400),
    ],
)
async def test_what_is_hardly_http_still_gets_an_answer(http: aiohttp.ClientSession, sent: bytes, status: int) -> None:
    found, headers, body = await raw(http, sent)
    assert (found, headers["Content-Type"], headers["OJS-Version"]) == (status, OJS, "1.0")
    assert body["error"]["request_id"] == headers["X-Request-Id"]
    async with http.get("/healthz") as answer:
        assert answer.status == 200


async def test_absolute_targets_and_escaped_segments_are_understood(http: aiohttp.ClientSession) -> None:
    status, _, _ = await raw(http, b"GET http://elsewhere/ojs/manifest?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status == 200
    status, _, body = await raw(http, b"GET /ojs/v1/jobs/%2e%2e%2Fx HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (status, body["error"]["details"]) == (404, {"resource_type": "job", "resource_id": "../x"})


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/x", "/queues/mail", "/api/jobs", "/healthz/x"])
async def test_a_path_that_is_not_there_is_named_as_it_was_sent(http: aiohttp.ClientSession, path: str) -> None:
    async with http.get(path) as answer:
        assert answer.status == 404
        error = (await answer.json(content_type=None))["error"]
    assert error["message"] == f"path '{path}' was not found; the API is at /ojs/v1"
    assert error["details"] == {"resource_type": "path", "resource_id": path}


async def test_head_is_get_without_a_body(http: aiohttp.ClientSession) -> None:
    async with http.head("/ojs/manifest") as answer:
        assert answer.status == 200
        assert await answer.read() == b""


# Bodies


async def push(http: aiohttp.ClientSession, data: Any, **headers: str) -> tuple[int, dict[str, Any]]:
    async with http.post("/ojs/v1/jobs", data=data, headers=JSON | headers) as answer:
        return answer.status, await answer.json(content_type=None)


@pytest.mark.parametrize(
    "content_type", ["application/json", OJS, "application/json; charset=utf-8", "Application/JSON", "application/x.jobs+json"]
)
async def test_both_media_types_are_read(http: aiohttp.ClientSession, content_type: str) -> None:
    status, _ = await push(http, BODY, **{"Content-Type": content_type})
    assert status == 201


async def test_another_media_type_is_refused_with_the_remedy(http: aiohttp.ClientSession) -> None:
    status, body = await push(http, BODY, **{"Content-Type": "text/plain"})
    assert (status, body["error"]["code"]) == (400, "invalid_request")
    assert "application/openjobspec+json" in body["error"]["message"]
    async with http.post("/ojs/v1/queues/mail/pause", data=b"<a/>", headers={"Content-Type": "application/xml"}) as answer:
        assert (await answer.json(content_type=None))["error"]["details"]["field"] == "Content-Type"


@pytest.mark.parametrize(
    ("encoding", "packed"),
    [
        ("gzip", gzip.compress(BODY, mtime=0)),
        ("GZIP", gzip.compress(BODY[:5], mtime=0) + gzip.compress(BODY[5:], mtime=0)),
        ("deflate", zlib.compress(BODY)),
        ("deflate", zlib.compress(BODY, wbits=-15)),
        ("identity", BODY),
    ],
)
async def test_compressed_bodies_are_unpacked(http: aiohttp.ClientSession, encoding: str, packed: bytes) -> None:
    status, body = await push(http, packed, **{"Content-Encoding": encoding})
    assert (status, body["job"]["args"]) == (201, [1])


@pytest.mark.parametrize(
    ("encoding", "packed", "status", "code"),
    [
        ("br", b"x", 415, "unsupported_compression"),
        ("zstd", b"x", 415, "unsupported_compression"),
        ("gzip, gzip", b"x", 415, "unsupported_compression"),
        ("gzip", b"no gzip", 400, "invalid_payload"),
        ("gzip", gzip.compress(BODY, mtime=0)[:-9], 400, "invalid_payload"),
        ("deflate", b"\xff\xff", 400, "invalid_payload"),
        ("gzip", gzip.compress(b" " * 20_000_000, mtime=0), 413, "envelope_too_large"),
        ("deflate", zlib.compress(b" " * 20_000_000), 413, "envelope_too_large"),
    ],
)
async def test_bad_and_huge_compressed_bodies_are_refused(
    http: aiohttp.ClientSession, encoding: str, packed: bytes, status: int, code: str
) -> None:
    found, body = await push(http, packed, **{"Content-Encoding": encoding})
    assert (found, body["error"]["code"]) == (status, code)


async def test_a_body_that_announces_too_much_is_refused_before_it_is_sent(http: aiohttp.ClientSession) -> None:
    head = b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: localhost\r\nOJS-Version: 1.0\r\nExpect: 100-continue\r\n"
    head += b"Content-Length: 99999999\r\n\r\n"
    status, _, body = await raw(http, head)
    assert (status, body["error"]["code"]) == (413, "envelope_too_large")
    assert body["error"]["details"] == {"field": "the request body", "actual_bytes": 99_999_999, "max_bytes": 4_194_304}


async def test_a_body_without_an_announced_length_is_read_up_to_the_limit(http: aiohttp.ClientSession) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while sent < 1_000_000_000:
            sent += 65_536
            yield b" " * 65_536

    try:
        status, body = await push(http, endless())
    except aiohttp.ClientOSError:  # the server's patience with the rest of the body is over
        pass
    else:
        assert (status, body["error"]["code"]) == (413, "envelope_too_large")
    assert sent < 500_000_000


async def test_a_client_that_waits_for_leave_to_send_gets_it(http: aiohttp.ClientSession) -> None:
    async with http.post("/ojs/v1/jobs", data=BODY, headers=JSON, expect100=True) as answer:
        assert answer.status == 201


# Failures


async def test_store_trouble_is_503_with_a_time_to_come_back(http: aiohttp.ClientSession, store: FakeStore) -> None:
    store.failure = unavailable_store()
    async with http.post("/ojs/v1/jobs", json=JOB) as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (503, "3")
        error = (await answer.json(content_type=None))["error"]
        assert (error["code"], error["retryable"]) == ("backend_unavailable", True)


@pytest.mark.parametrize("bug", [ValueError("a secret"), ConnectionError("a secret"), TimeoutError("a secret")])
async def test_a_bug_is_500_with_its_traceback_in_the_log_only(
    http: aiohttp.ClientSession, store: FakeStore, bug: Exception
) -> None:
    store.failure = bug
    with structlog.testing.capture_logs() as logs:
        async with http.post("/ojs/v1/jobs", json=JOB, headers={"X-Request-Id": "mine"}) as answer:
            assert answer.status == 500
            assert "secret" not in await answer.text()
    (entry,) = [entry for entry in logs if entry["log_level"] == "error"]
    assert (entry["request_id"], entry["exc_info"]) == ("mine", True)


async def test_a_client_that_leaves_in_the_middle_of_its_body_is_no_error(http: aiohttp.ClientSession) -> None:
    base = urlsplit(str(http._base_url))
    with structlog.testing.capture_logs() as logs:
        _, writer = await asyncio.open_connection(base.hostname, base.port)
        writer.write(
            b"POST /ojs/v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        async with http.get("/healthz") as answer:
            assert answer.status == 200
    assert [entry for entry in logs if entry["log_level"] == "error"] == []
