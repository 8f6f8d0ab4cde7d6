"""Who a client is by the certificate that it shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

_SHORT: Final = {
    "commonName": "CN",
    "countryName": "C",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
}
"""Names of a subject's parts as RFC 4514 has them."""


class ClientCertificate(NamedTuple):
    """Who a client is by the certificate that it showed, which was held to `client_ca`."""

    subject: str
    """As in `CN=worker-7,O=Example`."""
    names: tuple[str, ...]
    """The alternative names, as in `DNS:worker-7.example.org` and `URI:spiffe://example.org/worker`."""


def client_certificate(shown: Mapping[str, Any] | None) -> ClientCertificate | None:
    """Return what `SSLSocket.getpeercert` has found, None for a client without a certificate."""
    if not shown:
        return None
    parts = [f"{_SHORT.get(kind, kind)}={value}" for part in reversed(shown.get("subject", ())) for kind, value in part]
    names = tuple(f"{kind}:{value}" for kind, value in shown.get("subjectAltName", ()))
    return ClientCertificate(",".join(parts), names)
