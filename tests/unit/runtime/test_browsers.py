"""Which requests count as those of a web page, and which of these are answered (docs/adr/031)."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from multidict import CIMultiDict

from ojs_engine.base.errors import OjsError
from ojs_runtime.addresses import is_loopback
from ojs_runtime.browsers import Browsers, check_media_type, host_name
from support.tables import each

HOST = "127.0.0.1:8080"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0"
FORM = "application/x-www-form-urlencoded"
LOCAL = Browsers("127.0.0.1", (), ())
FRIENDLY = Browsers("127.0.0.1", (), ("https://ui.example.com",))


def admitted(browsers: Browsers, method: str = "GET", **headers: str) -> bool:
    try:
        browsers.admit_name(headers.get("Host", HOST))
        browsers.admit(method, named(headers), headers.get("Host", HOST))
    except OjsError as error:
        return error.code != "permission_denied"
    return True


def named(headers: dict[str, str]) -> CIMultiDict[str]:
    return CIMultiDict({name.replace("_", "-"): value for name, value in headers.items()})


def sent(method: str = "POST", more: Mapping[str, str] | None = None, *, body: bool = False, **headers: str) -> bool:
    try:
        check_media_type(method, named({**(more or {}), **headers}), body=body)
    except OjsError as error:
        return bool(error.details["field"] != "Content-Type")
    return True


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:8080", "LOCALHOST", "[::1]:8080", "127.0.0.1:1"])
def test_loopback_goes_by_its_own_names(host: str) -> None:
    assert admitted(LOCAL, Host=host)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "localhost.evil.example", "10.0.0.1", "", "127.0.0.1.nip.io"]
)
def test_loopback_goes_by_no_other_name(host: str) -> None:
    assert not admitted(LOCAL, Host=host)


def test_more_names_are_a_setting_and_no_name_is_needed_without_http_1_1() -> None:
    assert admitted(Browsers("127.0.0.1", ("jobs.example.com",), ()), Host="jobs.example.com:80")
    assert admitted(Browsers("127.0.0.1", ("jobs.example.com",), ()), Host="localhost")
    assert admitted(Browsers("127.0.0.1", ("*",), ()), Host="anything")
    LOCAL.admit_name(None)
    LOCAL.admit("GET", CIMultiDict(), None)


def test_a_public_address_goes_by_every_name_until_it_is_told_which() -> None:
    assert admitted(Browsers("0.0.0.0", (), ()), Host="jobs.internal")
    assert not admitted(Browsers("0.0.0.0", ("jobs.internal",), ()), Host="evil.example")
    assert admitted(Browsers("10.0.0.7", ("jobs.internal",), ()), Host="10.0.0.7:8080")


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1:9999", "file://", "http://127.0.0.1", ""])
def test_a_foreign_origin_is_refused(origin: str) -> None:
    assert not admitted(LOCAL, "GET", Origin=origin)
    assert not admitted(LOCAL, "POST", Origin=origin, Content_Type="application/json")


def test_the_own_origin_and_those_that_are_allowed_are_admitted() -> None:
    assert admitted(LOCAL, Origin="http://127.0.0.1:8080")
    assert admitted(LOCAL, Origin="http://localhost", Host="localhost:80")
    assert admitted(Browsers("0.0.0.0", (), ()), Origin="https://jobs.example.com", Host="jobs.example.com")
    assert admitted(FRIENDLY, Origin="https://ui.example.com")
    assert not admitted(FRIENDLY, Origin="http://ui.example.com")


@pytest.mark.parametrize(
    ("site", "answered"), [("cross-site", False), ("same-site", False), ("same-origin", True), ("none", True)]
)
def test_what_a_page_asks_for_without_saying_its_origin_is_told_by_its_site(site: str, answered: bool) -> None:
    assert admitted(LOCAL, Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors") is answered


def test_a_page_of_the_same_origin_is_admitted_whatever_a_proxy_makes_of_host() -> None:
    """The browser has compared both addresses, and no page sets the header by itself."""
    assert admitted(LOCAL, "POST", Sec_Fetch_Site="same-origin", Origin="https://jobs.example.com")
    assert not admitted(LOCAL, "POST", Sec_Fetch_Site="same-site", Origin="https://jobs.example.com")
    assert not admitted(LOCAL, Sec_Fetch_Site="same-origin", Host="rebound.example"), "its own name may point here"


SAME = [
    ("https://jobs.example", "jobs.example:443"),
    ("https://jobs.example:443", "jobs.example"),
    ("http://jobs.example", "jobs.example:80"),
    ("http://jobs.example:80", "jobs.example"),
    ("https://jobs.example", "JOBS.example"),
    ("http://[::1]:8080", "[::1]:8080"),
    ("https://[::1]", "[::1]:443"),
]
OTHER = [
    ("https://jobs.example:8443", "jobs.example"),
    ("https://jobs.example", "jobs.example:8443"),
    ("https://jobs.example:80", "jobs.example"),
    ("http://jobs.example", "jobs.example:443"),
    ("https://jobs.example", "jobs.example:80"),
]


@each("origin, host", SAME)
def test_an_origin_is_the_servers_with_and_without_its_default_port(origin: str, host: str) -> None:
    assert admitted(Browsers("0.0.0.0", (), ()), "POST", Origin=origin, Host=host)


@each("origin, host", OTHER)
def test_an_origin_with_another_port_is_another(origin: str, host: str) -> None:
    assert not admitted(Browsers("0.0.0.0", (), ()), "POST", Origin=origin, Host=host)


def test_a_link_may_be_followed_but_not_framed_and_not_posted_to() -> None:
    link = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert admitted(LOCAL, "GET", **link)
    assert not admitted(LOCAL, "POST", **link)
    assert not admitted(LOCAL, "GET", **link | {"Sec_Fetch_Dest": "iframe"})


def test_only_the_page_of_an_allowed_origin_may_read_answers() -> None:
    granted = dict(FRIENDLY.admit("GET", named({"Origin": "https://ui.example.com"}), HOST))
    assert granted["Access-Control-Allow-Origin"] == "https://ui.example.com"
    assert "Access-Control-Allow-Credentials" not in granted
    assert FRIENDLY.admit("GET", named({}), HOST) == (("Vary", "Origin"),)
    assert LOCAL.admit("GET", named({}), HOST) == ()


def test_only_the_page_of_an_allowed_origin_is_told_what_it_may_send() -> None:
    asked = {"Host": HOST, "Origin": "https://ui.example.com", "Access_Control_Request_Method": "PUT"}
    told = dict(FRIENDLY.preflight("OPTIONS", named(asked | {"Access_Control_Request_Headers": "content-type"})) or ())
    assert "PUT" in told["Access-Control-Allow-Methods"]
    assert told["Access-Control-Allow-Headers"] == "content-type"
    assert FRIENDLY.preflight("PUT", named(asked)) is None
    assert FRIENDLY.preflight("OPTIONS", named({"Host": HOST})) is None
    assert LOCAL.preflight("OPTIONS", named(asked | {"Origin": f"http://{HOST}"})) is None


FORMS = (FORM, "multipart/form-data; boundary=x", "text/plain;charset=UTF-8", "TEXT/PLAIN")


@each("headers", [{}, *({"Content_Type": media_type} for media_type in FORMS)])
def test_what_a_form_can_send_changes_nothing(headers: dict[str, str]) -> None:
    assert not sent("POST", headers, User_Agent=FIREFOX)
    assert not sent("POST", headers, Sec_Fetch_Site="none")
    assert not sent("POST", headers, User_Agent="", Sec_Fetch_Mode="navigate")
    assert not sent("POST", headers, User_Agent=FIREFOX, Authorization="Basic b3BzOng="), "browsers add these"
    assert not sent("POST", headers, body=True)


@each("content_type", FORMS)
def test_a_body_of_a_form_is_refused_whoever_sends_it(content_type: str) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        assert not sent(method, body=True, Content_Type=content_type, User_Agent="curl/8")
        assert not sent(method, body=True, Content_Type=content_type, Authorization="Bearer x")


@each("headers", [{}, {"User_Agent": ""}, {"Content_Type": FORM}, {"Content_Type": "text/plain; charset=utf-8"}])
def test_a_request_without_a_body_needs_no_media_type_if_no_form_has_sent_it(headers: dict[str, str]) -> None:
    """Libraries of .NET, PHP, Rust and Elixir name neither themselves nor the type of nothing."""
    assert sent("POST", headers)
    for method in ("PUT", "PATCH", "DELETE"):
        assert sent(method, headers, User_Agent=FIREFOX), "no form has these methods"
    assert sent("POST", headers, User_Agent=FIREFOX, Authorization="Bearer ojs_sk_x"), "no page adds a key unasked"
    assert sent("POST", headers, User_Agent="curl/8.5.0")


def test_clients_that_are_no_browsers_go_on_working() -> None:
    assert sent(Content_Type="application/json", User_Agent=FIREFOX)
    assert sent(Content_Type="application/openjobspec+json; charset=utf-8", body=True)
    assert sent(OJS_Version="1.0", body=True)
    for agent in ("curl/8.5.0", "Go-http-client/1.1", "Python-urllib/3.11", "python-httpx/0.28.1", "node"):
        assert sent(User_Agent=agent)
        assert sent("DELETE", User_Agent=agent)
    assert sent(Content_Type="application/octet-stream")  # as aiohttp's client says of an empty body; no form can


def test_a_page_that_was_admitted_needs_no_media_type_to_say_nothing() -> None:
    assert sent(Origin="http://127.0.0.1:8080", User_Agent=FIREFOX)


@pytest.mark.parametrize("content_type", ["application/xml", "application/octet-stream", FORM, "json", "text/json"])
def test_a_body_that_is_not_json_is_refused_whoever_sends_it(content_type: str) -> None:
    assert not sent(Content_Type=content_type, body=True, OJS_Version="1.0")
    assert not sent("GET", Content_Type=content_type, body=True)


def test_names_and_loopback_are_told_from_addresses() -> None:
    assert [host_name(text) for text in ("a:1", "A", "[::1]:8", "::1")] == ["a", "a", "::1", "::1"]
    assert [is_loopback(text) for text in ("127.0.0.53", "localhost", "::1", "0.0.0.0", "jobs", "10.0.0.1")] == [True] * 3 + [
        False
    ] * 3
