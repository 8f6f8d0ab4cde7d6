"""Server-sent events: what every stream of them has in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import structlog
from aiohttp import hdrs, web

from ojs_gateway.http.call import StreamedResponse

log = structlog.get_logger(__name__)

KEEP_ALIVE_S: Final = 15.0
_RETRY_MS: Final = 2_000
_HEADERS: Final = {
    hdrs.CONTENT_TYPE: "text/event-stream",
    hdrs.CACHE_CONTROL: "no-cache",
    "X-Accel-Buffering": "no",
}


def sse(write: Callable[[web.StreamResponse], Awaitable[None]], close: Callable[[], None]) -> StreamedResponse:
    """An answer into which `write` writes events until it returns; `close` is called in any case."""

    async def serve(request: web.BaseRequest, headers: Mapping[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={**headers, **_HEADERS})
        try:
            await response.prepare(request)
            if request.method == hdrs.METH_HEAD:
                return response
            await response.write(b": connected\nretry: %d\n\n" % _RETRY_MS)
            await write(response)
        except ConnectionError:
            log.debug("event stream ended by its client")
        finally:
            close()
        return response

    return StreamedResponse(serve)
