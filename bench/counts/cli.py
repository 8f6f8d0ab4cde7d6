"""`python -m bench counts`: what operations cause, counted exactly.

A system is started with each service in a process of its own, nothing else to do, and one operation at a time over HTTP. A
proxy between each service and nats-server reads the messages, `sys.setprofile` in each service's process counts the calls of
Python functions. What is counted begins with the operation and ends once nothing crosses the wire for 0.28 seconds. Each
operation is done once first, which isn't counted, and then repeated; the operations take turns. `--check` repeats an operation
until it is as in the table, three times at least. What services do at
times of their own doesn't count: signs of life and measurements of the clock and of the room that is left, pulls in the place
of those that have ended, and calls more than 60 ms after a request or message. Of the rest each kind of message gets the median
of its repetitions, and each function the lower quartile of its calls.

The table (`bench/counts/table.json`) is what an operation causes at this commit. Messages don't depend on the machine or its
load. Calls depend on the version of Python and of the libraries.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from bench.counts.counted import BUCKET_S
from bench.counts.operations import OPERATIONS, TooLate
from bench.counts.system import Counted, counted_system
from bench.counts.table import Sent, Table, Window, differences, near, rows, typical
from bench.measure import say
from bench.report import table
from bench.system import NoSystem

_TABLE: Final = Path(__file__).with_name("table.json")
_HERE: Final = Path(__file__).parent.parent.parent
_REPEAT: Final = 9
_FEWEST: Final = 3
"""Repetitions of an operation, at least, until it may be as in the table."""
_TRIES: Final = 5
_VARIES: Final = "counted"
_MOST_FUNCTIONS: Final = 8
_ENGINE: Final = "ojs_engine/(base|domain|jetstream|store)/"
_PYTHON: Final = f"{sys.version_info.major}.{sys.version_info.minor}"

Functions = dict[str, dict[str, Counter[str]]]
"""Calls by operation, process and function."""


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench counts", description=__doc__ and __doc__.split("\n", 1)[0])
    parser.add_argument("--against", metavar="COMMIT", help="count that commit, too, and show what is different")
    parser.add_argument("--check", action="store_true", help="exit 1 if anything is different from the table")
    parser.add_argument("--write", action="store_true", help="renew the table")
    parser.add_argument("--table", type=Path, default=_TABLE, metavar="FILE", help="another table for --check and --write")
    parser.add_argument("--kinds", action="store_true", help="show the messages by process and kind")
    parser.add_argument("--repeat", type=int, default=_REPEAT, metavar="N", help=f"repetitions of each operation ({_REPEAT})")
    options = parser.parse_args(arguments)
    try:
        known = msgspec.json.decode(options.table.read_bytes(), type=Table) if options.check else None
        found, functions = uvloop.run(_count(_HERE, options.repeat, known))
        earlier = None
        if options.against:
            earlier = _commit(options.against, options.repeat)
    except (NoSystem, OSError, TimeoutError) as error:
        say(f"bench: {str(error) or 'timed out'}")
        return 3
    print(_rendered(found, kinds=options.kinds))
    print(_passed(functions))
    if earlier is not None:
        before, before_functions = earlier
        print(f"\nDifferent from {options.against}:")
        print("\n".join(differences(before, found)) or "nothing")
        print("\n".join(_functions(before_functions, functions)))
    if options.write:
        options.table.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    return _checked(known, found) if known is not None else 0


def _checked(known: Table, found: Table) -> int:
    if known.python != found.python:
        print(f"WARNING: function calls aren't compared: the table is of Python {known.python}, this is {found.python}")
    wrong = list(differences(known, found))
    print("\n".join(["", *(f"- {line}" for line in wrong)]) if wrong else "\nas in the table")
    if wrong:
        print("If that is meant: python -m bench counts --write, and commit the table with what changes it.")
    return 1 if wrong else 0


def _commit(name: str, repeat: int) -> tuple[Table, Functions]:
    with tempfile.TemporaryDirectory(prefix="ojs-counts-") as folder:
        place = Path(folder) / "before"
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(place), name], cwd=_HERE, check=True)
        try:
            return uvloop.run(_count(place, repeat))
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", str(place)], cwd=_HERE, check=True)


async def _count(checkout: Path, repeat: int, known: Table | None = None) -> tuple[Table, Functions]:
    """Count `repeat` repetitions of each operation; with a table, only until the operation is as it says."""
    windows: dict[str, list[Window]] = {name: [] for name in OPERATIONS}
    async with counted_system(checkout, _VARIES) as system:
        await system.settle()
        say(f"counting in {checkout}")
        for name in OPERATIONS:
            await _window(system, name)
        for turn in range(1, repeat + 1):
            for name, found in windows.items():
                if known is None or turn <= _FEWEST or _differs(known, name, found):
                    found.append(await _window(system, name))
    both = {name: typical(found) for name, found in windows.items()}
    return (
        Table(_PYTHON, {name: counts for name, (counts, _) in both.items()}),
        {name: functions for name, (_, functions) in both.items()},
    )


def _differs(known: Table, name: str, found: list[Window]) -> bool:
    counts, _ = typical(found)
    operations = {one: old for one, old in known.operations.items() if one == name}
    return any(differences(Table(known.python, operations), Table(_PYTHON, {name: counts})))


async def _window(system: Counted, name: str) -> Window:
    for _ in range(_TRIES):
        with contextlib.suppress(TooLate):
            return await _once(system, name)
    raise NoSystem(f"the machine is too busy to count {name}")


async def _once(system: Counted, name: str) -> Window:
    steps = OPERATIONS[name](system, f"{_VARIES}-{name.replace(' ', '-')}")
    await anext(steps)
    await system.settle()
    await system.taken()
    await anext(steps)
    await system.settle()
    traffic, calls, requests = await system.taken()
    messages = {
        process: {str(kind): Sent(number, found.size[kind]) for kind, number in found.messages.items()}
        for process, found in traffic.items()
    }
    await anext(steps, None)
    moments = [*requests, *(moment for found in traffic.values() for moment in found.moments)]
    return Window(messages, {process: near(found, moments, BUCKET_S) for process, found in calls.items()})


def _rendered(found: Table, *, kinds: bool) -> str:
    sums = list(rows(found))
    text = table(["operation", *sums[0][1]], [[name, *(f"{value:,}" for value in row.values())] for name, row in sums], left=1)
    processes = list(dict.fromkeys(one for counts in found.operations.values() for one in counts.calls))
    calls = [[name, *(f"{counts.calls.get(one, 0):,}" for one in processes)] for name, counts in found.operations.items()]
    text += f"\n\nFunction calls by process, Python {found.python}:\n\n" + table(["operation", *processes], calls, left=1)
    if not kinds:
        return text
    lines = [
        [name, process, kind, f"{sent.messages:,}", f"{sent.bytes:,}"]
        for name, counts in found.operations.items()
        for process, by_kind in counts.messages.items()
        for kind, sent in by_kind.items()
    ]
    return text + "\n\n" + table(["operation", "process", "kind", "messages", "bytes"], lines, left=3)


def _passed(functions: Functions) -> str:
    """Return how much of our code each operation passes through; `core` is the engine's part of a plain job's, and all of
    the layer of NATS and of transitions.
    """
    sources = [file for part in ("shared", "services") for file in (_HERE / part).rglob("ojs_*/**/*.py")]
    lines = {re.sub(r".*/(?=ojs_\w+/)", "", str(file)): len(file.read_bytes().splitlines()) for file in sources}
    passed = {name: {one for calls in by.values() for one in calls if one.startswith("ojs_")} for name, by in functions.items()}
    passed["core"] = {one for one in passed["whole job"] | passed["retry"] if re.match(_ENGINE, one)}
    whole = {file for file in lines if file.startswith(("ojs_engine/jetstream/", "ojs_engine/domain/transitions/"))}
    rows = []
    for name, ours in passed.items():
        files = {one.split(":")[0] for one in ours} | (whole if name == "core" else set())
        rows.append([name, f"{len(ours):,}", f"{len(files):,}", f"{sum(lines[file] for file in files):,}"])
    return "\nOurs that they pass through:\n\n" + table(["operation", "functions", "modules", "their lines"], rows, left=1)


def _functions(before: Functions, after: Functions) -> list[str]:
    """Return the functions whose calls have changed most, by operation and process."""
    lines = []
    for name, processes in after.items():
        for process, calls in processes.items():
            was = before.get(name, {}).get(process, Counter())
            changed = {one: calls[one] - was[one] for one in {*calls, *was} if calls[one] != was[one]}
            most = sorted(changed.items(), key=lambda item: -abs(item[1]))[:_MOST_FUNCTIONS]
            lines += [f"{name}, {process}: {change:+,} {function}" for function, change in most]
    return lines
