"""Tells somebody of what handlers raise."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from ojs_nats.chains import ExecutionNext
from ojs_nats.worker.context import JobContext

Reporter = Callable[[Exception, JobContext], Awaitable[object] | object]


class ErrorReporting:
    """Calls `report(error, context)`, plain or async, for each exception, which is the handler's still. What it raises itself
    is logged, and doesn't reach the job. It isn't told of cancellations.
    """

    def __init__(self, report: Reporter) -> None:
        self._report = report

    async def __call__(self, context: JobContext, next: ExecutionNext) -> Any:  # the specification's word
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
