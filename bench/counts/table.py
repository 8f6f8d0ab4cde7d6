"""The table of counts, and what is different from it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median_low
from typing import Final, NamedTuple

from msgspec import Struct

CALLS: Final = 0.05
"""By which share a process may call more functions than the table says: sockets split what they carry by chance."""
FEWEST_CALLS: Final = 120
"""And by which number, for those that hardly do anything."""
BYSTANDER: Final = 100
"""The calls of a process that makes fewer aren't compared: what it does at times of its own is more."""
SIZE: Final = 0.02
"""By which share bytes may differ: numbers of messages, and times that something took, have more digits or fewer."""
FEWEST_BYTES: Final = 24
TURN_CALLS: Final = 800
"""What two turns of the projector take: records that come within a quarter of a second may take one, two or three."""
_BY_TURN: Final = ("out ojs.control.events",)
"""Messages of each turn of the projector: the records of several jobs that come at once may take one turn or two."""
_ANSWERS: Final = "in answer to ojs.events."
_BATCHED: Final = "out ojs.events."
"""Messages with headers of a batch if a turn has many of them, so that the bytes of several aren't always the same."""
_BEFORE_S: Final = 0.01
_AFTER_S: Final = 0.06
_READS: Final = ("$JS.API.DIRECT.GET", "$JS.API.STREAM.MSG.GET")
_CONSUMERS: Final = {
    "pulls": "out $JS.API.CONSUMER.MSG.NEXT",
    "acks": "out $JS.ACK",
    "creates": "out $JS.API.CONSUMER.CREATE",
}


class Sent(Struct, frozen=True, order=True):
    """Messages of one kind, and their bytes."""

    messages: int
    bytes: int


class Counts(Struct, frozen=True):
    """What one operation causes: `messages` by process and kind of message, and function calls by process."""

    messages: dict[str, dict[str, Sent]]
    calls: dict[str, int]


class Table(Struct, frozen=True):
    """Counts by operation. `python` is the minor version that the calls were counted with."""

    python: str
    operations: dict[str, Counts]


class Window(NamedTuple):
    """What was seen in one repetition, by process: messages and bytes by kind, and calls by function."""

    messages: Mapping[str, Mapping[str, Sent]]
    calls: Mapping[str, Mapping[str, int]]


def near(calls: Mapping[str, Mapping[str, int]], moments: Sequence[float], bucket_s: float) -> Counter[str]:
    """Return the calls by function in those stretches of time that something crossed the wire in, or shortly before."""
    wanted = {
        bucket for at in moments for bucket in range(int((at - _BEFORE_S) / bucket_s), int((at + _AFTER_S) / bucket_s) + 1)
    }
    found: Counter[str] = Counter()
    for bucket, functions in calls.items():
        if int(bucket) in wanted:
            found.update(functions)
    return found


def typical(windows: Sequence[Window]) -> tuple[Counts, dict[str, Counter[str]]]:
    """Return the counts of an operation, and its calls by process and function.

    Each kind of message has the median of its repetitions, and each function the lower quartile of its calls. So what services
    do at times of their own doesn't count. A process without a message has no part in the operation, and no calls.
    """
    messages: dict[str, dict[str, Sent]] = {}
    functions: dict[str, Counter[str]] = {}
    for process in windows[0].calls:
        kinds = sorted({kind for window in windows for kind in window.messages[process]})
        seen = {kind: median_low([window.messages[process].get(kind, Sent(0, 0)) for window in windows]) for kind in kinds}
        if present := {kind: sent for kind, sent in seen.items() if sent.messages}:
            messages[process] = present
            names = {name for window in windows for name in window.calls[process]}
            functions[process] = Counter({name: _quartile(windows, process, name) for name in names})
    return Counts(messages, {process: found.total() for process, found in functions.items()}), functions


def _quartile(windows: Sequence[Window], process: str, function: str) -> int:
    return sorted(window.calls[process].get(function, 0) for window in windows)[len(windows) // 4]


def differences(table: Table, found: Table) -> Iterator[str]:
    """Yield a line for each count that isn't what the table says.

    Messages must be as many, by kind. Bytes may differ by 2 % or 24 for each message; those of several events aren't compared.
    The calls of a process may be more by 5 %, or 120, and two turns of the projector where it reads several records. Calls are
    compared only if both were counted with the same minor version of Python.
    """
    yield from (f"{name}: not counted, but in the table" for name in table.operations if name not in found.operations)
    for name, new in found.operations.items():
        old = table.operations.get(name)
        if old is None:
            yield f"{name}: not in the table"
            continue
        for process in dict.fromkeys((*old.messages, *new.messages)):
            yield from _messages(f"{name}, {process}", old.messages.get(process, {}), new.messages.get(process, {}))
        if table.python == found.python:
            for process, calls in new.calls.items():
                was = old.calls.get(process, 0)
                turn = TURN_CALLS if _number(new.messages.get(process, {}), "in $KV.ojs.") > 1 else 0
                if (was >= BYSTANDER or not was) and calls > was + max(FEWEST_CALLS, CALLS * was) + turn:
                    yield f"{name}, {process}: {calls:,} function calls, not {was:,}"


def _number(messages: Mapping[str, Sent], start: str) -> int:
    return sum(sent.messages for kind, sent in messages.items() if kind.startswith(start))


def _messages(where: str, old: Mapping[str, Sent], new: Mapping[str, Sent]) -> Iterator[str]:
    if bool(_number(new, _ANSWERS)) != bool(_number(old, _ANSWERS)):  # of events sent together the last alone has one
        yield f"{where}: {_number(new, _ANSWERS)} messages {_ANSWERS}, not {_number(old, _ANSWERS)}"
    for kind in dict.fromkeys((*old, *new)):
        was, now = old.get(kind, Sent(0, 0)), new.get(kind, Sent(0, 0))
        if kind.startswith(_ANSWERS) or (kind.startswith(_BY_TURN) and was.messages and now.messages):
            continue
        if was.messages != now.messages:
            yield f"{where}: {now.messages} messages {kind}, not {was.messages}"
        elif kind.startswith(_BATCHED) and was.messages > 1:
            continue
        elif abs(now.bytes - was.bytes) > max((FEWEST_BYTES + 64 * kind.startswith(_BATCHED)) * was.messages, SIZE * was.bytes):
            yield f"{where}: {now.bytes:,} bytes in {was.messages} messages {kind}, not {was.bytes:,}"


def rows(table: Table) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the sums of each operation."""
    for name, counts in table.operations.items():
        kinds = [(kind, sent) for found in counts.messages.values() for kind, sent in found.items()]
        sums = {
            "messages out": sum(sent.messages for kind, sent in kinds if kind.startswith("out")),
            "in": sum(sent.messages for kind, sent in kinds if kind.startswith("in")),
            "bytes": sum(sent.bytes for _, sent in kinds),
            "reads": sum(sent.messages for kind, sent in kinds if kind.startswith(tuple(f"out {read}" for read in _READS))),
        }
        for title, start in _CONSUMERS.items():
            sums[title] = sum(sent.messages for kind, sent in kinds if kind.startswith(start))
        yield name, sums | {"calls": sum(counts.calls.values())}
