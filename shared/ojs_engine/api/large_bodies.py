"""Work on large bodies, beside the event loop that other requests wait for (docs/adr/031)."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from ojs_engine.base.errors import OjsError

P = ParamSpec("P")
T = TypeVar("T")

LARGE_BYTES: Final = 16 * 1024
"""What the slowest body of this size takes is 5 ms; smaller ones are read where they arrive, which is quicker than a thread."""
_MOST_WAITING: Final = 64


class LargeBodies:
    """One thread of a gateway's own: a second would take the interpreter from the loop once more."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="aside")
        self._waiting = 0

    @property
    def busy(self) -> bool:
        """Whether other work is being done or waits, so that more would have to wait for it."""
        return self._waiting > 0

    async def run(self, size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """`work(…)`, beside the loop if `size`, the bytes that it is about, is large. Raises what it raises, and
        backend_unavailable if too much is waiting.
        """
        if size < LARGE_BYTES:
            return work(*args, **kwargs)
        if self._waiting >= _MOST_WAITING:
            raise OjsError("backend_unavailable", "this gateway is busy with other large requests", retry_after=1)

        def undisturbed() -> T:
            gc.disable()  # a parser's many new objects would make it look through all of them, again and again
            try:
                return work(*args, **kwargs)
            finally:
                gc.enable()

        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, undisturbed)
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Drop what waits; nobody is there to be answered."""
        self._pool.shutdown(wait=False, cancel_futures=True)
