"""A process of a worker's pool: runs one handler after another, and ends with its worker."""

from __future__ import annotations

import importlib
import logging
import os
import queue
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from ojs_nats._logging import parts
from ojs_nats._operations import Request
from ojs_nats._plain import encoded
from ojs_nats._refusals import refused
from ojs_nats.definitions import JobDefinition
from ojs_nats.errors import UnavailableError
from ojs_nats.worker import _outcome
from ojs_nats.worker._context import JobContext
from ojs_nats.worker._frames import (
    HEAD_BYTES,
    Answered,
    Logged,
    Raised,
    Returned,
    Run,
    Told,
    ToProcess,
    ToWorker,
    frame,
    length,
)
from ojs_nats.worker._outcome import SoftTimeout

_NEARLY_OVER: Final = "the job's soft time-out is over"
_SOFT: Final = signal.SIGUSR1
"""Sent by the thread that listens to the one that runs the handler, to have it raise SoftTimeout wherever it is."""
_BEGUN_S: Final = 0.05
"""The time that a handler has to begin, if it begins after its soft time-out: whoever catches SoftTimeout is to get it."""
_LEVELS: Final = frozenset({"debug", "info", "warning", "error", "critical"})


def main(descriptor: int) -> None:
    """Serve the worker at the other end of the socket."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGTSTP):  # they are meant for the worker, which ends this process
        signal.signal(number, signal.SIG_IGN)
    line = socket.socket(fileno=descriptor)
    line.set_inheritable(False)  # programs that handlers start would hold it open
    child = _Child(line)
    signal.signal(_SOFT, lambda _number, _frame: child.time_is_nearly_over())
    child.serve()


class _Child:
    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._sending = threading.Lock()
        self._runs: queue.SimpleQueue[Run] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answered] = queue.SimpleQueue()
        self._telling = threading.Lock()
        self._context: JobContext | None = None
        self._main: Final = threading.get_ident()
        self._speaking = 0
        self._interruptible = False
        self._interrupted = False
        self._nearly_over = False
        """Whether the worker has said so of the job that it sent last."""

    def serve(self) -> None:
        _forward_structlog(self.logged)
        logging.getLogger().addHandler(_Forwarding(self))
        logging.getLogger("ojs_nats").setLevel(logging.DEBUG)  # the worker knows which of them are wanted
        threading.Thread(target=self._listen, name="ojs-nats-listening", daemon=True).start()
        while True:
            ended = self._ran(self._runs.get())
            try:
                self.say(ended)
            except Exception as error:  # noqa: BLE001  # the worker waits for an end
                self.say(Raised(_outcome.raised(error).members))

    def say(self, said: ToWorker) -> None:
        """Send it. Raises ValueError and TypeError for what a frame can't hold."""
        written = frame(said)
        with self._whole(), self._sending:
            try:
                self._line.sendall(written)
            except OSError:
                os._exit(1)  # the worker is gone, and so whoever could hear of the handler

    def time_is_nearly_over(self) -> None:
        if self._interruptible:
            self._interrupted = True
            self._interrupt()

    def _interrupt(self) -> None:
        if self._interrupted and self._interruptible and not self._speaking:
            self._interruptible = self._interrupted = False
            raise SoftTimeout(_NEARLY_OVER)

    @contextmanager
    def _softly(self) -> Iterator[None]:
        """In here the handler runs, and nothing else. A soft time-out that came before it is told once it has begun."""
        late = threading.Timer(_BEGUN_S, self._soften)
        late.daemon = True
        self._interruptible, self._interrupted = True, False
        try:
            if self._nearly_over:
                late.start()
            yield
        finally:
            self._interruptible = False
            late.cancel()

    def _soften(self) -> None:
        """Have the handler that runs meet SoftTimeout."""
        if self._context is not None:
            self._context.stopping = True
            signal.pthread_kill(self._main, _SOFT)

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Keep a message of the handler's thread from being broken off half-way."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        self._speaking += 1
        try:
            yield
        finally:
            self._speaking -= 1
        self._interrupt()

    # The handler's side of its context

    async def send(self, request: Request) -> object:
        self.send_sync(request)
        return None

    def send_sync(self, request: Request) -> object:
        with self._whole(), self._telling:
            self.say(Told(request.operation.name, request.body))
            answer = self._answers.get()
        if answer.message is None:
            return None
        if answer.code is None:
            raise UnavailableError(answer.message)
        raise refused(answer.code, answer.message, status=answer.status)

    def logged(self, level: str, event: str, members: dict[str, Any]) -> None:
        job_id = None if self._context is None else self._context.job.id
        known = level if level in _LEVELS else "error"
        try:
            self.say(Logged(known, event, members, job_id))
        except SoftTimeout:
            raise
        except Exception as error:  # noqa: BLE001  # a line that can't be written is no failure of the handler
            self.say(Logged(known, ascii(event), {"left_out": type(error).__name__}, job_id))

    # The worker's side

    def _listen(self) -> None:
        """Take what the worker says. The process ends with its worker, whatever ended that."""
        try:
            while True:
                size = length(self._read(HEAD_BYTES))
                said: ToProcess = msgspec.json.decode(self._read(size), type=ToProcess)
                if isinstance(said, Run):
                    self._nearly_over = False
                    self._runs.put(said)
                elif isinstance(said, Answered):
                    self._answers.put(said)
                else:
                    self._nearly_over = True
                    self._soften()
        finally:
            os._exit(1)

    def _read(self, size: int) -> bytes:
        """Raises EOFError and OSError when the worker is gone."""
        found = bytearray()
        while len(found) < size:
            part = self._line.recv(min(size - len(found), 1 << 20))
            if not part:
                raise EOFError
            found += part
        return bytes(found)

    def _ran(self, run: Run) -> Returned | Raised:
        logging.getLogger().setLevel(run.log_level)
        self._context = JobContext(run.job, self, run.worker_id, began=run.began)
        try:
            definition = _definition(run.module, run.name)
            given = definition._inside.parameters.given(self._context)
            with self._softly():
                result = _outcome.called(definition.handler, given, {})
            return Returned(msgspec.Raw(encoded(result, "the result")))
        except BaseException as error:  # noqa: BLE001  # whatever a handler raises is its job's error
            return Raised(_outcome.raised(error, _outcome.not_tried_again(run.job)).members)
        finally:
            self._context = None


class _Forwarding(logging.Handler):
    def __init__(self, child: _Child) -> None:
        super().__init__()
        self._child = child

    def emit(self, record: logging.LogRecord) -> None:
        try:
            event, members = parts(record) or (self.format(record), {"logger": record.name})
        except SoftTimeout:
            raise
        except Exception as error:  # noqa: BLE001  # its text doesn't fit its arguments, or they have none
            place = f"{record.pathname}:{record.lineno}"
            event, members = "a line can't be written", {"logger": record.name, "place": place, "error": type(error).__name__}
        self._child.logged(record.levelname.lower(), event, members)


def _forward_structlog(logged: Callable[[str, str, dict[str, Any]], None]) -> None:
    """Have the worker log an application's lines of structlog."""
    try:
        import structlog  # noqa: PLC0415  # an application's: this package needs none of it
    except ModuleNotFoundError:
        return

    def forward(_logger: Any, method: str, line: MutableMapping[str, Any]) -> str:
        logged(method, str(line.pop("event", "")), dict(line))
        raise structlog.DropEvent

    structlog.configure(processors=[structlog.contextvars.merge_contextvars, structlog.processors.format_exc_info, forward])


def _definition(module: str, name: str) -> JobDefinition[Any, Any]:
    found: Any = sys.modules.get(module) or importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not isinstance(found, JobDefinition):
        raise TypeError(f"{module}.{name} isn't a job: a process finds a handler by its name, so leave the decorated one there")
    return found
