from __future__ import annotations

import asyncio
import http.client

from ojs_runtime.health import Readiness, health_listener
from ojs_runtime.settings import Settings


async def test_what_asks_for_health_by_bytes_that_are_no_text_is_refused() -> None:
    async def ready() -> Readiness:
        return Readiness(None, {})

    listener = health_listener("reaper", Settings(), 0, ready)
    await listener.start()
    try:
        port = int(listener.url.rpartition(":")[2])

        def status(header: bytes, value: bytes) -> int:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.putrequest("GET", "/healthz", skip_host=header == b"Host")
            connection.putheader(header, value)
            connection.endheaders()
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status

        assert await asyncio.to_thread(status, b"Host", b"\xe9") == 400
        assert await asyncio.to_thread(status, b"Origin", b"\xe9") == 400
        assert await asyncio.to_thread(status, b"User-Agent", b"\xe9") == 200
    finally:
        await listener.stop()
