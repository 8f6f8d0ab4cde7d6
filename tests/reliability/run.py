"""One run: the system, the load, the faults, and the verdict."""

from __future__ import annotations

import asyncio
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from ojs_core.jetstream.subjects import DEFAULT_NAMESPACE
from reliability.judgement import RULES, Wrong, judge
from reliability.ledger import Kind, Verdict
from reliability.reading import Listener, read, settled
from reliability.scenarios import SCENARIOS
from reliability.site import Dev, Site
from reliability.traffic import Traffic
from reliability.web import Web

_PATIENCE_S: Final = 60.0
"""Without the end of any job, after which nothing more is believed to come: longer than any interval of the safety net."""
_LOST: Final = frozenset({"lost"})
_DOUBLED: Final = frozenset({"doubled", "finished-once", "overlap"})
_TELL_EVERY_S: Final = 10.0

Say = Callable[[str], None]


class Result(Struct, kw_only=True):
    """What one run has shown. Times in seconds."""

    scenario: str
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


async def run(
    name: str,
    seed: int,
    seconds: float,
    *,
    rate: float,
    say: Say,
    keep: Path | None = None,
    namespace: str = DEFAULT_NAMESPACE,
) -> Result:
    """Run a scenario in a folder of its own, which stays if something is wrong, or if it is asked for."""
    folder = keep or Path(tempfile.mkdtemp(prefix=f"ojs-{name}-"))
    result = await _run(folder, name, seed, seconds, rate, say, namespace)
    if result.wrong or keep is not None:
        return replace(result, kept=str(folder))
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return result


async def _run(folder: Path, name: str, seed: int, seconds: float, rate: float, say: Say, namespace: str) -> Result:
    scenario = SCENARIOS[name]
    say("starting the system")
    with scenario.start(folder, seed, namespace=namespace) as site:
        ledger = site.ledger
        chance = random.Random(seed)
        web = Web(site.urls, chance)
        traffic = Traffic(web, ledger, seed, rate=rate)
        listener = Listener(site.urls)
        listening = asyncio.create_task(listener.run())
        telling = asyncio.create_task(_tell(site, say))
        try:
            await traffic.begin()
            await traffic.run(lambda: scenario.disturb(site, seconds), lambda: settled(web, _PATIENCE_S))
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
        (folder / "ledger.json").write_bytes(msgspec.json.encode(vars(ledger)))
    firsts: dict[str, float] = {}
    for hold in ledger.holds:
        firsts.setdefault(hold.job_id, hold.got)
    delayed = (asked for asked in ledger.asked.values() if asked.kind is Kind.DELAYED and asked.job_id in firsts)
    asked = ledger.asked.values()
    return Result(
        scenario=name,
        seed=seed,
        seconds=seconds,
        faults=len(ledger.disturbances),
        jobs=len(reading.jobs),
        workflows=len(ledger.flows),
        acknowledged=sum(one.verdict is Verdict.DONE for one in asked),
        unanswered=sum(one.verdict is Verdict.OPEN for one in asked),
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
