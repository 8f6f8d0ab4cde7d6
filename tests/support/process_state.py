"""State that a process has once, such as its logging: if a test leaves it changed, later ones depend on that test."""

from __future__ import annotations

import asyncio.events
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from structlog._config import _CONFIG as STRUCTLOG  # structlog has no public way to its whole state
from structlog._config import BoundLoggerLazyProxy

from ojs_engine.telemetry import logs

Read = dict[str, Any]
"""Values by their names; a name that isn't there is one that nothing was set for."""

_SIGNALS: Final = tuple(sorted(signal.valid_signals() - {signal.SIGALRM}))
"""All but the one that pytest-timeout sets for each test."""
_ROOT: Final = logging.getLogger()
_OF_PYTEST: Final = "PYTEST_CURRENT_TEST"
_UNSET: Final = object()

_cached: list[BoundLoggerLazyProxy] = []
"""Loggers of structlog that keep the configuration of their first line: no later one counts, nor `capture_logs`."""


def _set(logger: BoundLoggerLazyProxy, name: str, value: object) -> None:
    object.__setattr__(logger, name, value)
    if name == "bind":  # a logger is cached by this attribute
        _cached.append(logger)


BoundLoggerLazyProxy.__setattr__ = _set  # type: ignore[method-assign, assignment]  # it sees each


def _read_structlog() -> Read:
    return {**vars(STRUCTLOG), "processors in the list": tuple(STRUCTLOG.default_processors)}


def _restore_structlog(before: Read) -> None:
    processors = before["processors in the list"]
    vars(STRUCTLOG).clear()
    vars(STRUCTLOG).update({name: value for name, value in before.items() if name != "processors in the list"})
    if isinstance(STRUCTLOG.default_processors, list):
        STRUCTLOG.default_processors[:] = processors


def _read_cached() -> Read:
    return {f"cached logger {number}": each for number, each in enumerate(_cached)}


def _restore_cached(before: Read) -> None:
    for each in _cached[len(before) :]:
        vars(each).pop("bind", None)
    del _cached[len(before) :]


def _read_logging() -> Read:
    read: Read = {
        "root": _of_logger(_ROOT),
        "logging.disable": _ROOT.manager.disable,
        "captureWarnings": logging._warnings_showwarning is not None,  # type: ignore[attr-defined]
        "verbosity.debug": logs.verbosity.debug,
    }
    for name, logger in _ROOT.manager.loggerDict.items():
        if isinstance(logger, logging.Logger) and (found := _of_logger(logger)) != _FRESH:
            read[name] = found
    return read


def _of_logger(logger: logging.Logger) -> tuple[Any, ...]:
    handlers = tuple(each for each in logger.handlers if type(each) is not logging.NullHandler)
    return logger.level, handlers, tuple(logger.filters), logger.disabled, logger.propagate


_FRESH: Final = (logging.NOTSET, (), (), False, True)


def _restore_logging(before: Read) -> None:
    logging.captureWarnings(capture=before["captureWarnings"])
    logging.disable(before["logging.disable"])
    logs.verbosity.debug = before["verbosity.debug"]
    _restore_logger(_ROOT, before["root"])
    for name in _read_logging().keys() - {"root", "logging.disable", "captureWarnings", "verbosity.debug"}:
        _restore_logger(logging.getLogger(name), before.get(name, _FRESH))


def _restore_logger(logger: logging.Logger, before: tuple[Any, ...]) -> None:
    level, handlers, filters, logger.disabled, logger.propagate = before
    logger.handlers[:] = handlers
    logger.filters[:] = filters
    logger.setLevel(level)


def _read_environment() -> Read:
    read = dict(os.environ)
    read.pop(_OF_PYTEST, None)
    return read


def _restore_environment(before: Read) -> None:
    for name in os.environ.keys() - before.keys() - {_OF_PYTEST}:
        del os.environ[name]
    os.environ.update(before)


def _read_policy() -> Read:
    policy = vars(asyncio.events)["_event_loop_policy"]  # asking for it would make one
    return {} if policy is None or type(policy).__module__.startswith("asyncio.") else {"policy": policy}


def _restore_policy(before: Read) -> None:
    vars(asyncio.events)["_event_loop_policy"] = before.get("policy")  # the function that sets it is deprecated


def _read_signals() -> Read:
    read: Read = {_named(number): signal.getsignal(number) for number in _SIGNALS}
    read["those that are blocked"] = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    return read


def _restore_signals(before: Read) -> None:
    for number in _SIGNALS:
        if before[_named(number)] is not signal.getsignal(number):
            signal.signal(number, before[_named(number)])
    signal.pthread_sigmask(signal.SIG_SETMASK, before["those that are blocked"])


def _named(number: int) -> str:
    return number.name if isinstance(number, signal.Signals) else str(number)


def _read_folder() -> Read:
    try:
        return {"folder": str(Path.cwd())}
    except FileNotFoundError:  # the test has removed it
        return {}


def _restore_folder(before: Read) -> None:
    os.chdir(before["folder"])


def _read_path() -> Read:
    return {"folders": tuple(sys.path)}


def _restore_path(before: Read) -> None:
    sys.path[:] = before["folders"]


def _read_modules() -> Read:
    return {name: id(module) for name, module in sys.modules.items()}


def _restore_modules(before: Read) -> None:
    for name in _made_up(before):
        del sys.modules[name]


def _made_up(before: Read) -> set[str]:
    """Return the new modules that aren't found by their names: they come from a folder of a test."""
    return {name for name in sys.modules.keys() - before.keys() if not _is_found(name)}


def _is_found(name: str) -> bool:
    module = sys.modules[name]
    file = getattr(module, "__file__", None)
    if not isinstance(file, str):
        return True  # it comes with Python, or with a library that makes modules
    place = Path(file)
    first = getattr(module.__spec__, "name", name).partition(".")[0]  # of one that has several names, its own
    folders = [Path(folder) for folder in sys.path if folder]
    if any(place.is_relative_to(folder / first) for folder in folders):
        return True
    return place.parent in folders and place.name.partition(".")[0] == first


def _changed(before: Read, after: Read) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name, _UNSET) != after.get(name, _UNSET)}


@dataclass(frozen=True)
class Part:
    """A part of the state: how it is read and put back, and which remedy a test has."""

    name: str
    read: Callable[[], Read]
    restore: Callable[[Read], None]
    remedy: str
    left: Callable[[Read, Read], Iterable[str]] = _changed


_PATCHED: Final = "use monkeypatch"
_KEPT: Final = "use the fixture `logging_kept`"
PARTS: Final = (
    Part("structlog's configuration", _read_structlog, _restore_structlog, _KEPT),
    Part("loggers that structlog has cached", _read_cached, _restore_cached, _KEPT),
    Part("logging", _read_logging, _restore_logging, _KEPT),
    Part("os.environ", _read_environment, _restore_environment, _PATCHED),
    Part("the policy of event loops", _read_policy, _restore_policy, "set it back"),
    Part("handlers of signals", _read_signals, _restore_signals, "use the fixture `signals_kept`"),
    Part("the working folder", _read_folder, _restore_folder, _PATCHED),
    Part("sys.path", _read_path, _restore_path, _PATCHED),
    Part("sys.modules", _read_modules, _restore_modules, _PATCHED, lambda before, _: _made_up(before)),
)
LOGGING: Final = PARTS[:3]
SIGNALS: Final = (PARTS[5],)


class Taken:
    """The state of this process at one moment."""

    def __init__(self, parts: Iterable[Part] = PARTS) -> None:
        self._before: Final = [(part, part.read()) for part in parts]

    def restore(self) -> list[str]:
        """Put back what isn't as it was; returns what that is, a part a line."""
        left = []
        for part, before in self._before:
            after = part.read()
            if before != after and (names := sorted(part.left(before, after))):
                left.append(f"{part.name}: {', '.join(names)} ({part.remedy})")
                part.restore(before)
        return left


def told(left: list[str]) -> str:
    """Return what a test is failed with that has left this."""
    return "This test leaves state of the whole process changed:\n" + "\n".join(f"  {each}" for each in left)
