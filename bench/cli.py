"""The command line: `python -m bench`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import shlex
import signal
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import msgspec
import uvloop

from bench.bars import BARS, judge
from bench.client import Target
from bench.compare import compare
from bench.messages import timestamp
from bench.plan import Bench, Plan, ServerRefused
from bench.report import render, summarise
from bench.result import FORMAT, Report, Result
from bench.scenarios import SCENARIOS
from bench.system import NoSystem, RunFile, machine, pids_of, read_run_file, started_system

_DEFAULTS: Final = Plan()
_QUICK: Final = Plan(connections=(32,), counts=(10,), duration=2.0, warmup=0.5, backlog=10_000, samples=250, queues=2_000)

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
    server.add_argument("--log", type=Path, metavar="FILE", help="keep the output of the server that is started here")
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
    sizes.add_argument("--delayed", type=_positive_int, metavar="N", help=f"jobs pending in delays ({_DEFAULTS.delayed:,})")
    sizes.add_argument("--spread", type=_positive, metavar="S", help=f"seconds over which they are due ({_DEFAULTS.spread:g})")
    sizes.add_argument("--members", type=_numbers, metavar="N,N", help="of workflows (10,100,1000,10000; chains to 1000)")
    sizes.add_argument("--batches", type=_numbers, metavar="N,N", help="jobs per batch (10,100,1000,10000)")
    sizes.add_argument("--crons", type=_positive_int, metavar="N", help=f"cron entries due at once ({_DEFAULTS.crons:,})")
    sizes.add_argument("--queues", type=_positive_int, metavar="N", help=f"queues in queues ({_DEFAULTS.queues:,})")
    sizes.add_argument("--blocked", type=_positive_int, metavar="N", help=f"jobs in blocked that wait ({_DEFAULTS.blocked:,})")
    sizes.add_argument("--pollers", type=_positive_int, metavar="N", help=f"long polls in idle ({_DEFAULTS.pollers:,})")
    sizes.add_argument("--records", type=_positive_int, metavar="N", help=f"job records in index ({_DEFAULTS.records:,})")
    sizes.add_argument("--transitions", type=_positive, metavar="N", help=f"a second in projector ({_DEFAULTS.transitions:g})")
    sizes.add_argument("--sustained", type=_positive, metavar="S", help=f"seconds of them ({_DEFAULTS.sustained:g})")
    output = parser.add_argument_group("output")
    output.add_argument("--json", type=Path, metavar="FILE", help="store all figures, for --compare")
    output.add_argument("--check", action="store_true", help="exit 1 when a bar is missed")
    output.add_argument("--compare", nargs=2, type=Path, metavar=("A", "B"), help="measure nothing, print B against A")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.compare:
        return _compare(*options.compare)
    unknown = [name for name in options.scenarios if name not in SCENARIOS]
    if unknown:
        parser.error(f"there is no scenario {', '.join(unknown)}; there are {', '.join(SCENARIOS)}")
    names = [name for name in SCENARIOS if name in options.scenarios or not options.scenarios]
    bars = [bar for bar in BARS if bar.scenario in names]
    if options.check and not bars:
        parser.error("no bar belongs to the chosen scenarios; see --help")
    # Reference counting frees all that a run leaves behind; a collection in the middle would look like the server's.
    gc.disable()
    try:
        report = uvloop.run(_run(options, names))
    except (NoSystem, ServerRefused, OSError, TimeoutError) as error:
        _say(f"bench: {str(error) or 'timed out'}")
        return 3
    except (KeyboardInterrupt, asyncio.CancelledError):
        _say("bench: stopped")
        return 130
    if options.json:
        options.json.write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    print(render(report))
    if not options.check:
        return 0
    verdicts = judge(bars, summarise(report.results))
    print()
    print("\n".join(f"- {verdict}" for verdict in verdicts))
    return 0 if all(verdict.met for verdict in verdicts) else 1


def _compare(first: Path, second: Path) -> int:
    try:
        reports = [msgspec.json.decode(path.read_bytes(), type=Report) for path in (first, second)]
        if any(report.format != FORMAT for report in reports):
            raise ValueError("a report of another format")
        print(compare(*reports))
    except (OSError, ValueError, msgspec.DecodeError) as error:
        _say(f"bench: {error}")
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
        _say("starting ojs-nats dev …")
        async with started_system(options.log) as run:
            yield run


async def _run(options: argparse.Namespace, names: Sequence[str]) -> Report:
    # Without this a SIGTERM would leave the system behind that was started here.
    me = asyncio.current_task()
    assert me is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, me.cancel)
    async with _system(options) as run:
        if run.url is None:
            raise NoSystem("the run file has no URL: is the gateway up?")
        try:
            target = Target.from_url(run.url)
        except ValueError as error:
            raise NoSystem(str(error)) from error
        about = await machine(target)
        bench = Bench.against(target, _plan(options), pids_of(run) if run.pid else {}, run.nats_url)
        left_out = [name for name in names if SCENARIOS[name].needs_nats and bench.nats is None]
        if left_out:
            _say(f"left out, because they need the system's run file: {', '.join(left_out)}")
        names = [name for name in names if name not in left_out]
        _say(f"measuring {about.versions['server']} at {run.url} with {', '.join(names)}")
        if not await bench.reset():
            _say(f"not in test mode, so nothing is wiped; jobs go to queues bench-{bench.run}-… and some may stay there")
        date = timestamp(int(time.time()) * 1000).replace(".000Z", "Z")
        results: list[Result] = []
        for _ in range(options.repeat):
            for name in names:
                _say(f"{name}: {SCENARIOS[name].about}")
                async for result in SCENARIOS[name].run(bench):
                    results.append(result)
                    _say(_progress(result))
                    gc.collect()
        command = shlex.join(["python", "-m", "bench", *sys.argv[1:]])
        return Report(date=date, command=command, server=run.url, machine=about, results=results)


def _progress(result: Result) -> str:
    parts = []
    if result.rate is not None:
        parts.append(f"{result.rate:,.0f} jobs/s")
    if result.latency is not None:
        parts.append(f"p50 {result.latency.p50:.2f} ms, p99 {result.latency.p99:.2f} ms")
    if result.errors:
        parts.append(f"{sum(result.errors.values()):,} errors")
    parts += [f"! {doubt}" for doubt in result.doubts]
    return f"  {result.scenario}, {result.variant}: {', '.join(parts)}"


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
