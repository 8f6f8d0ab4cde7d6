from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_features.webhooks.addresses import allowed
from support.tables import each

NEVER = [
    "169.254.169.254",
    "169.254.170.2",
    "0.0.0.0",
    "0.1.2.3",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "100.100.100.200",
    "100.96.0.96",
    "168.63.129.16",
    "192.0.0.192",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "ff02::1",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd20:ce::254",
    "fd00:42::42",
]
PRIVATE = [
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "192.0.0.9",
    "192.0.2.1",
    "198.18.0.1",
    "::1",
    "fd00::1",
    "fec0::1",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "100::1",
    "64:ff9b:1::5db8:d822",
    "4000::1",
]
PUBLIC = ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "2a00:1450:4001:80b::200e"]
METADATA = int(ipaddress.IPv4Address("169.254.169.254"))
LOOPBACK = int(ipaddress.IPv4Address("127.0.0.1"))
ONES = 0xFFFF_FFFF


def forms(inside: int) -> dict[str, str]:
    """Return an IPv4 address in each IPv6 address that may stand for it."""
    prefixes = {
        "compatible": "::",
        "mapped": "::ffff:0:0",
        "translated": "::ffff:0:0:0",
        "NAT64": "64:ff9b::",
        "local NAT64": "64:ff9b:1::",
        "local NAT64 of a longer prefix": "64:ff9b:1:8::",
        "ISATAP": "2a00:1450::5efe:0:0",
        "universal ISATAP": "2a00:1450::200:5efe:0:0",
    }
    numbers = {name: int(ipaddress.IPv6Address(prefix)) | inside for name, prefix in prefixes.items()}
    numbers["6to4"] = 0x2002 << 112 | inside << 80 | 1
    numbers["Teredo, server"] = 0x2001_0000 << 96 | inside << 64 | 0x5DB8_D822 ^ ONES
    numbers["Teredo, client"] = 0x2001_0000 << 96 | 0x5DB8_D822 << 64 | inside ^ ONES
    return {name: str(ipaddress.IPv6Address(number)) for name, number in numbers.items()}


@each("address", [*NEVER, *PRIVATE])
def test_nothing_is_sent_to_an_address_that_is_not_public(address: str) -> None:
    assert not allowed(address, private=False)


@pytest.mark.parametrize("address", PUBLIC)
@pytest.mark.parametrize("private", [True, False])
def test_public_addresses_are_targets(address: str, private: bool) -> None:
    assert allowed(address, private=private)


@each("address", PRIVATE)
def test_a_setting_allows_private_networks(address: str) -> None:
    assert allowed(address, private=True)


@each("address", NEVER)
def test_no_setting_allows_link_local_and_metadata_addresses(address: str) -> None:
    assert not allowed(address, private=True)


@each("form", forms(METADATA).values(), ids=forms(METADATA))
@each("private", [True, False])
def test_an_ipv6_address_is_no_way_to_the_metadata_of_a_cloud(form: str, private: bool) -> None:
    assert not allowed(form, private=private)


@each("form", forms(LOOPBACK).values(), ids=forms(LOOPBACK))
def test_an_ipv6_address_is_no_way_to_loopback(form: str) -> None:
    assert not allowed(form, private=False)


@pytest.mark.parametrize("form", ["mapped", "NAT64", "6to4"])
def test_an_ipv6_address_that_routers_translate_is_public_where_the_ipv4_address_is(form: str) -> None:
    assert allowed(forms(int(ipaddress.IPv4Address("93.184.216.34")))[form], private=False)


@given(st.ip_addresses())
def test_what_is_public_is_allowed_with_private_networks_too(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    assert allowed(str(address), private=True) or not allowed(str(address), private=False)
