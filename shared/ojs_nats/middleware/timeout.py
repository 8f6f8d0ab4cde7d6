"""A time-out for jobs that have none of their own, or a shorter one."""

from __future__ import annotations

import asyncio
from typing import Any

from ojs_nats._durations import Duration, milliseconds
from ojs_nats.chains import ExecutionNext
from ojs_nats.worker.context import JobContext
from ojs_nats.worker.outcome import TimedOut


class Timeout:
    """Of what is further inside. A coroutine is cancelled and a process killed; a thread goes on until it looks at
    `ctx.stopping`. The attempt has failed, and may be tried again.
    """

    def __init__(self, after: Duration) -> None:
        self._after = after
        self._seconds = milliseconds(after) / 1_000

    async def __call__(self, context: JobContext, next: ExecutionNext) -> Any:  # the specification's word
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await next()
        except TimeoutError:
            if not limit.expired():
                raise
            context.stopping = True
            context.stopped_by = TimedOut(f"the job ran for longer than the worker's time-out of {self._after}")
            raise context.stopped_by from None
