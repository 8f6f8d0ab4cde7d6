"""Ends of handlers, by name: what programs return and raise, the strange with the usual. A worker's process finds them here."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from typing import Any, Final

from ojs_nats import App, Snooze
from ojs_nats.worker import DeadLetter, Discard, RetryLater

released: Final = threading.Event()
"""Lets those that never end by themselves end."""


class Panic(BaseException):
    """As pyo3's PanicException is, and gevent's Timeout."""


class Numbered(Exception):
    def __str__(self) -> str:
        number: str = self.args[0]
        return number


class Unprintable(Exception):
    def __str__(self) -> str:
        raise Panic("no text")


class Classless(Exception):
    @property  # type: ignore[misc]  # it may be hidden, whatever a checker says of it
    def __class__(self) -> Any:
        raise RuntimeError("no class")


class _NoName(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in {"__name__", "__qualname__", "__module__"}:
            raise RuntimeError("no name")
        return super().__getattribute__(name)


class Nameless(Exception, metaclass=_NoName):
    pass


class Mean(float):
    """As numpy's float64 is a float."""


class Forgetful(RetryLater):
    def __init__(self) -> None:  # it doesn't call the class above
        Exception.__init__(self, "forgetful")


class Unrepresentable:
    def __repr__(self) -> str:
        raise RuntimeError("no repr")


def _nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def _circular() -> BaseException:
    error = ValueError("round and round")
    error.__cause__ = error
    return error


def _endless() -> int:
    return _endless() + 1


RETURNED: Final[dict[str, tuple[Callable[[], Any], Any]]] = {
    "nothing": (lambda: None, None),
    "a value": (lambda: {"sent": [1, "two", None]}, {"sent": [1, "two", None]}),
    "numbers as keys": (lambda: {1: "a", 2: "b"}, {"1": "a", "2": "b"}),
    "a number of a subclass": (lambda: [Mean(0.5)], [0.5]),
}
"""Results that are kept, and what they are as JSON."""

UNWRITABLE: Final[dict[str, Callable[[], Any]]] = {
    "an object": object,
    "an object without a repr": Unrepresentable,
    "half a surrogate pair": lambda: os.fsdecode(b"invoice-\xe9.pdf"),
    "a tuple as key": lambda: {("a", 1): 1},
    "None as key": lambda: {None: 1},
    "a boolean as key": lambda: {True: 1},
    "not a number": lambda: [float("nan")],
    "infinity": lambda: {"a": float("inf")},
    "nested without end": lambda: _nested(10_000),
}
"""Results that JSON can't say."""

RAISED: Final[dict[str, tuple[Callable[[], BaseException], str]]] = {
    "an error": (lambda: ValueError("no"), "ValueError"),
    "a BaseException": (lambda: Panic("index out of bounds"), "Panic"),
    "a number as text": (lambda: Numbered(404), "Numbered"),
    "an error without a text": (Unprintable, "Unprintable"),
    "an error without a class": (lambda: Classless("no"), "Classless"),
    "an error without a name": (lambda: Nameless("no"), "Nameless"),
    "StopIteration": (lambda: next(iter(list[BaseException]())), "RuntimeError"),
    "GeneratorExit": (GeneratorExit, "GeneratorExit"),
    "exit": (lambda: SystemExit(3), "RuntimeError"),
    "cancelled": (asyncio.CancelledError, "CancelledError"),
    "half a surrogate pair": (lambda: FileNotFoundError(os.fsdecode(b"invoice-\xe9.pdf")), "FileNotFoundError"),
    "five megabytes": (lambda: ValueError("row " * 1_250_000), "ValueError"),
    "a group": (lambda: ExceptionGroup("several", [ValueError("a"), KeyError("b")]), "ExceptionGroup"),
    "a cause that is itself": (_circular, "ValueError"),
    "a subclass that forgets its delay": (Forgetful, "Forgetful"),
    "Discard": (lambda: Discard("never"), "Discard"),
    "DeadLetter": (lambda: DeadLetter("look at it"), "DeadLetter"),
    "RetryLater": (lambda: RetryLater("1s"), "RetryLater"),
    "a pause of a century": (lambda: Snooze("36500d"), "ValueError"),
}
"""What handlers raise, and the type that the server is given for it."""

PUT_OFF: Final[dict[str, Callable[[], BaseException]]] = {"Snooze": lambda: Snooze("1s")}
"""What handlers raise that is no failure."""

LATE: Final = frozenset({"never"})
"""Ends that the job's time-out brings."""

ALL: Final = (*RETURNED, *UNWRITABLE, *(f"raises {name}" for name in RAISED), *PUT_OFF, *LATE, "recursion")


def end(name: str) -> Any:
    """Return or raise what is called `name`, in any thread or process."""
    if name == "recursion":
        return _endless()
    if name in RETURNED:
        return RETURNED[name][0]()
    if name in UNWRITABLE:
        return UNWRITABLE[name]()
    if (put_off := PUT_OFF.get(name)) is not None:
        raise put_off()
    if name in LATE:
        released.wait(60)
        return "too late"
    make, _ = RAISED[name.removeprefix("raises ")]
    raise make()


app = App("http://127.0.0.1:9")  # those of a process need an address alone


@app.job("ends.process", runs_in="process")
def in_a_process(name: str) -> Any:
    return end(name)
