"""What stands between a client and a server: it passes requests on, or answers them in the server's place."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import aiohttp
import msgspec
from aiohttp import web

_PAGE: Final = "<html><body>under maintenance</body></html>"
_ITS_OWN: Final = frozenset({"host", "transfer-encoding", "content-length", "connection"})


class Trouble(msgspec.Struct, frozen=True):
    """What a request is answered with: a page with this status, or, without one, a connection that is closed after
    so many seconds of silence. `done` says that the server has got the request.
    """

    status: int | None = None
    headers: dict[str, str] = {}
    text: str = _PAGE
    silence_s: float = 0.0
    done: bool = False


class Proxy:
    """A proxy in a thread of its own. `troubled` is how many requests of each kind met trouble, `passed` how many of
    each kind the server has answered, by the last part of their path.
    """

    def __init__(self, target: str, *, keeps_connections: bool = True, keeps_host: bool = False) -> None:
        self.troubled: Counter[str] = Counter()
        self.passed: Counter[str] = Counter()
        self.url = ""
        self._target = target
        self._keeps = keeps_connections
        self._dropped = _ITS_OWN - {"host"} if keeps_host else _ITS_OWN
        self._lock = threading.Lock()
        self._troubles: dict[str, list[Trouble | None]] = {}

    def trouble(self, kind: str, *troubles: Trouble | None) -> None:
        """Have the next requests of a kind meet these, one after the other; one that meets None is passed on."""
        with self._lock:
            self._troubles.setdefault(kind, []).extend(troubles)

    def clear(self) -> None:
        """Let all requests pass, and count anew."""
        with self._lock:
            self._troubles.clear()
            self.troubled.clear()
            self.passed.clear()

    def left(self) -> int:
        """Return how many troubles nobody has met yet."""
        with self._lock:
            return sum(each is not None for waiting in self._troubles.values() for each in waiting)

    @classmethod
    @contextmanager
    def before(cls, target: str, *, keeps_connections: bool = True, keeps_host: bool = False) -> Iterator[Proxy]:
        """A proxy that runs in here, for the server at this address; browsers that change something need their `Host` kept."""
        proxy = cls(target, keeps_connections=keeps_connections, keeps_host=keeps_host)
        ready, ended = threading.Event(), asyncio.Event()
        # `asyncio.run` ends what is under way as well: a stream whose reader has left goes on until then.
        thread = threading.Thread(target=asyncio.run, args=(proxy._run(ready, ended),), name="proxy")
        thread.start()
        try:
            ready.wait()
            yield proxy
        finally:
            proxy._loop.call_soon_threadsafe(ended.set)
            thread.join()

    async def _run(self, ready: threading.Event, ended: asyncio.Event) -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), auto_decompress=False) as self._session:
            runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            self._loop = asyncio.get_running_loop()
            ready.set()
            await ended.wait()
            await runner.cleanup()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        kind = request.path.rstrip("/").rpartition("/")[2]
        with self._lock:
            waiting = self._troubles.get(kind, [])
            trouble = waiting.pop(0) if waiting else None
        body = await request.read()
        answer = None if trouble is not None and not trouble.done else await self._passed_on(request, body)
        if trouble is None:
            assert answer is not None
            self.passed[kind] += 1
            return answer
        await asyncio.sleep(trouble.silence_s)
        self.troubled[kind] += 1
        if trouble.status is None:
            if request.transport is not None:
                request.transport.close()
            return web.Response()
        return web.Response(status=trouble.status, headers=trouble.headers, text=trouble.text, content_type="text/html")

    async def _passed_on(self, request: web.BaseRequest, body: bytes) -> web.Response:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in self._dropped}
        url = f"{self._target}{request.path_qs}"
        async with self._session.request(request.method, url, data=body, headers=headers) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _ITS_OWN}
            response = web.Response(status=answer.status, headers=kept, body=await answer.read())
            if not self._keeps:
                response.force_close()
            return response
