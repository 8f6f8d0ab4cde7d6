"""The command line: `python -m bench`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from bench.bars import BARS, judge
from bench.compare import Ratio, compare, costs, ratios
from bench.counts.cli import main as count
from bench.measure import InTurn, in_turn, measure, say
from bench.plan import Plan, ServerRefused
from bench.report import render, summarise
from bench.result import FORMAT, Report
from bench.scenarios import SCENARIOS
from bench.system import NoSystem, RunFile, read_run_file, started_system

_DEFAULTS: Final = Plan()
_QUICK: Final = Plan(connections=(32,), counts=(10,), duration=2.0, warmup=0.5, backlog=10_000, samples=250)

_EPILOG: Final = f"""\
scenarios:
{"".join(f"  {name:<9} {scenario.about}{chr(10)}" for name, scenario in SCENARIOS.items())}
bars of --check (those of the chosen scenarios):
{"".join(f"  {bar}{chr(10)}" for bar in BARS)}
examples:
  python -m bench                                   start a system, measure everything, stop it (about 3 minutes)
  python -m bench --quick --check                   a first impression and the bars (about 1 minute)
  python -m bench --url http://127.0.0.1:8080 --run-file data/run.json enqueue drain
  python -m bench --json before.json --repeat 3; …; python -m bench --json after.json --repeat 3
  python -m bench --compare before.json after.json
  python -m bench counts --check                    what operations cause, exactly, against the table
  git worktree add ../before HEAD~10; python -m bench --against ../before --rounds 5 enqueue drain whole

exit codes: 0 done, 1 a bar was missed, 2 wrong use, 3 nothing to measure, 130 interrupted
"""


def _positive_int(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_positive_int(part) for part in text.split(","))


def _positive(text: str) -> float:
    value = float(text)
    if not value > 0:
        raise ValueError(text)
    return value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="Measures an Open Job Spec server over HTTP, and what its processes spend on it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"what to measure: {', '.join(SCENARIOS)} (all)")
    server = parser.add_argument_group("the server (without --url or --run-file, one is started and stopped again)")
    server.add_argument("--url", help="measure the server at this URL; its jobs are wiped if it runs in test mode")
    server.add_argument("--run-file", type=Path, metavar="FILE", help="run.json of 'ojs-nats dev': its URL and processes")
    server.add_argument("--log", type=Path, metavar="FILE", help="add the output of each server that is started here to it")
    turns = parser.add_argument_group("two versions in turn")
    turns.add_argument("--against", type=Path, metavar="CHECKOUT", help="measure its server, too, and compare; over HTTP alone")
    turns.add_argument(
        "--rounds", type=_positive_int, default=5, metavar="N", help="how often each is started and measured (5)"
    )
    turns.add_argument(
        "--at-most",
        type=_positive,
        metavar="R",
        help="exit 1 if all processes' CPU per job in each round is over R times its; no further round once it isn't",
    )
    sizes = parser.add_argument_group("sizes")
    sizes.add_argument("--quick", action="store_true", help="fewer variants, shorter; explicit sizes still count")
    sizes.add_argument("--repeat", type=_positive_int, default=1, metavar="N", help="run everything N times, report medians")
    sizes.add_argument("--duration", type=_positive, metavar="S", help=f"seconds per rate ({_DEFAULTS.duration:g})")
    sizes.add_argument("--warmup", type=_positive, metavar="S", help=f"uncounted seconds before ({_DEFAULTS.warmup:g})")
    sizes.add_argument("--connections", type=_numbers, metavar="N,N", help="for rates (1,32,128)")
    sizes.add_argument("--counts", type=_numbers, metavar="N,N", help="jobs per fetch in drain (1,10)")
    sizes.add_argument("--backlog", type=_positive_int, metavar="N", help=f"jobs to drain ({_DEFAULTS.backlog:,})")
    sizes.add_argument("--rate", type=_positive, metavar="N", help=f"pushes a second in dispatch ({_DEFAULTS.rate:g})")
    sizes.add_argument("--samples", type=_positive_int, metavar="N", help=f"pushes in dispatch ({_DEFAULTS.samples})")
    sizes.add_argument("--batches", type=_numbers, metavar="N,N", help="jobs per batch (10,100,1000,10000)")
    sizes.add_argument("--blocked", type=_positive_int, metavar="N", help=f"jobs in blocked that wait ({_DEFAULTS.blocked:,})")
    sizes.add_argument("--transitions", type=_positive, metavar="N", help=f"a second in projector ({_DEFAULTS.transitions:g})")
    sizes.add_argument("--sustained", type=_positive, metavar="S", help=f"seconds of them ({_DEFAULTS.sustained:g})")
    output = parser.add_argument_group("output")
    output.add_argument("--json", type=Path, metavar="FILE", help="store all figures, for --compare")
    output.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    output.add_argument("--compare", nargs=2, type=Path, metavar=("A", "B"), help="measure nothing, print B against A")
    return parser


def main(arguments: Sequence[str] | None = None, *, in_turn: InTurn = in_turn) -> int:
    """Run the command; returns its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    if given[:1] == ["counts"]:
        return count(given[1:])
    parser = _parser()
    options = parser.parse_args(given)
    if options.compare:
        first, second = options.compare
        return _compare(first, second)
    unknown = [name for name in options.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"there is no scenario {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    names = [name for name in SCENARIOS if name in options.scenarios or not options.scenarios]
    bars = [bar for bar in BARS if bar.scenario in names]
    if options.against and (options.url or options.run_file or options.check or options.repeat > 1):
        parser.error("--against starts both servers itself, --rounds times: leave out --url, --run-file, --check and --repeat")
    if options.at_most and not options.against:
        parser.error("--at-most goes with --against")
    if options.check and not bars:
        parser.error("no bar belongs to the chosen scenarios; see --help")
    # Reference counting frees all that a run leaves behind; a collection in the middle would look like the server's.
    gc.disable()
    try:
        reports = uvloop.run(_run(options, names, in_turn))
    except (NoSystem, ServerRefused, OSError, TimeoutError) as error:
        say(f"bench: {str(error) or 'timed out'}")
        return 3
    except (KeyboardInterrupt, asyncio.CancelledError):
        say("bench: stopped")
        return 130
    if options.json:
        _store(reports, options.json)
    if len(reports) == 2:
        before, after = reports
        print(compare(before, after))
        return _judged_costs(before, after, options.at_most)
    [report] = reports
    print(render(report))
    if not options.check:
        return 0
    verdicts = judge(bars, summarise(report.results))
    print()
    print("\n".join(f"- {verdict}" for verdict in verdicts))
    return 0 if all(verdict.met for verdict in verdicts) else 1


def _store(reports: Sequence[Report], path: Path) -> None:
    """The one before beside it."""
    paths = [path] if len(reports) == 1 else [path.with_stem(f"{path.stem}-before"), path]
    for report, place in zip(reports, paths, strict=True):
        place.write_bytes(msgspec.json.format(msgspec.json.encode(report)))


def _judged_costs(before: Report, after: Report, at_most: float | None) -> int:
    if at_most is None:
        return 0
    found = costs(ratios(before, after))
    over = _dearer(found, at_most)
    print()
    for one in over:
        print(f"- **missed**: {one.scenario} ({one.variant}) costs {one.lowest:.2f} to {one.highest:.2f} times what it did")
    if not found:
        print("- **missed**: the CPU time of neither server could be read")
    return 1 if over or not found else 0


def _nothing_dearer(before: Report, after: Report, at_most: float | None) -> bool:
    """Whether no further round can make `_judged_costs` find something too dear."""
    if at_most is None:
        return False
    found = costs(ratios(before, after))
    return bool(found) and not _dearer(found, at_most)


def _dearer(found: Sequence[Ratio], at_most: float) -> list[Ratio]:
    return [one for one in found if one.lowest > at_most]


def _compare(first: Path, second: Path) -> int:
    try:
        reports = [msgspec.json.decode(path.read_bytes(), type=Report) for path in (first, second)]
        if any(report.format != FORMAT for report in reports):
            raise ValueError("a report of another format")
        print(compare(reports[0], reports[1]))
    except (OSError, ValueError, msgspec.DecodeError) as error:
        say(f"bench: {error}")
        return 3
    return 0


def _plan(options: argparse.Namespace) -> Plan:
    given = {name: value for name in Plan.__struct_fields__ if (value := getattr(options, name)) is not None}
    return msgspec.structs.replace(_QUICK if options.quick else _DEFAULTS, **given)


@asynccontextmanager
async def _system(options: argparse.Namespace) -> AsyncIterator[RunFile]:
    if options.run_file:
        run = read_run_file(options.run_file)
        yield msgspec.structs.replace(run, url=options.url or run.url)
    elif options.url:
        yield RunFile(pid=0, url=options.url)
    else:
        say("starting ojs-nats dev …")
        async with started_system(options.log) as run:
            yield run


async def _run(options: argparse.Namespace, names: Sequence[str], in_turn: InTurn) -> Sequence[Report]:
    """One report, or that of another version and this one's."""
    # Without this a SIGTERM would leave the system behind that was started here.
    me = asyncio.current_task()
    assert me is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    plan = _plan(options)
    if options.against:
        # The verdict is on what each round shows, so it stands with the first that shows nothing.
        enough = partial(_nothing_dearer, at_most=options.at_most)
        return await in_turn(options.against.resolve(), plan, names, options.rounds, options.log, enough)
    async with _system(options) as run:
        return [await measure(run, plan, names, options.repeat)]
