"""An answer as it leaves, byte for byte."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import HttpVersion10, HttpVersion11

from ojs_gateway.http.answer import Answer

HEADERS = (("Content-Type", "application/json"), ("X-Request-Id", "r1"))


class Writer:
    def __init__(self) -> None:
        self.sent: list[bytes] = []

    async def write(self, data: bytes) -> None:
        self.sent.append(data)


async def written(
    answer: Answer, *, method: str = "GET", keep_alive: bool = True, old: bool = False
) -> tuple[list[str], bytes]:
    """The lines of the head, without the date, and the body; all of it in one piece."""
    writer = Writer()
    version = HttpVersion10 if old else HttpVersion11
    request: Any = SimpleNamespace(keep_alive=keep_alive, version=version, method=method, writer=writer)
    await answer.prepare(request)
    await answer.write_eof()
    [data] = writer.sent
    head, _, body = data.partition(b"\r\n\r\n")
    return [line for line in head.decode().split("\r\n") if not line.startswith("Date: ")], body


async def test_an_answer_has_its_headers_and_its_length() -> None:
    lines, body = await written(Answer(201, b"{}", HEADERS))
    assert lines == ["HTTP/1.1 201 Created", "Content-Type: application/json", "X-Request-Id: r1", "Content-Length: 2"]
    assert body == b"{}"


async def test_head_is_told_the_length_of_what_it_does_not_get() -> None:
    lines, body = await written(Answer(200, b"{}", ()), method="HEAD")
    assert (lines[-1], body) == ("Content-Length: 2", b"")


@pytest.mark.parametrize("status", [204, 304])
async def test_what_has_no_body_has_no_length(status: int) -> None:
    lines, body = await written(Answer(status, b"", ()))
    assert (len(lines), body) == (1, b"")


@pytest.mark.parametrize(
    ("old", "keep_alive", "told"),
    [(False, True, None), (False, False, "Connection: close"), (True, True, "Connection: keep-alive"), (True, False, None)],
)
async def test_a_connection_that_goes_on_or_ends_in_another_way_than_is_usual_is_told(
    old: bool, keep_alive: bool, told: str | None
) -> None:
    answer = Answer(200, b"", ())
    lines, _ = await written(answer, old=old, keep_alive=keep_alive)
    assert lines[0] == f"HTTP/1.{0 if old else 1} 200 OK"
    assert [line for line in lines if line.startswith("Connection")] == ([told] if told else [])
    assert answer.keep_alive is keep_alive


async def test_the_last_answer_of_a_connection_says_so() -> None:
    answer = Answer(200, b"", ())
    answer.force_close()
    lines, _ = await written(answer)
    assert lines[-1] == "Connection: close"
    assert answer.keep_alive is False


@pytest.mark.parametrize("value", ["a\r\nSet-Cookie: x", "a\nb", "a\rb"])
async def test_no_header_can_end_the_head(value: str) -> None:
    with pytest.raises(ValueError, match="would break the answer"):
        await written(Answer(200, b"", (("Location", value),)))


async def test_bytes_that_are_no_text_leave_as_they_came() -> None:
    writer = Writer()
    request: Any = SimpleNamespace(keep_alive=True, version=HttpVersion11, method="GET", writer=writer)
    await Answer(200, b"", (("Allow", b"\xff".decode("utf-8", "surrogateescape")),)).prepare(request)
    assert b"Allow: \xff\r\n" in writer.sent[0]
