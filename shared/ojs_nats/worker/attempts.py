"""A job that runs, and how it is told to stop."""

from __future__ import annotations

import asyncio
from typing import Any

from ojs_nats.worker.context import JobContext


class Attempt:
    """`why` is for which reason its handler was told to stop, if it was; `lost` that its end is nobody's business any more,
    `over` that it has been reported. `thread` goes on when `handler`, which waits for it, is cancelled.
    """

    def __init__(self, context: JobContext) -> None:
        self.context = context
        self.task: asyncio.Task[None] | None = None
        self.handler: asyncio.Future[Any] | None = None
        self.thread: asyncio.Future[Any] | None = None
        self.why: Exception | None = None
        self.lost = False
        self.over = False

    def stop(self, why: Exception) -> None:
        self.why = self.why or why
        self.context.stopping = True
        if self.handler is not None:
            self.handler.cancel()
