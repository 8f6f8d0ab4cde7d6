"""Runs that go on side by side, each in a process of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkProcess
from typing import Final

from reliability.run import Result

_fork: Final = get_context("fork")
_ENDS: Final = (signal.SIGINT, signal.SIGTERM)
Part = Callable[[], list[Result]]


class PartFailed(Exception):
    """A process ended without results. It has said why."""


def beside(parts: Sequence[Part]) -> list[Result]:
    """Run all parts at once; returns their results in the order of the parts.

    Each process has a session of its own, so Ctrl-C in a terminal reaches this process alone. It passes it on once to each of
    them, which may take their time to end, and then raises KeyboardInterrupt. Raises PartFailed when all have ended.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)  # or one that comes now would leave those behind that were just started
    started = [_started(part) for part in parts]
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        found = [_told(answers) for _, answers in started]
        for process, _ in started:
            process.join()
    except KeyboardInterrupt:
        with _unheard(*_ENDS):
            for process, _ in started:
                with suppress(ProcessLookupError):
                    os.kill(process.ident or 0, signal.SIGINT)
            for process, _ in started:
                process.join()
        raise
    if None in found:
        raise PartFailed
    return [result for results in found for result in results or ()]


def _started(part: Part) -> tuple[ForkProcess, Connection]:
    """Start a process; returns it and the end of a pipe where it sends its results."""
    answers, sending = _fork.Pipe(duplex=False)
    process = _fork.Process(target=_run, args=(part, sending))
    process.start()
    sending.close()
    return process, answers


def _run(part: Part, sending: Connection) -> None:
    os.setsid()
    with suppress(KeyboardInterrupt):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        sending.send(part())


def _told(answers: Connection) -> list[Result] | None:
    """Return what a process sends; None if it ends without."""
    try:
        results: list[Result] = answers.recv()
    except EOFError:
        return None
    return results


@contextmanager
def _unheard(*numbers: signal.Signals) -> Iterator[None]:
    """Ignore some signals in here."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
