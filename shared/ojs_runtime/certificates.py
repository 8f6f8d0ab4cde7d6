"""The certificate of a TLS server, read again when its files change (docs/adr/031)."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
import stat
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import ClassVar, NamedTuple

import structlog
from cryptography import x509

from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.problems import StartupProblem
from ojs_engine.telemetry import metrics
from ojs_engine.telemetry.logs import SeldomLog
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)


class CertificateTimings(Timings, frozen=True, kw_only=True):
    """How often a certificate's files are read, and when its end is warned of."""

    look_s: float = 2.0
    """Between two reads of the files."""
    soon_s: float = 14 * 86_400.0
    """A certificate that ends within this time is warned of."""
    remind_s: float = 86_400.0
    """Between two warnings."""
    order: ClassVar[Order] = (
        ("look_s", "remind_s", "warnings would be fewer than it says"),
        ("remind_s", "soon_s", "there might be no warning ahead of the end"),
    )


class TlsFiles(NamedTuple):
    """Where a server's certificate and its key are, and the CA that clients' certificates are held to, in PEM."""

    certificate: Path
    key: Path
    client_ca: Path | None = None


class _Unusable(Exception):
    """Why the files can't be used, in a sentence with the remedy."""


class _Read(NamedTuple):
    context: ssl.SSLContext
    begins: datetime
    ends: datetime


class Certificates:
    """What new connections are made with. `now` is Unix time in seconds.

    New files count for connections that begin after they were read; those that are open go on. Files that can't be used are
    told of, and leave what was read before.
    """

    def __init__(
        self, files: TlsFiles, now: Callable[[], float] = time.time, timings: CertificateTimings = CertificateTimings()
    ) -> None:
        """Read the files. Raises StartupProblem."""
        self._timings = timings
        self._files = files
        self._now = now
        self._reminder = SeldomLog(self._timings.remind_s)
        self._seen = _contents(files)
        self._unusable = b""
        """The contents that could not be used when they were last looked at."""
        self._told = b""
        """Those of them that were told of."""
        try:
            self._read = _read(files)
        except _Unusable as problem:
            raise StartupProblem(str(problem)) from None
        self._task: asyncio.Task[None] | None = None
        if _is_readable_by_all(files.key):
            log.warning("everybody on this machine can read the key: chmod 600", file=str(files.key))
        self._tell()

    @property
    def context(self) -> ssl.SSLContext:
        """For the next connection."""
        return self._read.context

    def start(self) -> None:
        """Look at the files now and then."""
        self._task = start_loop("certificates", self.look, every_s=self._timings.look_s)

    async def stop(self) -> None:
        await stop_loop(self._task)

    async def look(self) -> None:
        """Take up files that have changed."""
        contents = await asyncio.to_thread(_contents, self._files)
        if contents == self._seen:
            self._unusable = b""
            self._tell()
            return
        try:
            self._read = await asyncio.to_thread(_read, self._files)
        except _Unusable as problem:
            # Certificate and key are two files: between the one and the other they don't fit. So they have a second look.
            if contents == self._unusable != self._told:
                self._told = contents
                log.warning("the new certificate can't be used; the one of before goes on", reason=str(problem))
            self._unusable = contents
            return
        self._seen = contents
        self._told = self._unusable = b""
        self._reminder = SeldomLog(self._timings.remind_s)
        log.info("a new certificate is in use", file=str(self._files.certificate), ends=self._read.ends.isoformat())
        self._tell()

    def _tell(self) -> None:
        """Show when the certificate ends, and warn of one that is not valid, or not for long."""
        begins, ends, now = self._read.begins.timestamp(), self._read.ends.timestamp(), self._now()
        metrics.CERTIFICATE_ENDS.set(ends)
        if begins <= now < ends - self._timings.soon_s or not self._reminder.due():
            return
        valid = {"begins": self._read.begins.isoformat(), "ends": self._read.ends.isoformat()}
        shown = {"file": str(self._files.certificate), **valid}
        if now >= ends:
            log.warning("the certificate has expired: clients refuse it; put a new one in its place", **shown)
        elif now < begins:
            log.warning("the certificate isn't valid yet: clients refuse it; see that this machine's clock is right", **shown)
        else:
            log.warning("the certificate ends soon: put a new one in its place", **shown)


def _contents(files: TlsFiles) -> bytes:
    """Return what tells whether one of the files has changed; a file that can't be read counts as an empty one."""
    digest = hashlib.sha256()
    for file in files:
        if file is not None:
            try:
                content = file.read_bytes()
            except OSError:
                content = b""
            digest.update(hashlib.sha256(content).digest())
    return digest.digest()


def _read(files: TlsFiles) -> _Read:
    """Raises _Unusable."""
    leaf = _certificates("tls_cert", files.certificate)[0]
    _bytes("tls_key", files.key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(files.certificate, files.key, _no_passphrase)
    except (ssl.SSLError, OSError) as error:
        if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
            raise _Unusable(
                f"tls_key {files.key} isn't that of the certificate in {files.certificate}: name the two that belong together"
            ) from None
        raise _Unusable(f"tls_key {files.key} holds no private key in PEM that can be read: name the certificate's") from None
    if files.client_ca is not None:
        _certificates("client_ca", files.client_ca)
        context.load_verify_locations(files.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return _Read(context, leaf.not_valid_before_utc, leaf.not_valid_after_utc)


def _certificates(name: str, file: Path) -> Sequence[x509.Certificate]:
    """Return those in a file, at least one. Raises _Unusable."""
    try:
        return x509.load_pem_x509_certificates(_bytes(name, file))
    except ValueError:
        raise _Unusable(f"{name} {file} holds no certificate in PEM that can be read: name one that does") from None


def _bytes(name: str, file: Path) -> bytes:
    """Raises _Unusable."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise _Unusable(f"{name} {file} can't be read ({error.strerror}): correct the path, or its permissions") from None


def _no_passphrase() -> str:
    """Refuse a key that is encrypted; without this, OpenSSL would ask at the terminal."""
    raise _Unusable("tls_key is encrypted, and nobody is there to give its passphrase: name a key without one")


def _is_readable_by_all(key: Path) -> bool:
    try:
        return bool(key.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False
