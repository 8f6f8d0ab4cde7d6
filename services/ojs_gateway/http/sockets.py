"""Conversations over a WebSocket."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import structlog
from aiohttp import WSCloseCode, WSMsgType, hdrs, web

from ojs_engine.api.streams import Conversation
from ojs_engine.base.errors import OjsError, invalid
from ojs_gateway.http.endpoint import StreamedResponse, UnlessStopping
from ojs_runtime.connections import streaming

log = structlog.get_logger(__name__)

_CLOSING: Final = {WSMsgType.CLOSE, WSMsgType.CLOSING, WSMsgType.CLOSED, WSMsgType.ERROR}
_BODY_HEADERS: Final = frozenset({hdrs.CONTENT_TYPE, hdrs.CONTENT_LENGTH})


class _End:
    """The gateway's end of a WebSocket, as `ojs_engine.api.streams.Socket` describes it."""

    def __init__(self, socket: web.WebSocketResponse, stopping: Callable[[], bool], unless_stopping: UnlessStopping) -> None:
        self._socket = socket
        self._stopping = stopping
        self._unless_stopping = unless_stopping

    @property
    def ends(self) -> bool:
        return self._stopping() and not self._socket.closed

    async def receive(self) -> str | None:
        message = None if self._stopping() else await self._unless_stopping(self._socket.receive())
        if message is None or message.type in _CLOSING:
            return None
        text: str = message.data if message.type is WSMsgType.TEXT else ""
        return text

    async def send(self, message: bytes) -> None:
        await self._socket.send_str(message.decode())

    async def close(self) -> None:
        await self._socket.close(code=WSCloseCode.GOING_AWAY if self.ends else WSCloseCode.OK)


def socket(
    answer: Conversation, stopping: Callable[[], bool], unless_stopping: UnlessStopping, heartbeat_s: float
) -> StreamedResponse:
    """Return an answer that makes the connection a WebSocket, until its conversation is over.

    Serving it raises method_not_allowed, invalid_request.
    """

    async def serve(request: web.BaseRequest, headers: Mapping[str, str]) -> web.StreamResponse:
        if request.method != hdrs.METH_GET:
            raise OjsError("method_not_allowed", f"{request.method} opens no WebSocket; only GET does", allow=hdrs.METH_GET)
        opened = web.WebSocketResponse(heartbeat=heartbeat_s, max_msg_size=answer.most_bytes, protocols=(answer.subprotocol,))
        if not _can_prepare(opened, request):
            raise invalid("Upgrade", "this path speaks WebSocket; connect with a WebSocket client")
        opened.headers.update({name: value for name, value in headers.items() if name not in _BODY_HEADERS})
        try:
            with streaming(request):
                await opened.prepare(request)
                end = _End(opened, stopping, unless_stopping)
                try:
                    await answer.hold(end)
                finally:
                    await end.close()
        except ConnectionError:
            log.debug("websocket left")
        return opened

    return StreamedResponse(serve)


def _can_prepare(opened: web.WebSocketResponse, request: web.BaseRequest) -> bool:
    try:
        return opened.can_prepare(request).ok
    except ValueError:  # of a key that isn't ASCII, which aiohttp lets through
        return False
