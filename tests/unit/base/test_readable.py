from __future__ import annotations

import pytest
from multidict import CIMultiDict, CIMultiDictProxy

from ojs_engine.base.errors import OjsError
from ojs_engine.base.readable import ALL_READABLE, readable, readable_headers, require_readable

LOST = "\N{REPLACEMENT CHARACTER}"


def arrived(**sent: bytes) -> CIMultiDictProxy[str]:
    """Headers as aiohttp decodes them."""
    named = {name.replace("_", "-"): value.decode("utf-8", "surrogateescape") for name, value in sent.items()}
    return CIMultiDictProxy(CIMultiDict(named))


def test_text_stays_as_it_is() -> None:
    headers = arrived(User_Agent="été/1.0 (☃)".encode(), Accept=b"*/*")
    assert readable_headers(headers) == (headers, ALL_READABLE)


def test_bytes_that_are_no_text_are_replaced_and_their_header_is_named() -> None:
    headers, unreadable = readable_headers(arrived(User_Agent=b"\xe9t\xe9", Origin=b"\xff", Accept="é".encode()))
    assert dict(headers) == {"User-Agent": f"{LOST}t{LOST}", "Origin": LOST, "Accept": "é"}
    assert unreadable == {"user-agent", "origin"}
    assert headers["user-agent"] == headers["User-Agent"]


@pytest.mark.parametrize("sent", [b"\xe9", b"\xed\xa0\x80", b"a\xc3", b"\xf8\x88\x80\x80\x80"])
def test_what_was_replaced_can_be_sent(sent: bytes) -> None:
    assert readable(sent.decode("utf-8", "surrogateescape")).encode().decode() != ""


def test_a_request_is_refused_for_a_header_that_counts_by_its_name() -> None:
    _, unreadable = readable_headers(arrived(User_Agent=b"\xe9", Origin=b"\xe9"))
    require_readable(unreadable, ["Host", "OJS-Version"])
    with pytest.raises(OjsError, match="the header Origin is not valid UTF-8") as refused:
        require_readable(unreadable, ["Host", "Origin"])
    assert (refused.value.code, refused.value.details["field"]) == ("invalid_request", "Origin")
