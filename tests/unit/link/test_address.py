from __future__ import annotations

import pytest

from ojs_link.address import Address, masked, read_address
from support.tables import each


@pytest.mark.parametrize(
    "url",
    [
        "nats://h:4222",
        "nats://h1,tls://u:p@h2",
        "nats://h?inbox_prefix=_INBOX_ojs_{role}&creds=/etc/ojs/{role}.nk",
        "tls://h?ca=/etc/ca.pem&cert=/etc/%C3%A4.pem&key=/etc/a.key",
    ],
)
def test_an_address_reads_what_it_writes(url: str) -> None:
    assert read_address(url).url == url


@each(
    ("url", "words"),
    [
        ("http://h", "is not a URL like nats://"),
        ("nats://u:secret@h?creds=/f", "has two logins"),
        ("nats://u:secret@h?tls=true", "may end in"),
        ("nats://u:secret@h?creds=", "each has a value"),
        ("nats://h?", "nothing without a value"),
        ("tls://h?cert=/c", "has two files"),
        ("nats://h?inbox_prefix=ojs.{role}", "inbox_prefix=_INBOX"),
        ("nats://h?inbox_prefix=_INBOX.>", "inbox_prefix=_INBOX"),
    ],
)
def test_what_cannot_be_used_is_refused_without_the_login(url: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as refused:
        read_address(url)
    assert "secret" not in str(refused.value)


def test_each_role_has_files_and_an_inbox_of_its_own() -> None:
    address = read_address("nats://h?inbox_prefix=_INBOX_ojs_{role}").with_files({"creds": "/etc/{role}.nk", "ca": "/etc/ca"})
    assert address.of_role("reaper") == Address(
        servers=("nats://h",), inbox_prefix="_INBOX_ojs_reaper", creds="/etc/reaper.nk", ca="/etc/ca"
    )


@pytest.mark.parametrize("url", ["nats://u:p@h", "nats://h?creds=/own"])
def test_a_login_of_its_own_is_not_replaced_by_the_settings(url: str) -> None:
    found = read_address(url).with_files({"creds": "/other", "ca": "/ca"})
    assert (found.creds, found.ca) == (read_address(url).creds, "/ca")


@pytest.mark.parametrize(
    ("url", "wanted"), [("nats://h", False), ("tls://h", True), ("nats://h?ca=/ca", True), ("nats://h?cert=/c&key=/k", True)]
)
def test_tls_is_asked_for_by_the_scheme_or_a_file(url: str, wanted: bool) -> None:
    assert read_address(url).wants_tls is wanted


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nats://user:secret@host:4222", "nats://***@host:4222"),
        ("nats://token@h1,tls://a:p@ss@h2", "nats://***@h1,tls://***@h2"),
        ("no answer of http://user:se,cret@host:8080", "no answer of http://***@host:8080"),
        ("connecting to nats://u:p@h failed", "connecting to nats://***@h failed"),
        ("mail ada@example.org", "mail ada@example.org"),
        ("http://h/path@x", "http://h/path@x"),
    ],
)
def test_user_info_of_urls_is_masked(text: str, shown: str) -> None:
    assert masked(text) == shown
