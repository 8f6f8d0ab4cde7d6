"""Addresses of NATS, read without nats-py: they are checked where they are written."""

from __future__ import annotations

from ojs_link.address import Address, read_address
from ojs_nats._names import namespace


def nats_address(url: str) -> Address:
    """Read the address of a client. Raises ValueError."""
    address = read_address(url)
    if address.namespace:
        namespace(address.namespace)
    return address
