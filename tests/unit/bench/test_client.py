from __future__ import annotations

import pytest

from bench.client import ProtocolError, ResponseReader, Target, read_head

BODY = b'{"jobs":[]}'
RESPONSE = b"HTTP/1.1 201 Created\r\nContent-Type: x\r\nContent-Length: 11\r\nOJS-Version: 1.0\r\n\r\n" + BODY


def test_a_response_in_one_piece() -> None:
    assert ResponseReader().feed(RESPONSE) == (201, BODY)


@pytest.mark.parametrize("cut", range(1, len(RESPONSE)))
def test_a_response_cut_anywhere_in_two(cut: int) -> None:
    reader = ResponseReader()
    assert reader.feed(RESPONSE[:cut]) is None
    assert reader.feed(RESPONSE[cut:]) == (201, BODY)


def test_responses_byte_by_byte_one_after_the_other() -> None:
    reader = ResponseReader()
    for _ in range(2):
        answers = [reader.feed(bytes([byte])) for byte in RESPONSE]
        assert answers == [None] * (len(RESPONSE) - 1) + [(201, BODY)]


def test_a_body_may_look_like_the_end_of_a_head() -> None:
    body = b"\r\n\r\nHTTP/1.1 500\r\nContent-Length: 1\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    reader = ResponseReader()
    assert reader.feed(head + body[:3]) is None
    assert reader.feed(body[3:]) == (200, body)


def test_an_empty_body_ends_with_its_head() -> None:
    assert ResponseReader().feed(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") == (200, b"")
    assert ResponseReader().feed(b"HTTP/1.1 204 No Content\r\n\r\n") == (204, b"")


def test_more_bytes_than_announced_are_an_error() -> None:
    with pytest.raises(ProtocolError, match="more bytes"):
        ResponseReader().feed(RESPONSE + b"x")


def test_a_head_without_end_is_an_error() -> None:
    reader = ResponseReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 60_000) is None
    with pytest.raises(ProtocolError, match="doesn't end"):
        reader.feed(b"x" * 10_000)


def test_clear_forgets_half_a_response() -> None:
    reader = ResponseReader()
    assert reader.feed(RESPONSE[:-3]) is None
    reader.clear()
    assert reader.feed(RESPONSE) == (201, BODY)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 7", (200, 7)),
        (b"HTTP/1.1 200 OK\r\ncontent-length:7\r\nA: b", (200, 7)),
        (b"HTTP/1.0 503 No\r\nCONTENT-LENGTH:  42 \r\nA: b", (503, 42)),
        (b"HTTP/1.1 304 Not Modified", (304, 0)),
    ],
)
def test_heads(head: bytes, expected: tuple[int, int]) -> None:
    assert read_head(head) == expected


@pytest.mark.parametrize(
    ("head", "message"),
    [
        (b"SSH-2.0-OpenSSH", "not an HTTP"),
        (b"HTTP/1.1 abc", "not a status line"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked", "no Content-Length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1", "not a Content-Length"),
    ],
)
def test_heads_that_are_refused(head: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        read_head(head)


def test_targets() -> None:
    assert Target.from_url("http://127.0.0.1:8080/") == ("127.0.0.1", 8080)
    assert Target.from_url("http://[::1]:8080").authority == "[::1]:8080"
    for url in ("https://a", "127.0.0.1:8080", "http://a/ojs/v1"):
        with pytest.raises(ValueError, match=r"form|path"):
            Target.from_url(url)
