"""Server-sent events: what every stream of them has in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog
from aiohttp import hdrs, web

from ojs_engine.wire.media_types import EVENT_STREAM_TYPE
from ojs_gateway.http.endpoint import StreamedResponse
from ojs_runtime.connections import streaming

log = structlog.get_logger(__name__)

KEEP_ALIVE: Final = b":heartbeat\n\n"
"""A comment, for proxies that close what is silent (ojs-realtime §2.4)."""
SHUTDOWN: Final = "server.shutdown"
SHUTDOWN_DATA: Final = b'{"reason":"shutdown","grace_period_ms":0}'
"""What every stream and socket is told last when its gateway stops (ojs-realtime §4.6): the connection ends with it."""
_RETRY_MS: Final = 3_000
_HEADERS: Final = {
    hdrs.CONTENT_TYPE: EVENT_STREAM_TYPE,
    hdrs.CACHE_CONTROL: "no-cache",
    "X-Accel-Buffering": "no",
}


def sse(
    write: Callable[[web.StreamResponse], Awaitable[None]],
    close: Callable[[], None],
    stopping: Callable[[], bool],
    begins_behind: int | None = None,
) -> StreamedResponse:
    """Return an answer into which `write` writes events until it returns or the client leaves.

    `close` is called in any case. Where the gateway is `stopping`, the last event says so. `begins_behind` is the cursor of
    the last event before the stream: a client whose connection breaks before its first event goes on from there.
    """
    begins = b": connected\nretry: %d\n" % _RETRY_MS
    begins += b"" if begins_behind is None else b"id: %d\n" % begins_behind

    async def serve(request: web.BaseRequest, headers: Mapping[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={**headers, **_HEADERS})
        try:
            with streaming(request):
                await response.prepare(request)
                if request.method == hdrs.METH_HEAD:
                    return response
                await response.write(begins + b"\n")
                await write(response)
                if stopping():
                    await response.write(frame(SHUTDOWN, SHUTDOWN_DATA))
        except ConnectionError:
            log.debug("event stream ended by its client")
        finally:
            close()
        return response

    return StreamedResponse(serve)


def frame(event_type: str, data: bytes, number: str | None = None) -> bytes:
    """One event; `number` is the id that a client sends when it connects again."""
    head = b"" if number is None else b"id: %s\n" % number.encode()
    return b"%sevent: %s\ndata: %s\n\n" % (head, event_type.encode(), data)
