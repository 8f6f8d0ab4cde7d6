"""Certificates for tests, of a CA of their own."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import trustme


class Pair(NamedTuple):
    """A certificate and its key."""

    certificate: Path
    key: Path

    def take(self, other: Pair) -> None:
        """Put another pair into these files, as a renewal does: one file after the other."""
        for own, new in zip(self, other, strict=True):
            beside = own.with_suffix(".new")
            beside.write_bytes(new.read_bytes())
            beside.replace(own)


class Authority:
    """A CA; `file` is what clients trust."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._ca = trustme.CA(organization_name=name)
        self.file = folder / f"{name}.pem"
        self._ca.cert_pem.write_to_path(str(self.file))

    def server(self, name: str = "server", *, days: float = 90) -> Pair:
        """For 127.0.0.1 and localhost, from a day ago, or before, until in so many days."""
        return self._issued(name, "127.0.0.1", "localhost", common_name=None, days=days)

    def client(self, name: str) -> Pair:
        return self._issued(name, f"{name}.example.org", common_name=name, days=90)

    def _issued(self, name: str, *identities: str, common_name: str | None, days: float) -> Pair:
        now = datetime.now(UTC)
        begins = now - timedelta(days=1 if days > 0 else 1 - days)
        made = self._ca.issue_cert(
            *identities, common_name=common_name, not_before=begins, not_after=now + timedelta(days=days)
        )
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        made.private_key_pem.write_to_path(str(pair.key))
        pair.key.chmod(0o600)
        pair.certificate.write_bytes(b"".join(each.bytes() for each in made.cert_chain_pems))
        return pair

    def trusting(self, client: Pair | None = None) -> ssl.SSLContext:
        """What a client connects with that trusts this CA."""
        context = ssl.create_default_context(cafile=str(self.file))
        if client is not None:
            context.load_cert_chain(*client)
        return context
