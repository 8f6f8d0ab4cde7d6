"""TLS with a server: whether there is any, how long its certificate is valid, and who can read this machine's key."""

from __future__ import annotations

import asyncio
import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ojs_command.client.context_file import Target
from ojs_command.client.doctor.findings import DoctorTimings, Finding, ok, warning
from ojs_nats._tls import Trust
from ojs_runtime.addresses import is_loopback

_SOON: Final = timedelta(days=14)


async def check_tls(target: Target, now: datetime, timings: DoctorTimings = DoctorTimings()) -> list[Finding]:
    """Nothing for a server without TLS that only this machine reaches, and for NATS."""
    parts = urlsplit(target.url)
    if target.tls is None:
        if parts.scheme != "http" or is_loopback(parts.hostname or ""):
            return []
        return [
            warning(
                "tls",
                f"requests to {target.shown} go without TLS",
                "whoever is on the way can read and change jobs, and what authenticates clients",
                "give the gateway a certificate (docs/tls.md), or ask it through a proxy that has one",
            )
        ]
    file = Path(target.tls.key_file or target.tls.cert_file)
    return [*_key(file), await _certificate(target, now, timings.handshake_s)]


def _key(file: Path) -> list[Finding]:
    if file == Path() or not file.stat().st_mode & stat.S_IROTH:
        return []
    remedy = f"let nobody but its owner read it: chmod 600 {file}"
    return [warning("tls", f"everybody on this machine can read the key {file}", "they can pose as this client", remedy)]


async def _certificate(target: Target, now: datetime, timeout_s: float) -> Finding:
    parts = urlsplit(target.url)
    try:
        async with asyncio.timeout(timeout_s):
            _, writer = await asyncio.open_connection(
                parts.hostname, parts.port or 443, ssl=Trust(target.tls).context(), server_hostname=parts.hostname
            )
    except (OSError, TimeoutError) as error:
        return warning("tls", f"could not be checked: {error}", "it may be well or not", "ask again")
    shown = writer.get_extra_info("peercert")
    version = writer.get_extra_info("ssl_object").version()
    writer.transport.abort()
    ends = datetime.fromtimestamp(ssl.cert_time_to_seconds(shown["notAfter"]), UTC)
    return judged(ends, now, f"{version}, the certificate is valid until {ends:%Y-%m-%d}")


def judged(ends: datetime, now: datetime, said: str) -> Finding:
    """Whether a certificate is valid for long enough."""
    if ends - now >= _SOON:
        return ok("tls", said)
    return warning(
        "tls",
        said,
        "from then on clients refuse the server",
        "put a new certificate in its place: the server reads it again; let ACME or your CA's tool renew it",
    )
