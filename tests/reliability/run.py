"""One run: the system, the load, the faults, and the verdict."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ojs_engine.jetstream.subjects import DEFAULT_NAMESPACE
from reliability.judgement import RULES, Wrong, judge
from reliability.ledger import Kind, Verdict
from reliability.reading import Listener, read, settled
from reliability.scenarios import SCENARIOS
from reliability.site import CannotBeDone, Dev, Site
from reliability.traffic import Traffic
from reliability.web import Web

_PATIENCE_S: Final = 60.0
"""Without the end of any job, after which nothing more is believed to come: longer than any interval of the safety net."""
_LOST: Final = frozenset({"lost"})
_DOUBLED: Final = frozenset({"doubled", "finished-once", "overlap"})
_WORKERS: Final = 0.3
"""For each request of producers a second."""
_LEAST_WORKERS: Final = 4
_TELL_EVERY_S: Final = 10.0

Say = Callable[[str], None]


class Result(Struct, kw_only=True):
    """What one run has shown. Times in seconds."""

    scenario: str
    namespace: str = DEFAULT_NAMESPACE
    seed: int
    seconds: float
    faults: int
    jobs: int
    workflows: int
    acknowledged: int
    unanswered: int
    """Pushes whose client never learnt what became of them."""
    lost: int
    doubled: int
    otherwise: int
    """What else is wrong."""
    wrong: list[str]
    """All of it in words."""
    gap_s: float
    recovery_s: float
    late_s: float
    """By how much a delayed job came late, at the most."""
    finds: int
    """What the safety net issued again."""
    clients_saw: dict[str, int] = field(default_factory=dict)
    kept: str | None = None
    """Where the logs are, if anything is wrong."""


class _Asked(NamedTuple):
    """How a scenario is run: the rate is of requests of producers a second."""

    scenario: str
    seconds: float
    rate: float


async def run(
    name: str,
    seed: int,
    seconds: float,
    *,
    rate: float,
    say: Say,
    keep: Path | None = None,
    namespaces: Sequence[str] = (DEFAULT_NAMESPACE,),
) -> list[Result]:
    """Run a scenario in a folder of its own, which stays if something is wrong, or if it is asked for.

    In each namespace there is a system with a load, faults and a ledger of its own. All stand on the nats-servers of the
    first, whose faults alone are those servers' as well. Raises CannotBeDone.
    """
    folder = keep or Path(tempfile.mkdtemp(prefix=f"ojs-{name}-"))
    results = await _run(folder, _Asked(name, seconds, rate), seed, say, namespaces)
    if any(result.wrong for result in results) or keep is not None:
        return [replace(result, kept=str(folder)) for result in results]
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return results


async def _run(folder: Path, asked: _Asked, seed: int, say: Say, namespaces: Sequence[str]) -> list[Result]:
    scenario = SCENARIOS[asked.scenario]
    if len(namespaces) > 1 and not scenario.guests:
        raise CannotBeDone("its faults leave no nats-server to another system")
    with ExitStack() as stack:
        sites: list[Site | Dev] = []
        for number, namespace in enumerate(namespaces):
            say(f"starting the system in namespace {namespace}")
            place = folder if len(namespaces) == 1 else folder / namespace
            host = {"host": sites[0]} if sites else {}
            sites.append(stack.enter_context(scenario.start(place, seed + number, namespace=namespace, **host)))
        async with asyncio.TaskGroup() as group:
            loads = [group.create_task(_loaded(folder, site, asked, seed + number, say)) for number, site in enumerate(sites)]
        return [load.result() for load in loads]


async def _loaded(folder: Path, site: Site | Dev, asked: _Asked, seed: int, say: Say) -> Result:
    """Put the load and the faults on one system, and judge what became of it."""
    ledger = site.ledger
    scenario = SCENARIOS[asked.scenario]
    web = Web(site.urls, random.Random(seed))
    traffic = Traffic(web, ledger, seed, rate=asked.rate, workers=max(round(asked.rate * _WORKERS), _LEAST_WORKERS))
    listener = Listener(site.urls)
    listening = asyncio.create_task(listener.run())
    telling = asyncio.create_task(_tell(site, say))
    try:
        await traffic.begin()
        await traffic.run(lambda: scenario.disturb(site, asked.seconds), lambda: settled(web, _PATIENCE_S))
        say("reading everything")
        reading = await read(site.nats_url, site.config, web, ledger, listener)
    finally:
        if listening.done():
            ledger.failures.append(f"the reader of events ended: {listening.exception()!r}")
        for task in (listening, telling):
            task.cancel()
        await asyncio.gather(listening, telling, return_exceptions=True)
        web.close()
    finds = [str(line) for line in site.logged("a lost hint was issued again")]
    reading = replace(reading, finds=finds, tracebacks=site.tracebacks, processes=site.ended)
    wrong = judge(ledger, reading)
    if wrong:
        (folder / f"ledger-{site.namespace}.json").write_bytes(msgspec.json.encode(vars(ledger)))
    firsts: dict[str, float] = {}
    for hold in ledger.holds:
        firsts.setdefault(hold.job_id, hold.got)
    delayed = (push for push in ledger.asked.values() if push.kind is Kind.DELAYED and push.job_id in firsts)
    pushes = ledger.asked.values()
    return Result(
        scenario=asked.scenario,
        namespace=site.namespace,
        seed=seed,
        seconds=asked.seconds,
        faults=len(ledger.disturbances),
        jobs=len(reading.jobs),
        workflows=len(ledger.flows),
        acknowledged=sum(one.verdict is Verdict.DONE for one in pushes),
        unanswered=sum(one.verdict is Verdict.OPEN for one in pushes),
        lost=_subjects(wrong, *_LOST),
        doubled=_subjects(wrong, *_DOUBLED),
        otherwise=_subjects(wrong, *(RULES.keys() - _LOST - _DOUBLED)),
        wrong=[str(one) for one in wrong],
        gap_s=round(ledger.longest_gap_s, 2),
        recovery_s=round(ledger.recovery_s, 2),
        late_s=round(max((firsts[one.job_id] - one.not_before for one in delayed), default=0.0), 2),
        finds=len(reading.finds),
        clients_saw=dict(web.errors),
    )


def _subjects(wrong: Sequence[Wrong], *rules: str) -> int:
    return len({one.subject for one in wrong if one.rule in rules})


async def _tell(site: Site | Dev, say: Say) -> None:
    """Say now and then how far it is."""
    began = time.monotonic()
    while True:
        await asyncio.sleep(_TELL_EVERY_S)
        ledger = site.ledger
        now = [fault.what for fault in ledger.disturbances if fault.ended == float("inf")]
        say(
            f"{time.monotonic() - began:4.0f} s  {len(ledger.asked)} jobs asked for, {len(ledger.holds)} handed out, "
            f"{len(ledger.disturbances)} faults{f', now {now[0]}' if now else ''}"
        )
