"""What there is to know of hosts, ports and addresses beyond what the standard library says."""

from __future__ import annotations

import ipaddress
from functools import lru_cache
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
