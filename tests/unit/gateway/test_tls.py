"""A gateway that speaks TLS (docs/adr/031)."""

from __future__ import annotations

import asyncio
import ssl
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import aiohttp
import pytest
import uuid6
from cryptography.hazmat.primitives import serialization
from structlog.testing import capture_logs

from ojs_engine.base.problems import StartupProblem
from ojs_engine.telemetry.metrics import CERTIFICATE_ENDS, REGISTRY
from ojs_runtime.certificates import Certificates, TlsFiles
from support.certificates import Authority, Pair
from support.fake_store import FakeStore
from support.waiting import eventually

Start = Callable[..., Awaitable[aiohttp.ClientSession]]
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
DAY_S = 86_400.0
NO_HANDSHAKES = [(b"\x00\x01", "no_tls"), (b"\x16 is no TLS", "other"), (b"\x16\x03\x01", "closed")]
EXPIRED = "the certificate has expired: clients refuse it; put a new one in its place"
SOON = "the certificate ends soon: put a new one in its place"
WHOLE = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def pair(authority: Authority) -> Pair:
    return authority.server()


@pytest.fixture
async def http(start: Start, pair: Pair) -> aiohttp.ClientSession:
    return await start(tls_cert=pair.certificate, tls_key=pair.key)


@asynccontextmanager
async def connected(http: aiohttp.ClientSession, context: ssl.SSLContext | None = None) -> AsyncIterator[Stream]:
    """A connection to the gateway of a client, by TLS with a context and else without."""
    base = http._base_url
    assert base is not None
    reader, writer = await asyncio.open_connection(base.host, base.port, ssl=context)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(OSError):  # the server may have closed it in its way
            await writer.wait_closed()


async def rest(stream: Stream) -> bytes:
    """What comes until the server closes, in whichever way."""
    found = b""
    with suppress(ConnectionError):
        async with asyncio.timeout(60):
            while part := await stream[0].read(4_096):
                found += part
    return found


async def answer(stream: Stream) -> bytes:
    """The status line of one answer."""
    stream[1].write(WHOLE)
    async with asyncio.timeout(60):
        return (await stream[0].readuntil(b"\r\n")).strip()


async def answered(http: aiohttp.ClientSession, context: ssl.SSLContext) -> bool:
    """Whether a new connection is made and answered."""
    async with connected(http, context) as stream:
        return await answer(stream) == b"HTTP/1.1 200 OK"


def failures(reason: str) -> float:
    return REGISTRY.get_sample_value("ojs_tls_handshakes_failed_total", {"reason": reason}) or 0.0


def open_now() -> float:
    return REGISTRY.get_sample_value("ojs_http_connections") or 0.0


def serial(stream: Stream) -> str:
    """That of the server's certificate."""
    return str(stream[1].get_extra_info("peercert")["serialNumber"])


async def test_requests_go_over_tls_and_http_1_is_agreed_on(http: aiohttp.ClientSession, authority: Authority) -> None:
    assert str(http._base_url).startswith("https://127.0.0.1:")
    async with http.get("/healthz", ssl=authority.trusting()) as response:
        assert response.status == 200
    context = authority.trusting()
    context.set_alpn_protocols(["h2", "http/1.1"])
    async with connected(http, context) as stream:
        agreed = stream[1].get_extra_info("ssl_object")
        assert (agreed.selected_alpn_protocol(), agreed.version()) == ("http/1.1", "TLSv1.3")
        assert await answer(stream) == b"HTTP/1.1 200 OK"


async def test_tls_1_2_is_the_oldest_that_is_spoken(http: aiohttp.ClientSession, authority: Authority) -> None:
    before = failures("version")
    context = authority.trusting()
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    context.set_ciphers("DEFAULT@SECLEVEL=0")  # else the client itself would refuse it
    with pytest.raises((ssl.SSLError, ConnectionError)):  # asyncio doesn't send the alert that says why
        await answered(http, context)
    await eventually(lambda: failures("version") == before + 1)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert await answered(http, context)


async def test_http_without_tls_is_refused_in_a_sentence(http: aiohttp.ClientSession) -> None:
    before = failures("plain_http")
    with capture_logs() as logs:
        for _ in range(3):
            async with connected(http) as stream:
                stream[1].write(WHOLE)
                refused = await rest(stream)
            assert refused.startswith(b"HTTP/1.1 400 Bad Request\r\n")
            assert b"this port speaks TLS alone: use https:// instead of http://" in refused
    assert failures("plain_http") == before + 3
    assert [line["reason"] for line in logs if line["event"] == "TLS handshakes fail"] == ["plain_http"]
    await eventually(lambda: open_now() == 0)


@pytest.mark.parametrize(
    ("sent", "reason"), [(b"\x00\x01", "no_tls"), (b"\x16 is no TLS", "other"), (b"\x16\x03\x01", "closed")]
)
async def test_what_is_no_handshake_is_closed(http: aiohttp.ClientSession, sent: bytes, reason: str) -> None:
    before = failures(reason)
    async with connected(http) as stream:
        stream[1].write(sent)
        stream[1].write_eof()
        await rest(stream)
    await eventually(lambda: failures(reason) == before + 1)
    await eventually(lambda: open_now() == 0)


async def test_a_look_whether_the_port_is_open_is_no_failure(http: aiohttp.ClientSession) -> None:
    def all_failures() -> float:
        found = REGISTRY.collect()
        samples = [sample for family in found if family.name == "ojs_tls_handshakes_failed" for sample in family.samples]
        return sum(sample.value for sample in samples)

    before = all_failures()
    async with connected(http):
        pass
    await eventually(lambda: open_now() == 0)
    assert all_failures() == before


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00"])
async def test_a_handshake_that_does_not_come_is_given_up(start: Start, pair: Pair, sent: bytes) -> None:
    http = await start(tls_cert=pair.certificate, tls_key=pair.key, header_s=0.2)
    before = failures("timeout")
    async with connected(http) as stream:
        stream[1].write(sent)
        await rest(stream)
    await eventually(lambda: failures("timeout") == before + 1)
    await eventually(lambda: open_now() == 0)


async def test_handshakes_count_as_connections(start: Start, pair: Pair, authority: Authority) -> None:
    http = await start(tls_cert=pair.certificate, tls_key=pair.key, max_connections=1)
    async with connected(http):
        await eventually(lambda: open_now() == 1)
        async with connected(http, authority.trusting()) as stream:
            refused = await rest(stream)
        assert refused.startswith(b"HTTP/1.1 503 ")
        assert b"as many connections as it takes" in refused
    await eventually(lambda: open_now() == 0)
    assert await answered(http, authority.trusting())


# Clients' certificates


async def test_with_a_client_ca_a_client_needs_a_certificate_of_it(
    start: Start, pair: Pair, authority: Authority, tmp_path: Path
) -> None:
    strange = Authority(tmp_path, "strange")
    http = await start(tls_cert=pair.certificate, tls_key=pair.key, client_ca=authority.file)
    before = failures("client_certificate")
    for client in (None, strange.client("worker-7")):
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):  # TLS 1.3 tells the client later
            await answered(http, authority.trusting(client))
    assert failures("client_certificate") == before + 2
    assert await answered(http, authority.trusting(authority.client("worker-7")))


async def test_a_request_knows_its_clients_certificate(
    start: Start, pair: Pair, authority: Authority, store: FakeStore
) -> None:
    http = await start(tls_cert=pair.certificate, tls_key=pair.key, client_ca=authority.file)
    store.failure = RuntimeError("a fault")
    trusting = authority.trusting(authority.client("worker-7"))
    with capture_logs() as logs:
        async with http.get(f"/ojs/v1/jobs/{uuid6.uuid7()}", ssl=trusting) as response:
            assert response.status == 500
    [line] = [line for line in logs if line["event"] == "request failed"]
    assert "CN=worker-7" in line["client_certificate"].split(",")


# New files


async def test_a_new_certificate_counts_for_new_connections(
    http: aiohttp.ClientSession, pair: Pair, authority: Authority
) -> None:
    async with connected(http, authority.trusting()) as old:
        pair.take(authority.server("renewed"))

        async def is_new() -> bool:
            async with connected(http, authority.trusting()) as stream:
                assert await answer(stream) == b"HTTP/1.1 200 OK"
                return serial(stream) != serial(old)

        await eventually(is_new)
        assert await answer(old) == b"HTTP/1.1 200 OK"


async def test_new_files_that_can_not_be_used_leave_the_old_ones_and_are_told_of_once(pair: Pair, authority: Authority) -> None:
    certificates = Certificates(TlsFiles(*pair))
    before = certificates.context
    renewed = authority.server("renewed")
    pair.certificate.write_bytes(renewed.certificate.read_bytes())
    with capture_logs() as logs:
        await certificates.look()
        assert logs == []  # the key may be on its way
        for _ in range(3):
            await certificates.look()
    [line] = logs
    assert line["event"] == "the new certificate can't be used; the one of before goes on"
    assert "isn't that of the certificate" in line["reason"]
    assert certificates.context is before
    with capture_logs() as logs:
        pair.key.write_bytes(renewed.key.read_bytes())
        await certificates.look()
    assert [line["event"] for line in logs] == ["a new certificate is in use"]
    assert certificates.context is not before


async def test_files_that_are_gone_for_a_while_change_nothing(pair: Pair) -> None:
    certificates = Certificates(TlsFiles(*pair))
    before = certificates.context
    content = pair.key.read_bytes()
    pair.key.unlink()
    await certificates.look()
    pair.key.write_bytes(content)
    await certificates.look()
    assert certificates.context is before


# At start


def test_files_that_can_not_be_used_keep_a_gateway_from_starting(authority: Authority, pair: Pair, tmp_path: Path) -> None:
    other = authority.server("other")
    empty = tmp_path / "empty"
    empty.touch()
    encrypted = tmp_path / "encrypted.key"
    encrypted.write_bytes(encrypted_key(pair))
    missing = tmp_path / "missing.pem"
    cases = {
        TlsFiles(missing, pair.key): f"tls_cert {missing} can't be read (No such file or directory): correct the path",
        TlsFiles(pair.certificate, missing): f"tls_key {missing} can't be read (No such file or directory): correct the path",
        TlsFiles(empty, pair.key): f"tls_cert {empty} holds no certificate in PEM",
        TlsFiles(pair.certificate, empty): f"tls_key {empty} holds no private key in PEM",
        TlsFiles(pair.certificate, other.key): f"tls_key {other.key} isn't that of the certificate in {pair.certificate}: name",
        TlsFiles(pair.certificate, encrypted): "tls_key is encrypted",
        TlsFiles(*pair, empty): f"client_ca {empty} holds no certificate in PEM",
    }
    for files, said in cases.items():
        with pytest.raises(StartupProblem) as refused:
            Certificates(files)
        assert str(refused.value).startswith(said)


def encrypted_key(pair: Pair) -> bytes:
    key = serialization.load_pem_private_key(pair.key.read_bytes(), None)
    hidden = serialization.BestAvailableEncryption(b"secret")
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, hidden)


@pytest.mark.parametrize(("days", "said"), [(-1, [EXPIRED]), (13, [SOON]), (15, [])])
def test_a_certificate_that_has_expired_or_is_about_to_is_warned_of(authority: Authority, days: float, said: list[str]) -> None:
    with capture_logs() as logs:
        Certificates(TlsFiles(*authority.server("aged", days=days)))
    assert [line["event"] for line in logs] == said
    assert abs(CERTIFICATE_ENDS._value.get() - time.time() - days * DAY_S) < DAY_S / 2


def test_a_certificate_of_the_future_is_warned_of(pair: Pair) -> None:
    with capture_logs() as logs:
        Certificates(TlsFiles(*pair), lambda: time.time() - 2 * DAY_S)
    assert [line["event"] for line in logs] == [
        "the certificate isn't valid yet: clients refuse it; see that this machine's clock is right"
    ]


def test_a_key_that_everybody_can_read_is_warned_of(pair: Pair) -> None:
    pair.key.chmod(0o644)
    with capture_logs() as logs:
        Certificates(TlsFiles(*pair))
    assert [line["event"] for line in logs] == ["everybody on this machine can read the key: chmod 600"]
