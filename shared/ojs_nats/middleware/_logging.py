"""Log lines when a handler begins and when it ends."""

from __future__ import annotations

import time

from ojs_nats.chains import ExecutionNext
from ojs_nats.middleware._endings import ending
from ojs_nats.worker._context import JobContext


class Logging:
    """A middleware that logs a line when a handler begins, and one when it ends, with how it ended and how long it
    took.

    Each line has the job's id, type and attempt. No line has arguments.

    Example:
        ```python
        app.execution.add(Logging())
        ```
    """

    async def __call__(self, context: JobContext, next: ExecutionNext) -> object:  # the specification's word
        """Run the rest of the chain between the two lines."""
        began = time.perf_counter()
        context.log.info("the job begins", queue=context.queue)
        try:
            result = await next()
        except BaseException as error:
            took, word = round(time.perf_counter() - began, 3), ending(error, context)
            context.log.info("the job ends", ending=word, error=type(error).__name__, seconds=took)
            raise
        context.log.info("the job ends", ending="completed", seconds=round(time.perf_counter() - began, 3))
        return result
