"""A job that runs, and how it is told to stop."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from typing import Any

from ojs_nats.worker._context import JobContext, Line
from ojs_nats.worker._outcome import ShutDown, SoftTimeout
from ojs_nats.worker._timings import WorkerTimings


class _Met(SoftTimeout, asyncio.CancelledError):
    """SoftTimeout as a coroutine meets it: task groups and `wait_for` end their tasks for a cancellation alone."""


_Met.__name__, _Met.__qualname__, _Met.__module__ = "SoftTimeout", "SoftTimeout", SoftTimeout.__module__


class Attempt:
    """A running job. `why` is the reason for which its handler is to stop, if it is; `lost` says that its end is
    nobody's business any more, `over` that it has been reported. `soft` says to a process that its time is nearly
    over.
    """

    def __init__(self, context: JobContext, line: Line, timings: WorkerTimings = WorkerTimings()) -> None:
        self.context = context
        self.job = context.job
        """The job as it was fetched: middleware may give the context another one."""
        self.line = line
        self._timings = timings
        self.soft: Callable[[], None] | None = None
        self.task: asyncio.Task[None] | None = None
        self.thread: asyncio.Future[Any] | None = None
        self.why: Exception | None = None
        self.lost = False
        self.over = False
        self._handler: asyncio.Task[Any] | None = None
        self._ended: asyncio.Future[None] | None = None
        self._met: SoftTimeout | None = None
        self._in_handler = False

    @property
    def unfinished(self) -> asyncio.Future[Any] | None:
        """The work that goes on though the attempt is over: a thread, or a handler that doesn't let itself be cancelled."""
        for each in (self._handler, self.thread):
            if each is not None and not each.done():
                return each
        return None

    def stop(self, why: Exception) -> None:
        self.why = self.context.stopped_by = self.why or why
        self.context.stopping = True
        if self._handler is not None and self._ended is not None:
            self._handler.cancel()
            asyncio.get_running_loop().call_later(self._timings.clean_up_s, _settle, self._ended)

    def soften(self, why: SoftTimeout) -> None:
        """Have the handler meet `why`, if it is a coroutine or runs in a process; in a thread it can only look."""
        self.context.stopping = True
        self.context.stopped_by = self.context.stopped_by or why
        if self.soft is not None:
            self.soft()
        if self._in_handler and self._handler is not None and self.why is None:
            self._met = why
            self._handler.cancel()

    async def result(self, run: Coroutine[Any, Any, Any]) -> Any:
        """Return the result of what runs the handler. Raises what it does, and `why` when it has been told to stop."""
        if self.why is not None:
            run.close()
            raise self.why
        self._ended = ended = asyncio.get_running_loop().create_future()
        self._handler = asyncio.create_task(run)
        self._handler.add_done_callback(lambda _: _settle(ended))
        try:
            await ended
        except asyncio.CancelledError as error:  # not the handler is broken off, but the worker with all that it does
            self.stop(ShutDown("the worker was broken off before the job had ended"))
            raise self.why or error from None
        if not self._handler.done():
            self.context.log.warning("the handler goes on though it has been told to stop")
            assert self.why is not None
            raise self.why
        try:
            return self._handler.result()
        except asyncio.CancelledError as error:
            raise (self.why or error) from None

    @types.coroutine
    def softly(self, handler: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Run a coroutine, which meets SoftTimeout instead of the cancellation that brings it."""
        error: BaseException | None = None
        value: Any = None
        self._in_handler = True
        try:
            while True:
                try:
                    waiting = handler.send(value) if error is None else handler.throw(error)
                except StopIteration as stop:
                    return stop.value
                except _Met as met:  # by itself it would end the task as cancelled
                    raise SoftTimeout(*met.args).with_traceback(met.__traceback__) from None
                try:
                    value, error = (yield waiting), None
                except BaseException as met:  # noqa: BLE001  # whatever it is, it is the handler's
                    value, error = None, self._meant(met)
        finally:
            self._in_handler = False
            handler.close()

    def _meant(self, met: BaseException) -> BaseException:
        soft, self._met = self._met, None
        if soft is None or self.why is not None or not isinstance(met, asyncio.CancelledError):
            return met
        assert self._handler is not None
        self._handler.uncancel()
        return _Met(*soft.args)


def _settle(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)
