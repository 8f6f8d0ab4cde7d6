"""What the doctor says of TLS."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ojs_command.client.context_file import Target
from ojs_command.client.doctor.tls import check_tls
from ojs_nats.tls import Tls
from ojs_runtime.certificates import Certificates, TlsFiles
from support.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
async def url(authority: Authority) -> AsyncIterator[str]:
    """Something that shows a certificate of 90 days."""
    context = Certificates(TlsFiles(*authority.server())).context
    server = await asyncio.get_running_loop().create_server(asyncio.Protocol, "127.0.0.1", 0, ssl=context)
    yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


def target(url: str, files: Tls = Tls()) -> Target:  # noqa: B008  # it is frozen
    return Target(url, {}, "--server", files)


@pytest.mark.parametrize(("days", "status"), [(0, "ok"), (75, "ok"), (77, "warning")])
async def test_a_certificate_that_ends_within_two_weeks_is_to_be_known(
    url: str, authority: Authority, days: float, status: str
) -> None:
    now = datetime.now(UTC)
    [found] = await check_tls(target(url, Tls(ca_file=str(authority.file))), now + timedelta(days=days))
    assert found.status == status
    assert f"the certificate is valid until {now + timedelta(days=90):%Y-%m}" in found.found


async def test_a_key_that_everybody_can_read_is_to_be_known(url: str, authority: Authority) -> None:
    pair = authority.client("me")
    files = Tls(ca_file=str(authority.file), cert_file=str(pair.certificate), key_file=str(pair.key))
    pair.key.chmod(0o644)
    key, certificate = await check_tls(target(url, files), datetime.now(UTC))
    assert (key.status, certificate.status) == ("warning", "ok")
    assert key.remedy.endswith(f"chmod 600 {pair.key}")
    pair.key.chmod(0o640)
    [certificate] = await check_tls(target(url, files), datetime.now(UTC))


@pytest.mark.parametrize(
    ("url", "statuses"),
    [("http://127.0.0.1:8080", []), ("nats://jobs.example.org", []), ("http://jobs.example.org", ["warning"])],
)
async def test_requests_without_tls_to_another_machine_are_to_be_known(url: str, statuses: list[str]) -> None:
    assert [finding.status for finding in await check_tls(target(url), datetime.now(UTC))] == statuses
