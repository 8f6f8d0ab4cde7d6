"""NATS behind TLS (`tls://…`): who trusts its certificate works, who doesn't is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from ojs_api import jobs as contract
from ojs_nats import App, _nats
from ojs_nats._operations import Request
from ojs_nats._timings import NatsTimings
from ojs_nats.errors import UnavailableError
from ojs_nats.jobs import JobRequest
from support.nats import NatsServer
from support.system import System, environment

ABOUT = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "nats for a test")])


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that nobody has signed but itself; its key is beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(ABOUT, ABOUT, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("certificate") / "certificate.pem"
    file.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    text = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file.with_suffix(".key").write_bytes(text)
    return file


@pytest.fixture(scope="module")
def url(certificate: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    files = f'cert_file: "{certificate}", key_file: "{certificate.with_suffix(".key")}"'
    with NatsServer(tmp_path_factory.mktemp("nats"), more=f"tls {{ {files} }}") as server:
        yield server.url.replace("nats://", "tls://")


async def test_who_trusts_the_certificate_works(
    url: str, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    trusting = environment(SSL_CERT_FILE=str(certificate))
    with System.started(tmp_path, "--together", "--nats", url, env=trusting) as system:
        async with App(url) as app:
            handle = await app.client.push(JobRequest[None]("over.tls", (1,)))
        assert system.job(handle.id)["state"] == "available"


async def test_a_client_that_does_not_trust_it_is_told(url: str) -> None:
    transport = _nats.NatsTransport(url, retry_for_s=0.0, timings=NatsTimings(give_up_s=2.0))
    with pytest.raises(UnavailableError, match="certificate verify failed"):
        await transport.send(Request(contract.GET, {"job_id": "any"}))
    await transport.close()
