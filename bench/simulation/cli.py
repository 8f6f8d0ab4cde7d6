"""The command line: `python -m bench simulate`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from bench.report import number, table
from bench.simulation.costs import COSTS, costs_table
from bench.simulation.fleet import Fleet, around, search
from bench.simulation.outcome import MOST_SHARDS, Outcome, Scenario, outcome, smallest
from bench.simulation.shards import LAYOUTS, lanes, zipf
from bench.simulation.sizing import EXAMPLES, Load, sizing_table

_Number = TypeVar("_Number", int, float)

_EPILOG: Final = """\
examples:
  python -m bench simulate                                        10^9 jobs a day and 1,000 gateways
  python -m bench simulate --per-day 1e8 --skew 1.5 --replicas 1
  python -m bench simulate --costs                                the measured costs that all figures come from
  python -m bench simulate --sizing                               the examples of docs/sizing.md
  python -m bench simulate --size 250 --kept-hours 48 --body-kb 4 what 250 jobs a second take

Nothing is measured: a model says what follows from the measured costs. exit codes: 0 done, 2 wrong use
"""


def _within(kind: Callable[[str], _Number], least: float, most: float) -> Callable[[str], _Number]:
    def read(text: str) -> _Number:
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text} is not from {least:g} to {most:g}")
        return value

    return read


def _shards(text: str) -> tuple[int, ...]:
    return tuple(_within(int, 1, MOST_SHARDS)(part) for part in text.split(","))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench simulate",
        description="Says what a load would take, over one stream and over many, by a model of the measured costs.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument("--costs", action="store_true", help="print the measured costs")
    shown.add_argument("--sizing", action="store_true", help="print the examples of docs/sizing.md")
    shown.add_argument("--size", type=_within(float, 0.001, 1e6), metavar="N", help="print what N jobs a second take")
    parser.add_argument("--per-day", type=_within(float, 1, 1e12), default=1e9, metavar="N", help="jobs a day (1e9)")
    parser.add_argument("--gateways", type=_within(int, 1, 100_000), default=1_000, metavar="N", help="processes (1000)")
    parser.add_argument("--servers", type=_within(int, 1, 10_000), default=9, metavar="N", help="nats-servers (9)")
    parser.add_argument("--queues", type=_within(int, 1, 100_000), default=1_000, metavar="N", help="queues (1000)")
    parser.add_argument("--skew", type=_within(float, 0, 5), metavar="S", help="of queues, Zipf's exponent (0, 1 and 1.5)")
    parser.add_argument("--peak", type=_within(float, 1, 20), default=2.0, metavar="F", help="of a day, times its mean (2)")
    parser.add_argument("--replicas", type=int, choices=(1, 3), help="of the streams (3; 1 for --size)")
    parser.add_argument("--batched", action="store_true", help="jobs are pushed by 100 and fetched by ten")
    parser.add_argument(
        "--speed", type=_within(float, 0.1, 100), default=1.0, metavar="F", help="of cores, times the measured (1)"
    )
    parser.add_argument("--shards", type=_shards, default=(1, 8, 16, 64), metavar="N,N", help="how many streams (1,8,16,64)")
    parser.add_argument("--backlog", type=_within(int, 0, 10**10), default=10**7, metavar="N", help="jobs in a queue (10^7)")
    parser.add_argument("--kept-hours", type=_within(float, 1, 1e5), default=24.0, metavar="H", help="for --size (24)")
    parser.add_argument("--body-kb", type=_within(float, 0, 2_048), default=1.0, metavar="N", help="for --size (1)")
    return parser


def main(arguments: Sequence[str]) -> int:
    """Run the command; returns its exit code."""
    options = _parser().parse_args(arguments)
    if options.costs:
        print(costs_table())
    elif options.sizing:
        print(sizing_table(EXAMPLES))
    elif options.size is not None:
        print(sizing_table([_load(options)]))
    else:
        print("\n\n".join([part(options) for part in (_by_shards, _smallest, _asked, _around, _searched)]))
    return 0


def _load(options: argparse.Namespace) -> Load:
    return Load(
        per_second=options.size,
        kept_h=options.kept_hours,
        body_kb=options.body_kb,
        replicas=options.replicas or 1,
        batched=options.batched,
        speed=options.speed,
    )


def _scenarios(options: argparse.Namespace) -> list[Scenario]:
    return [
        Scenario(
            per_day=options.per_day,
            queues=options.queues,
            skew=skew,
            peak=options.peak,
            replicas=options.replicas or 3,
            batched=options.batched,
            speed=options.speed,
        )
        for skew in ((0.0, 1.0, 1.5) if options.skew is None else (options.skew,))
    ]


_OUTCOME: Final = ("records", "tokens", "projector at the peak", "longest lag", "behind, h a day", "too much")


def _cells(one: Outcome) -> list[str]:
    lag = f"{number(one.projector.lag_s)} s" if one.projector.keeps_up else "grows"
    return [
        f"{one.records_used:.0%}",
        f"{one.tokens_used:.0%}",
        f"{one.projector.used:.0%}",
        lag,
        number(one.projector.behind_h),
        ", ".join(one.too_much) or "nothing",
    ]


def _by_shards(options: argparse.Namespace) -> str:
    rows = [
        [layout, number(scenario.skew), str(shards), *_cells(outcome(scenario, layout, shards))]
        for layout in LAYOUTS
        for scenario in _scenarios(options)
        for shards in options.shards
    ]
    return table(["layout, its busiest shard", "skew", "N", *_OUTCOME], rows)


def _smallest(options: argparse.Namespace) -> str:
    rows = []
    for layout in LAYOUTS:
        for scenario in _scenarios(options):
            found = smallest(scenario, layout)
            rows.append([layout, number(scenario.skew), str(found.shards) if found.enough else "none", *_cells(found)])
    return table(["layout, smallest N that is enough", "skew", "N", *_OUTCOME], rows)


def _asked(options: argparse.Namespace) -> str:
    rows = []
    for layout in LAYOUTS:
        for scenario in _scenarios(options):
            shards = smallest(scenario, layout).shards
            spread = [lanes(layout, share, shards, scenario.lane) for share in zipf(scenario.queues, scenario.skew)]
            nothing = max(spread) * COSTS.empty_pull.value / scenario.speed
            consumers = sum(spread) / shards / COSTS.busy_queues.value
            more = sum(one > 1 for one in spread)
            rows.append(
                [
                    layout,
                    number(scenario.skew),
                    str(shards),
                    number(more),
                    str(max(spread)),
                    number(nothing),
                    f"{consumers:.0%}",
                ]
            )
    header = ["layout", "skew", "N", "queues in several streams", "streams of the largest", "a look that finds nothing, µs"]
    return table([*header, "consumers of the limit"], rows)


def _around(options: argparse.Namespace) -> str:
    [scenario, *_] = _scenarios(options)
    shards = smallest(scenario, "lanes").shards
    listeners = sorted({min(one, options.gateways) for one in (4, 16, 100, options.gateways)})
    found = [
        around(
            Fleet(
                gateways=options.gateways,
                servers=options.servers,
                shards=shards,
                listeners=one,
                per_second=scenario.per_second,
                speed=options.speed,
            )
        )
        for one in listeners
    ]
    rows = [
        ["connections of each nats-server", *(number(one.connections_a_server) for one in found)],
        ["consumers for settings", *(number(one.watch_consumers) for one in found)],
        ["more than the stream takes", *("**yes**" if one.too_many_watches else "no" for one in found)],
        ["their memory, MiB", *(number(one.watch_memory_mib) for one in found)],
        ["their pulls, cores of nats-servers", *(number(one.watch_cores) for one in found)],
        ["a changed setting, CPU ms of nats-servers", *(number(one.change_ms) for one in found)],
        ["beats of processes, writes a second", *(number(one.beats) for one in found)],
        ["wakes a second", *(number(round(one.wakes)) for one in found)],
        ["wakes, cores of nats-servers", *(number(one.wake_cores) for one in found)],
        ["wakes, of each gateway's core", *(f"{one.gateway_hearing:.0%}" for one in found)],
    ]
    return table(["gateways that wait for a queue", *map(number, listeners)], rows)


def _searched(options: argparse.Namespace) -> str:
    rows = []
    for streams in options.shards:
        found = search(options.backlog, streams, COSTS, options.speed)
        rows.append(
            [str(streams), number(found.rounds), number(found.seconds), number(found.nats_cores), number(found.projector_cores)]
        )
    header = [
        f"streams that hold a queue of {options.backlog:,}",
        "rounds",
        "seconds",
        "nats-servers' cores",
        "cores of each projector",
    ]
    return table(header, rows)
