"""Server-sent events over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Final

import structlog
from aiohttp import hdrs, web

from ojs_engine.api.streams import SHUTDOWN, SHUTDOWN_DATA, EventStream, frame
from ojs_engine.wire.media_types import EVENT_STREAM_TYPE
from ojs_gateway.http.endpoint import StreamedResponse, UnlessStopping
from ojs_runtime.connections import streaming

log = structlog.get_logger(__name__)

_RETRY_MS: Final = 3_000
_HEADERS: Final = {
    hdrs.CONTENT_TYPE: EVENT_STREAM_TYPE,
    hdrs.CACHE_CONTROL: "no-cache",
    "X-Accel-Buffering": "no",
}


def sse(answer: EventStream, stopping: Callable[[], bool], unless_stopping: UnlessStopping) -> StreamedResponse:
    """Return an answer that sends the frames of a stream. Where the gateway is `stopping`, the last event says so."""
    begins = b": connected\nretry: %d\n" % _RETRY_MS
    begins += b"" if answer.begins_behind is None else b"id: %d\n" % answer.begins_behind

    async def serve(request: web.BaseRequest, headers: Mapping[str, str]) -> web.StreamResponse:
        response = web.StreamResponse(headers={**headers, **_HEADERS})
        try:
            with streaming(request):
                await response.prepare(request)
                if request.method == hdrs.METH_HEAD:
                    return response
                await response.write(begins + b"\n")
                while (data := await unless_stopping(_next(answer.frames))) is not None:
                    await response.write(data)
                if stopping():
                    await response.write(frame(SHUTDOWN, SHUTDOWN_DATA))
        except ConnectionError:
            log.debug("event stream ended by its client")
        finally:
            await answer.frames.aclose()
            answer.close()
        return response

    return StreamedResponse(serve)


async def _next(frames: AsyncGenerator[bytes]) -> bytes | None:
    return await anext(frames, None)
