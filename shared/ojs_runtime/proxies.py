"""Where a request comes from, as far as proxies in front are believed (docs/proxies.md, docs/adr/031)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from ipaddress import ip_network
from typing import Final, Literal, NamedTuple

from multidict import CIMultiDictProxy, istr

from ojs_runtime.addresses import read_address

ForwardedBy = Literal["x-forwarded", "forwarded"]
"""The headers that proxies are believed by: `X-Forwarded-For`, `-Proto` and `-Host`, or `Forwarded` (RFC 7239)."""

_FOR: Final = istr("X-Forwarded-For")
_PROTO: Final = istr("X-Forwarded-Proto")
_FORWARDED_HOST: Final = istr("X-Forwarded-Host")
_FORWARDED: Final = istr("Forwarded")
_SCHEMES: Final = {"https": True, "wss": True, "http": False, "ws": False}
"""Whether each speaks TLS. Some proxies write those of WebSockets."""
_HOST: Final = re.compile(r"([A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?", re.ASCII)
_PORT: Final = re.compile(r":[0-9]{1,5}", re.ASCII)
_QUOTED: Final = r'"((?:[^"\\]|\\.)*)"'
_PAIR: Final = re.compile(rf"\s*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:{_QUOTED}|([^\s;,\"]*))\s*(;|,|$)", re.ASCII)
_ESCAPED: Final = re.compile(r"\\(.)")
_MOST_HOPS: Final = 32
"""Proxies that are followed, and entries of a header that are read for it."""


class Visit(NamedTuple):
    """The client's address, whether it speaks TLS, and the host that it has asked for."""

    address: str
    secure: bool
    host: str | None


class Proxies:
    """The proxies that are believed, by their addresses or networks; without any, headers mean nothing.

    Each trusted proxy has written the last entry that was there when it passed the request on. So entries are read from
    the right, up to the first address that isn't trusted: that is the client's. An entry that can't be read ends the
    walk, and the client is the proxy that has written it.
    """

    def __init__(self, networks: Iterable[str], by: ForwardedBy = "x-forwarded") -> None:
        self._networks = [ip_network(network, strict=False) for network in networks]
        self._by = by
        self.trusts = lru_cache(maxsize=1_024)(self._trusts)

    def __bool__(self) -> bool:
        return bool(self._networks)

    def _trusts(self, address: str) -> bool:
        """Return whether what comes from this address is believed."""
        found = read_address(address)
        return found is not None and any(found in network for network in self._networks)

    def visit(self, peer: str, *, secure: bool, host: str | None, headers: CIMultiDictProxy[str]) -> Visit:
        """Return the client of a request that came from a trusted `peer`; what headers don't say is as it came."""
        if self._by == "forwarded":
            return self._by_forwarded(Visit(peer, secure, host), headers)
        return self._by_x_forwarded(Visit(peer, secure, host), headers)

    def _by_x_forwarded(self, came: Visit, headers: CIMultiDictProxy[str]) -> Visit:
        client, hops = came.address, 0
        for entry in _from_the_right(headers, _FOR):
            hops += 1
            address = _address(entry)
            if address is None:
                break
            client = address
            if not self.trusts(address):
                break
        scheme = _at(list(_from_the_right(headers, _PROTO)), hops)
        host = _at(list(_from_the_right(headers, _FORWARDED_HOST)), hops)
        return Visit(client, _SCHEMES.get(scheme.lower(), came.secure), host if _is_host(host) else came.host)

    def _by_forwarded(self, came: Visit, headers: CIMultiDictProxy[str]) -> Visit:
        client, secure, host = came
        for element in _elements(headers):
            secure = _SCHEMES.get(element.get("proto", "").lower(), secure)
            if _is_host(said := element.get("host", "")):
                host = said
            address = _address(element.get("for", ""))
            if address is None:
                break
            client = address
            if not self.trusts(address):
                break
        return Visit(client, secure, host)


def _from_the_right(headers: CIMultiDictProxy[str], name: istr) -> Iterator[str]:
    """Yield the entries of all headers of a name, the last first."""
    values = ",".join(headers.getall(name, ()))
    if values:
        yield from (entry.strip() for entry in reversed(values.rsplit(",", _MOST_HOPS)[-_MOST_HOPS:]))


def _at(entries: Sequence[str], hops: int) -> str:
    """Return what the outermost of so many proxies has written; the outermost of all where their number isn't known."""
    if not entries:
        return ""
    return entries[min(hops or len(entries), len(entries)) - 1]


def _elements(headers: CIMultiDictProxy[str]) -> Iterator[dict[str, str]]:
    """Yield the elements of all `Forwarded`, the last first, up to a header that is malformed."""
    for value in reversed(headers.getall(_FORWARDED, ())):
        found = _read_forwarded(value)
        if found is None:
            return
        yield from reversed(found[-_MOST_HOPS:])


def _read_forwarded(value: str) -> list[dict[str, str]] | None:
    """Return the elements of one `Forwarded`; None for what isn't one (RFC 7239 §4)."""
    elements: list[dict[str, str]] = [{}]
    at = 0
    while at < len(value):
        pair = _PAIR.match(value, at)
        if pair is None:
            return None
        name = pair[1].lower()
        if name in elements[-1]:
            return None
        elements[-1][name] = pair[3] if pair[2] is None else _ESCAPED.sub(r"\1", pair[2])
        if pair[4] == ",":
            elements.append({})
        at = pair.end()
    return elements if all(elements) else None


def _address(text: str) -> str | None:
    """Return the address of an entry without its port; None for `unknown`, a made-up name or anything else."""
    text = text.strip().strip('"')
    if text.startswith("["):
        text, closed, port = text[1:].partition("]")
        if not closed or (port and not _PORT.fullmatch(port)):
            return None
    elif text.count(":") == 1:
        text, _, _ = text.partition(":")
    found = read_address(text)
    return None if found is None else str(found)


def _is_host(text: str) -> bool:
    return _HOST.fullmatch(text) is not None
