"""Headers of proxies: the nearest trusted one is believed, and so from the right (docs/adr/031)."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy

from ojs_runtime.proxies import Proxies, Visit
from support.examples import examples
from support.tables import each

TRUSTED = ("10.0.0.0/8", "127.0.0.1", "2001:db8:aa::/48")
PEER = "10.0.0.1"
XFF, XFP, XFH = "X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host"


def visit(by: str, *headers: tuple[str, str], secure: bool = False) -> Visit:
    proxies = Proxies(TRUSTED, "forwarded" if by == "forwarded" else "x-forwarded")
    return proxies.visit(PEER, secure=secure, host="upstream:8080", headers=CIMultiDictProxy(CIMultiDict(headers)))


CLIENTS = [
    ("203.0.113.7", "203.0.113.7"),
    ("203.0.113.7, 10.2.3.4", "203.0.113.7"),
    ("1.1.1.1, 203.0.113.7, 10.2.3.4", "203.0.113.7"),  # the client has invented the first
    ("10.9.9.9", "10.9.9.9"),  # a client within the network of the proxies
    ("203.0.113.7:51234", "203.0.113.7"),
    ("[2001:db8::7]:51234", "2001:db8::7"),
    ("2001:db8::7", "2001:db8::7"),
    ("::ffff:203.0.113.7", "203.0.113.7"),
    ("203.0.113.7,10.2.3.4 ,  2001:db8:aa::1", "203.0.113.7"),
    ("", PEER),
    ("unknown", PEER),
    ("203.0.113.7, _secret, 10.2.3.4", "10.2.3.4"),  # nobody knows who asked the one that is known
    ("203.0.113.7, ", PEER),
    ("300.1.1.1", PEER),
    ("203.0.113.7; drop", PEER),
    ("[2001:db8::7", PEER),
    ("[2001:db8::7]x", PEER),
]


@each("sent, client", CLIENTS)
def test_a_client_is_the_last_address_that_is_no_trusted_proxys(sent: str, client: str) -> None:
    assert visit("x-forwarded", (XFF, sent)).address == client


def test_several_headers_are_one() -> None:
    assert visit("x-forwarded", (XFF, "1.1.1.1"), (XFF, "203.0.113.7"), (XFF, "10.2.3.4")).address == "203.0.113.7"


SCHEMES = [
    (None, "https", True),
    (None, "HTTPS", True),
    (None, "https, http", True),
    (None, "https,https", True),
    (None, "wss", True),
    (None, "http", False),
    (None, "ftp", False),
    (None, "", False),
    ("203.0.113.7", "https, http", False),  # one proxy is trusted, and it was asked by plain HTTP
    ("203.0.113.7, 10.2.3.4", "https, http", True),
    ("203.0.113.7, 10.2.3.4", "https", True),  # the outer one alone writes it
    ("203.0.113.7, 10.2.3.4", "https, http, http", False),
]


@each("clients, sent, secure", SCHEMES)
def test_a_scheme_is_the_outermost_trusted_proxys(clients: str | None, sent: str, secure: bool) -> None:
    headers = [(XFP, sent)] + ([] if clients is None else [(XFF, clients)])
    assert visit("x-forwarded", *headers).secure is secure


def test_a_scheme_that_nobody_names_is_that_of_the_connection() -> None:
    assert visit("x-forwarded", (XFF, "203.0.113.7"), secure=True).secure
    assert not visit("x-forwarded", (XFP, "http"), secure=True).secure


HOSTS = [
    ("jobs.example", "jobs.example"),
    ("jobs.example:8443", "jobs.example:8443"),
    ("[2001:db8::7]:8443", "[2001:db8::7]:8443"),
    ("jobs.example, inner", "jobs.example"),
    ("", "upstream:8080"),
    ("evil.example/x", "upstream:8080"),
    ("a b", "upstream:8080"),
]


@each("sent, host", HOSTS)
def test_a_host_is_the_one_that_the_client_has_asked_for(sent: str, host: str) -> None:
    assert visit("x-forwarded", (XFH, sent)).host == host


FORWARDED = [
    (["for=203.0.113.7;proto=https;host=jobs.example"], Visit("203.0.113.7", secure=True, host="jobs.example")),
    (["For=203.0.113.7; Proto=HTTPS"], Visit("203.0.113.7", secure=True, host="upstream:8080")),
    (['proto=https;for="[2001:db8::1]:123"'], Visit("2001:db8::1", secure=True, host="upstream:8080")),
    (
        ['for=1.1.1.1;proto=http;host=evil, for=203.0.113.7;proto=https;host=a, for="10.2.3.4:80";proto=http;host=b'],
        Visit("203.0.113.7", secure=True, host="a"),
    ),
    (["for=203.0.113.7;proto=https", "for=10.2.3.4"], Visit("203.0.113.7", secure=True, host="upstream:8080")),
    (["for=unknown;proto=https"], Visit(PEER, secure=True, host="upstream:8080")),
    (["for=203.0.113.7, for=_hidden;proto=https"], Visit(PEER, secure=True, host="upstream:8080")),
    (['for="203.0.113.7'], Visit(PEER, secure=False, host="upstream:8080")),
    (['for="1.1.1.1', "for=203.0.113.7;proto=https"], Visit("203.0.113.7", secure=True, host="upstream:8080")),
    (["for=1.1.1.1;for=203.0.113.7"], Visit(PEER, secure=False, host="upstream:8080")),
    (['for=203.0.113.7;host="jobs.example:8443"'], Visit("203.0.113.7", secure=False, host="jobs.example:8443")),
    (["nonsense"], Visit(PEER, secure=False, host="upstream:8080")),
    ([""], Visit(PEER, secure=False, host="upstream:8080")),
]


@each("sent, expected", FORWARDED)
def test_forwarded_is_read_as_its_rfc_says(sent: list[str], expected: Visit) -> None:
    assert visit("forwarded", *[("Forwarded", value) for value in sent]) == expected


def test_the_other_kind_of_headers_means_nothing() -> None:
    both = [("Forwarded", "for=1.1.1.1;proto=https"), (XFF, "203.0.113.7"), (XFP, "http")]
    assert visit("x-forwarded", *both) == Visit("203.0.113.7", secure=False, host="upstream:8080")
    assert visit("forwarded", *both) == Visit("1.1.1.1", secure=True, host="upstream:8080")


def test_a_proxy_is_trusted_by_its_address_however_it_is_written() -> None:
    proxies = Proxies(TRUSTED)
    trusted = ("10.255.0.1", "127.0.0.1", "::ffff:10.0.0.1", "2001:db8:aa:1::2")
    others = ("11.0.0.1", "::1", "", "10.0.0.1x")
    assert [address for address in (*trusted, *others) if proxies.trusts(address)] == list(trusted)
    assert proxies
    assert not Proxies(())


ADDRESSES = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6), st.ip_addresses(network="10.0.0.0/8")).map(str)


@given(st.lists(ADDRESSES, min_size=1, max_size=6), st.text(max_size=40))
@settings(max_examples=examples(100), deadline=None)
def test_nothing_that_a_client_invents_hides_it(hops: list[str], invented: str) -> None:
    """Proxies write behind what they got. Up to the first that isn't trusted, all of it is theirs."""
    networks = [ip_network(network) for network in TRUSTED]
    known = [one for one in hops if not any(ip_address(one) in network for network in networks)]
    assume(known and not known[-1].startswith("::ffff:"))
    line = ",".join([invented, *hops]).encode("latin-1", "replace").decode("latin-1")
    assert visit("x-forwarded", (XFF, line)).address == str(ip_address(known[-1]))


@given(st.text(max_size=80), st.text(max_size=80))
@settings(max_examples=examples(100), deadline=None)
def test_no_header_is_an_error(one: str, other: str) -> None:
    for by in ("x-forwarded", "forwarded"):
        found = visit(by, (XFF, one), (XFP, other), (XFH, one), ("Forwarded", one), ("Forwarded", f'for="{other}"'))
        ip_address(found.address)
