"""What handlers share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from ojs_nats.preparation import Preparation
from ojs_nats.queries import Queries
from ojs_nats.store.directives import Directives
from ojs_nats.wire.limits import Limits

if TYPE_CHECKING:
    from ojs_nats.middleware import EnqueueChain
    from ojs_nats.store import Store

__all__ = ["Context"]

T = TypeVar("T")


class Context:
    """The store, the limits and the settings behind all handlers of one gateway, and its requests that only wait."""

    def __init__(self, store: Store, limits: Limits, chain: EnqueueChain, *, test_mode: bool) -> None:
        self.store = store
        self.queries = Queries(store)
        self.directives = Directives(store)
        self.limits = limits
        self.middleware = chain.names
        """What every push goes through, the outermost first."""
        self.prepare = Preparation(chain, limits, store.clock.now)
        self.test_mode = test_mode
        self.stopping = False
        self._started = time.monotonic()
        self._waiting: set[asyncio.Task[Any]] = set()

    @property
    def uptime_s(self) -> int:
        return int(time.monotonic() - self._started)

    async def unless_stopping(self, wait: Coroutine[Any, Any, T]) -> T | None:
        """The result of `wait`, or None if the gateway stops first. Only for waits that can be cut off at any point."""
        if self.stopping:
            wait.close()
            return None
        task = asyncio.create_task(wait)
        self._waiting.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():  # the request itself, not its wait
                raise
            return None
        finally:
            task.cancel()
            self._waiting.discard(task)

    def stop_waiting(self) -> None:
        """Let everybody go who waits for work or for a result."""
        self.stopping = True
        self.store.handout.wakes.wake_all()
        for task in self._waiting:
            task.cancel()
