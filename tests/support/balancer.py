"""What TCP load balancers send ahead of a client's bytes: headers of the PROXY protocol, made as its text says."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

SIGNATURE: Final = bytes.fromhex("0d0a0d0a000d0a515549540a")
LOCAL, PROXY = 0x20, 0x21
"""Version 2 with its command."""
UNSPECIFIED, TCP4, UDP4, TCP6, UNIX = 0x00, 0x11, 0x12, 0x21, 0x31


def text(source: str, target: str = "10.0.0.1", port: int = 51234) -> bytes:
    """Return a header of version 1."""
    version = ip_address(source).version
    return f"PROXY TCP{version} {source} {target if version == 4 else '2001:db8::1'} {port} 443\r\n".encode()


def fixed(command: int, family: int, length: int) -> bytes:
    """Return the fixed part of a header of version 2."""
    return SIGNATURE + struct.pack("!BBH", command, family, length)


def binary(source: str, tlvs: bytes = b"", command: int = PROXY) -> bytes:
    """Return a header of version 2 for TCP."""
    address = ip_address(source)
    target = IPv4Address("10.0.0.1") if address.version == 4 else IPv6Address("2001:db8::1")
    addresses = address.packed + target.packed + struct.pack("!HH", 51234, 443)
    return fixed(command, TCP4 if address.version == 4 else TCP6, len(addresses) + len(tlvs)) + addresses + tlvs


def local(tlvs: bytes = b"") -> bytes:
    """Return the header of a balancer's own connections, as for health checks."""
    return fixed(LOCAL, UNSPECIFIED, len(tlvs)) + tlvs


def tlv(kind: int, value: bytes) -> bytes:
    """Return one of the values that may follow the addresses."""
    return struct.pack("!BH", kind, len(value)) + value
