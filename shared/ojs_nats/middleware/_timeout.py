"""A time-out of the worker's for jobs that have none of their own, or a longer one."""

from __future__ import annotations

import asyncio

from ojs_nats._durations import Duration, milliseconds
from ojs_nats.chains import ExecutionNext
from ojs_nats.worker._context import JobContext
from ojs_nats.worker._outcome import TimedOut


class Timeout:
    """A middleware that ends the rest of the chain after a time. The attempt has failed then, and may be tried again.

    A coroutine is cancelled and a process is killed. A thread goes on until it reads `ctx.stopping`.

    Args:
        after: The time, in seconds or as `"30s"`.

    Example:
        ```python
        app.execution.add(Timeout("30s"))
        ```
    """

    def __init__(self, after: Duration) -> None:
        self._after = after
        self._seconds = milliseconds(after) / 1_000

    async def __call__(self, context: JobContext, next: ExecutionNext) -> object:  # the specification's word
        """Run the rest of the chain, for as long as it may run."""
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
