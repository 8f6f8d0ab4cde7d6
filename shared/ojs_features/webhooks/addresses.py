"""The IP addresses that webhooks may be sent to (docs/adr/050).

The lists stand here, from IANA's registries of special-purpose addresses and of IPv6 address space (2026-11): those of
`ipaddress` differ between versions of Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

_Address = IPv4Address | IPv6Address

_NEVER: Final = (
    "0.0.0.0/8",  # this host
    "169.254.0.0/16",  # link-local, where most clouds keep credentials
    "224.0.0.0/4",  # multicast
    "240.0.0.0/4",  # reserved, and broadcast
    "100.96.0.96/32",  # metadata of Volcengine
    "100.100.100.200/32",  # metadata of Alibaba Cloud
    "168.63.129.16/32",  # the host of an Azure machine
    "192.0.0.192/32",  # metadata of Oracle Cloud, formerly
    "::/128",  # this host
    "fe80::/10",  # link-local
    "ff00::/8",  # multicast
    "fd00:42::42/128",  # metadata of Scaleway
    "fd00:ec2::/32",  # metadata, names and credentials of AWS
    "fd20:ce::254/128",  # metadata of Google Cloud
)
"""Networks that nothing is ever sent to."""
_PRIVATE: Final = (
    "10.0.0.0/8",
    "100.64.0.0/10",  # shared by the customers of a provider
    "127.0.0.0/8",
    "172.16.0.0/12",
    "192.0.0.0/24",  # protocol assignments
    "192.0.2.0/24",  # documentation
    "192.88.99.0/24",  # relays of 6to4
    "192.168.0.0/16",
    "198.18.0.0/15",  # benchmarks
    "198.51.100.0/24",  # documentation
    "203.0.113.0/24",  # documentation
    "2001::/23",  # protocol assignments
    "2001:db8::/32",  # documentation
    "3fff::/20",  # documentation
)
"""Networks that are not public, with every IPv6 address outside `_GLOBAL`."""
_GLOBAL: Final = IPv6Network("2000::/3")
_LAST_BITS: Final = tuple(
    map(
        IPv6Network,
        (
            "::/96",  # IPv4-compatible
            "::ffff:0:0/96",  # IPv4-mapped
            "::ffff:0:0:0/96",  # IPv4-translated
            "64:ff9b::/96",  # NAT64
            "64:ff9b:1::/48",  # NAT64 of one network
        ),
    )
)
"""Networks whose addresses end with an IPv4 address."""
_PUBLIC_AS_INSIDE: Final = tuple(map(IPv6Network, ("::ffff:0:0/96", "64:ff9b::/96")))
"""Networks of them that are public where the IPv4 address is."""
_6TO4: Final = IPv6Network("2002::/16")
_TEREDO: Final = IPv6Network("2001::/32")
_ISATAP: Final = 0x5EFE
_ISATAP_UNIVERSAL: Final = 0x0200_0000
_32_BITS: Final = 0xFFFF_FFFF


def _networks(texts: tuple[str, ...]) -> tuple[tuple[IPv4Network, ...], tuple[IPv6Network, ...]]:
    return (
        tuple(IPv4Network(text) for text in texts if ":" not in text),
        tuple(IPv6Network(text) for text in texts if ":" in text),
    )


_NEVER_4, _NEVER_6 = _networks(_NEVER)
_PRIVATE_4, _PRIVATE_6 = _networks(_PRIVATE)


def allowed(address: str, *, private: bool) -> bool:
    """Return whether a webhook may be sent to an IP address; `private` allows loopback and private networks.

    An IPv6 address with an IPv4 address inside has to be allowed as both. Link-local addresses and those
    where clouds keep metadata and credentials are never allowed.
    """
    sent_to = ip_address(address.partition("%")[0])
    if isinstance(sent_to, IPv4Address):
        return _allowed_4(sent_to, private=private)
    if any(sent_to in network for network in _NEVER_6):
        return False
    public = any(sent_to in network for network in _PUBLIC_AS_INSIDE) or (
        sent_to in _GLOBAL and not any(sent_to in network for network in _PRIVATE_6)
    )
    if not (private or public):
        return False
    return all(_allowed_4(inside, private=private) for inside in _inside(sent_to))


def _allowed_4(address: IPv4Address, *, private: bool) -> bool:
    if any(address in network for network in _NEVER_4):
        return False
    return private or not any(address in network for network in _PRIVATE_4)


def _inside(address: IPv6Address) -> Iterator[IPv4Address]:
    """Yield each IPv4 address that an IPv6 address may stand for."""
    number = int(address)
    if number == 1:  # loopback, which would be 0.0.0.1
        return
    if any(address in network for network in _LAST_BITS):
        yield IPv4Address(number & _32_BITS)
    if address in _6TO4:
        yield IPv4Address(number >> 80 & _32_BITS)
    if address in _TEREDO:
        yield IPv4Address(number >> 64 & _32_BITS)
        yield IPv4Address(~number & _32_BITS)
    if (number >> 32 & _32_BITS) & ~_ISATAP_UNIVERSAL == _ISATAP:
        yield IPv4Address(number & _32_BITS)
