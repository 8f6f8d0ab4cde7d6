"""TLS of a client: the servers that it trusts, and the certificate that it shows."""

from __future__ import annotations

import msgspec

__all__ = ["Tls"]


class Tls(msgspec.Struct, frozen=True, omit_defaults=True):
    """Certificate files for `https://` addresses, in PEM. They are read again when they change.

    Args:
        ca_file: The CAs to trust in place of the system's. "" means the system's.
        cert_file: The client's certificate, for servers that ask for one. "" means none.
        key_file: The key of that certificate. "" means that `cert_file` has it, too.

    Example:
        ```python
        app = App("https://jobs.example.org", tls=Tls(ca_file="ca.pem"))
        ```
    """

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
