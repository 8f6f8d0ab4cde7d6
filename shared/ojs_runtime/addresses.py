"""What there is to know of hosts, ports and addresses beyond what the standard library says."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address
from typing import Final

DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
"""What an origin or an authority leaves out."""


@lru_cache(maxsize=256)
def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on `host`, or is at this address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


@lru_cache(maxsize=1_024)
def read_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return an address, as `plain` has it; None for anything else."""
    try:
        return plain(ipaddress.ip_address(text))
    except ValueError:
        return None


def plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return an address of IPv4 that is written as one of IPv6 as itself, and any other as it is."""
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
