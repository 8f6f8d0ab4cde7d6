"""The command line: `script/faults`, or `python -m reliability`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import structlog
import uvloop

from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE, checked_namespace
from reliability.beside import PartFailed, beside
from reliability.judgement import RULES
from reliability.report import markdown, summary
from reliability.run import Result, Say, run
from reliability.scenarios import SCENARIOS
from reliability.site import CannotBeDone
from reliability.soak import report, soak

_SHORT: Final = ["mixed", "cluster-mixed"]
"""What every change has to live through (.ci/run)."""

_EPILOG: Final = """\
what it is: a client with a ledger of its own (producers of every kind, workers that acknowledge, fail, vanish and come back
too late, a reader of events) on two of each service, into which faults are put. At the end the ledger, the records, the lists,
the counts and the events are held against each other. --list says which faults there are and what is looked for.

examples:
  script/faults --list
  script/faults kill-services --seconds 60 --seed 7    one scenario, repeatable as far as processes are
  script/faults all --seconds 60 --markdown            every scenario, as the table of docs/reliability.md
  script/faults short --seconds 20 --side-by-side      both at once, each on nats-servers of its own
  script/faults short --seconds 20 --namespaces 2      two systems at once on one nats-server
  script/faults soak --minutes 60 --rate 200           a steady load for an hour: does anything grow without end?

exit codes: 0 every promise was kept, 1 one was broken or nothing could be tried, 2 wrong use, 130 interrupted
"""


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise ValueError(text)
    return value


def _some(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="script/faults",
        description="Puts faults into a running system of its own and says which promises were broken.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="by name (--list); `short`, `all`, or `soak`")
    parser.add_argument("--list", action="store_true", help="say which scenarios and rules there are")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what all choices follow from (%(default)s)")
    parser.add_argument("--runs", type=int, default=1, metavar="N", help="each scenario N times, with seeds from --seed on")
    parser.add_argument("--seconds", type=_positive, default=60.0, metavar="S", help="of faults in each run (%(default)g)")
    parser.add_argument("--rate", type=_positive, metavar="N", help="requests of producers a second (40; soak: 200 jobs)")
    parser.add_argument(
        "--namespace",
        type=checked_namespace,
        default=DEFAULT_NAMESPACE,
        metavar="NAME",
        help="of the system, but for a soak (%(default)s)",
    )
    parser.add_argument(
        "--namespaces",
        type=_some,
        default=1,
        metavar="N",
        help="so many systems at once on the same nats-servers, each with its own load and faults (%(default)s)",
    )
    parser.add_argument(
        "--side-by-side", action="store_true", help="run the scenarios at once, each on nats-servers of its own; not for a soak"
    )
    parser.add_argument("--minutes", type=_positive, default=60.0, metavar="M", help="of a soak (%(default)g)")
    parser.add_argument("--kept", type=int, default=300, metavar="S", help="how long a soak's finished jobs stay (%(default)s)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="store the results")
    parser.add_argument("--markdown", action="store_true", help="print the table of docs/reliability.md")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep logs and data there, whatever happens")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        print(_listed())
        return 0
    # The outages are on purpose.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    logging.disable()
    # A shell starts what is in the background without; and what was started would survive a SIGTERM.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
    try:
        return _soak(options) if options.scenarios == ["soak"] else _faults(parser, options)
    except (KeyboardInterrupt, asyncio.CancelledError):
        _say("stopped")
        return 130


def _soak(options: argparse.Namespace) -> int:
    result = uvloop.run(soak(options.minutes, options.rate or 200.0, options.kept, say=_say, keep=options.keep))
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(result)))
    print(report(result))
    return int(not result.good)


def _faults(parser: argparse.ArgumentParser, options: argparse.Namespace) -> int:
    every = [name for name, scenario in SCENARIOS.items() if not scenario.planted]
    groups = {"all": every, "short": _SHORT}
    names = [name for given in options.scenarios for name in groups.get(given, [given])]
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown or not names:
        parser.error(f"there is no scenario {', '.join(unknown)}; see --list" if unknown else "name a scenario; see --list")
    if options.side_by_side:
        try:
            results = beside([partial(_runs, name, options, _called(name)) for name in names])
        except PartFailed:
            return 1
    else:
        results = [one for name in names for one in _runs(name, options, _say)]
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    if options.markdown:
        print(markdown(results))
    return int(not results or any(result.wrong for result in results))


def _runs(name: str, options: argparse.Namespace, say: Say) -> list[Result]:
    results: list[Result] = []
    for seed in range(options.seed, options.seed + options.runs):
        keep = options.keep / f"{name}-{seed}" if options.keep else None
        began = time.monotonic()
        say(f"{name}, seed {seed}: {SCENARIOS[name].about}")
        try:
            found = uvloop.run(
                run(
                    name,
                    seed,
                    options.seconds,
                    rate=options.rate or 40.0,
                    say=lambda text: say(f"  {text}"),
                    keep=keep,
                    namespaces=_namespaces(options.namespace, options.namespaces),
                )
            )
        except CannotBeDone as error:
            say(f"  left out: {error}")
            continue
        for result in found:
            print(summary(result), file=sys.stderr if options.markdown else sys.stdout, flush=True)
        say(f"  took {time.monotonic() - began:.0f} s")
        results += found
    return results


def _namespaces(first: str, number: int) -> list[str]:
    """The namespaces of so many systems: those after the first have a number."""
    return [first, *(checked_namespace(f"{first}-{place}") for place in range(2, number + 1))]


def _listed() -> str:
    lines = ["scenarios:"]
    lines += [f"  {name:<16} {scenario.about}" for name, scenario in SCENARIOS.items()]
    lines.append("what is looked for:")
    lines += [f"  {name:<16} {rule.__doc__}" for name, rule in RULES.items()]
    return "\n".join(lines)


def _called(name: str) -> Say:
    """Say things with the name of a scenario before each."""
    return lambda text: _say(f"{name}: {text}")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
