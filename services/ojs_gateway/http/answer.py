"""An answer that is written as one piece."""

from __future__ import annotations

import time
from collections.abc import Iterable
from email.utils import formatdate
from http import HTTPStatus
from typing import Final

from aiohttp import HttpVersion10, hdrs, web
from aiohttp.abc import AbstractStreamWriter

_STATUS_LINES: Final = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
_BODILESS: Final = frozenset({204, 304})


class Answer(web.StreamResponse):
    """A status, headers and a whole body.

    aiohttp's own makes a multidict of the headers, asks it a dozen questions and serialises it, which takes more than
    half of what it needs for a request (docs/adr/042). Nothing here can be changed once it is made but that the
    connection is to end.
    """

    def __init__(self, status: int, body: bytes, headers: Iterable[tuple[str, str]]) -> None:
        # Not `super().__init__`: it makes what this is there to spare.
        self._status = status
        self._content = body
        self._lines = headers

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Send all of it. Raises ConnectionError if the client has left."""
        keep_alive = request.keep_alive if self._keep_alive is None else self._keep_alive
        self._keep_alive = keep_alive
        old = request.version == HttpVersion10
        lines = [f"HTTP/1.{0 if old else 1} {_STATUS_LINES[self._status]}", f"Date: {_date()}"]
        lines += [f"{name}: {value}" for name, value in self._lines]
        body = self._content
        if self._status not in _BODILESS:
            lines.append(f"Content-Length: {len(body)}")
        if keep_alive is old:
            lines.append("Connection: keep-alive" if old else "Connection: close")
        text = "\r\n".join(lines)
        if not text.count("\r") == text.count("\n") == len(lines) - 1:
            raise ValueError("a header's value would break the answer")
        head = text.encode("utf-8", "surrogateescape")
        bodiless = self._status in _BODILESS or request.method == hdrs.METH_HEAD
        await request.writer.write(head + b"\r\n\r\n" + (b"" if bodiless else body))
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to be sent."""
        assert not data


_dated: tuple[int, str] = (0, "")


def _date() -> str:
    """Now, as HTTP has it."""
    global _dated  # noqa: PLW0603  # the text of a second
    now = int(time.time())
    if now != _dated[0]:
        _dated = (now, formatdate(now, usegmt=True))
    return _dated[1]
