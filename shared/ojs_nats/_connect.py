"""The server's address, and the transport that leads to it."""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from ojs_link.address import masked
from ojs_nats._http import HttpTransport
from ojs_nats._importing import importing
from ojs_nats._nats_address import nats_address
from ojs_nats._transport import Transport
from ojs_nats.tls import Tls

_NATS: Final = ("nats://", "tls://")
DEFAULT_URL: Final = "http://127.0.0.1:8080"

stand_ins: Final[dict[str, Callable[[], Transport]]] = {}
"""The stand-ins for servers, by their addresses (`ojs_nats.testing`)."""


def url_of(url: str | None) -> str:
    """Return the address as given, else OJS_URL, else a server on this machine.

    Raises ValueError for another scheme, an http:// address that names no server, or options of a NATS address that
    there aren't.
    """
    found = url or os.environ.get("OJS_URL") or DEFAULT_URL
    if not found.startswith((*_NATS, "http://", "https://")):
        raise ValueError(f"a server is named by its http://, https://, nats:// or tls:// address, not {masked(found)!r}")
    if found.startswith(_NATS):
        nats_address(found)
    else:
        _check_http(found)
    return found


def _check_http(url: str) -> None:
    try:
        parts = urlsplit(url)
        named = parts.hostname and parts.port != 0 and not (parts.query or parts.fragment or re.search(r"\s", url))
    except ValueError:  # of a port, or a bracket
        named = False
    if not named:
        raise ValueError(f"a server's address is like http://host:8080, maybe with a path behind it, not {masked(url)!r}")


def authorized(headers: Mapping[str, str] | None, token: str | None) -> Mapping[str, str]:
    """Return headers with the key to show: `token`, else what they have, else OJS_AUTH_TOKEN, else OJS_API_KEY.

    There may be none. Raises ValueError for a key that no header can carry; the message doesn't hold the key.
    """
    found = dict(headers or {})
    named = any(name.lower() == "authorization" for name in found)
    shown = token or (None if named else os.environ.get("OJS_AUTH_TOKEN") or os.environ.get("OJS_API_KEY"))
    if shown:
        found = {name: value for name, value in found.items() if name.lower() != "authorization"}
        word = shown.strip()
        if not (word.isascii() and word.isprintable() and " " not in word):
            source = "token" if token else "OJS_AUTH_TOKEN" if os.environ.get("OJS_AUTH_TOKEN") else "OJS_API_KEY"
            raise ValueError(f"the key in {source} is not one word of plain characters: it may hold a line break or quotes")
        found["Authorization"] = f"Bearer {word}"
    return found


def transport(
    url: str,
    *,
    retry_for_s: float = 30.0,
    headers: Mapping[str, str] | None = None,
    tls: Tls | ssl.SSLContext | None = None,
) -> Transport:
    """The transport that the scheme of `url`, which `url_of` has checked, names. `tls` counts for https:// alone.

    Raises ValueError for files of TLS that can't be used.
    """
    if (made := stand_ins.get(url)) is not None:
        return made()
    if url.startswith(_NATS):
        with importing:  # nats-py, which others need not
            from ojs_nats._nats import NatsTransport  # noqa: PLC0415

        return NatsTransport(url, retry_for_s=retry_for_s, headers=headers)
    return HttpTransport(url, retry_for_s=retry_for_s, headers=headers, tls=tls)
