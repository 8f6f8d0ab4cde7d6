"""Reports of handlers' exceptions to a service such as Sentry."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable

from ojs_nats.chains import ExecutionNext
from ojs_nats.worker._context import JobContext

Reporter = Callable[[Exception, JobContext], Awaitable[object] | object]


class ErrorReporting:
    """A middleware that calls a function for each exception of a handler, cancellations excepted.

    The exception still fails the attempt. An exception of the function itself is logged, and doesn't reach the job.

    Args:
        report: A function, plain or async, that is called with the exception and the context.

    Example:
        ```python
        app.execution.add(ErrorReporting(lambda error, ctx: sentry_sdk.capture_exception(error)))
        ```
    """

    def __init__(self, report: Reporter) -> None:
        self._report = report

    async def __call__(self, context: JobContext, next: ExecutionNext) -> object:  # the specification's word
        """Run the rest of the chain, and report its exception."""
        try:
            return await next()
        except Exception as error:
            try:
                reported = self._report(error, context)
                if inspect.isawaitable(reported):
                    await reported
            except Exception:  # whatever it is, the job's error counts
                context.log.exception("an error could not be reported")
            raise
