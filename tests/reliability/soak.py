"""A steady load for a long time, and whether anything grows without end.

The load is light to make: it leaves the machine to the system. Each job has a number, and one byte says what became of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from bench.processes import resident_mib
from bench.stats import quantiles
from ojs_engine.base.errors import OjsError
from ojs_engine.base.ids import new_job_id
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store
from ojs_features.all import STORE_FEATURES
from reliability.reading import settled
from reliability.site import Site
from reliability.trend import Trend, trends
from reliability.web import Web

_WORKERS: Final = 4
_FETCHED: Final = 20
_PAUSE_S: Final = 0.15
"""Between the fetches of a worker, so that they are of tens."""
_PROBE_S: Final = 1.0
_DELAYED_EVERY: Final = 20
_FAILED_EVERY: Final = 50
_FLOW_EVERY: Final = 200
_EVENTS_EACH: Final = 5
_OPEN_AT_MOST: Final = 500
_PUSHED: Final = 1
_DONE: Final = 2
_TWICE: Final = 3
_SETTLE_S: Final = 120.0

Say = Callable[[str], None]


class Sample(Struct):
    """One look at the system: everything that may grow, by name."""

    at_s: float
    values: dict[str, float]


class SoakResult(Struct, kw_only=True):
    """What a soak has shown. Trends are over the second half."""

    minutes: float
    rate: float
    kept_s: int
    jobs: int
    lost: int
    doubled: int
    unfinished: bool
    finds: int
    tracebacks: int
    clients_saw: dict[str, int]
    trends: list[Trend]
    samples: list[Sample] = field(default_factory=list)

    @property
    def level(self) -> bool:
        """False also where too little was seen to say so."""
        return bool(self.trends) and all(trend.level for trend in self.trends)

    @property
    def good(self) -> bool:
        return self.level and not (self.lost or self.doubled or self.unfinished or self.finds or self.tracebacks)


class _Load:
    """`rate` jobs a second, and the workers that do them."""

    def __init__(self, web: Web, rate: float) -> None:
        self.fate = bytearray()
        self.seconds: dict[str, list[float]] = {"push": [], "ack": [], "dispatch": []}
        """Latencies since the last sample. `dispatch` is of a queue whose worker waits: from the push being sent to the job."""
        self._web = web
        self._rate = rate
        self._over = False
        self._idle = False
        self._under_way: set[asyncio.Task[None]] = set()

    async def run(self, seconds: float) -> None:
        async with asyncio.TaskGroup() as group:
            for number in range(_WORKERS):
                group.create_task(self._work(f"soak-{number}", ["soak"], _PAUSE_S))
            group.create_task(self._work("probe", ["probe"], 0.0))
            probing = group.create_task(self._probe())
            await self._push_all(group, seconds)
            self._over = True
            await probing
            await settled(self._web, _SETTLE_S)
            self._idle = True

    async def _push_all(self, group: asyncio.TaskGroup, seconds: float) -> None:
        began = time.monotonic()
        while (now := time.monotonic()) < began + seconds:
            due = began + len(self.fate) / self._rate
            if due > now:
                await asyncio.sleep(due - now)
            elif len(self._under_way) >= _OPEN_AT_MOST:
                await asyncio.sleep(0.1)
                continue
            number = len(self.fate)
            self.fate.append(0)
            work = self._flow(number) if number % _FLOW_EVERY == 0 else self._push(number, "soak")
            task = group.create_task(work)
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _probe(self) -> None:
        while not self._over:
            await asyncio.sleep(_PROBE_S)
            self.fate.append(0)
            await self._push(len(self.fate) - 1, "probe")

    async def _push(self, number: int, queue: str) -> None:
        now = time.time()
        options: dict[str, Any] = {"queue": queue}
        if number % _DELAYED_EVERY == 1 and queue == "soak":
            options["delay_until"] = "+PT2S"
        body = {"id": new_job_id(int(now * 1000)), "type": "soak", "args": [number, now], "options": options}
        began = time.perf_counter()
        answer = await self._web.insist("POST", "/ojs/v1/jobs", body)
        if answer.done or answer.status == 409:
            self.seconds["push"].append(time.perf_counter() - began)
            self.fate[number] = max(self.fate[number], _PUSHED)

    async def _flow(self, number: int) -> None:
        """A chain of two; only its last job has the number."""
        now = time.time()
        first, last = ({"type": "soak", "args": [n, now], "options": {"queue": "soak"}} for n in (-1, number))
        body = {"id": new_job_id(int(now * 1000)), "type": "chain", "steps": [first, last]}
        answer = await self._web.insist("POST", "/ojs/v1/workflows", body)
        if answer.done or answer.status == 409:
            self.fate[number] = max(self.fate[number], _PUSHED)

    async def _work(self, name: str, queues: list[str], pause_s: float) -> None:
        body = {"queues": queues, "count": _FETCHED, "worker_id": name, "wait_ms": 1_000, "visibility_timeout_ms": 30_000}
        while not self._idle:
            answer = await self._web.post("/ojs/v1/workers/fetch", body)
            if not answer.done:
                await self._web.pause()
                continue
            if not pause_s:
                self.seconds["dispatch"] += [time.time() - job["args"][1] for job in answer.body["jobs"]]
            await asyncio.gather(*(self._finish(job, name) for job in answer.body["jobs"]))
            await asyncio.sleep(pause_s)

    async def _finish(self, job: dict[str, Any], name: str) -> None:
        number = job["args"][0]
        body = {"job_id": job["id"], "worker_id": name, "attempt": job["attempt"]}
        if number % _FAILED_EVERY == 2 and job["attempt"] == 1:
            await self._web.insist("POST", "/ojs/v1/workers/nack", body | {"error": {"code": "boom", "message": "once"}})
            return
        began = time.perf_counter()
        answer = await self._web.insist("POST", "/ojs/v1/workers/ack", body | {"result": {"number": number}})
        if answer.done:
            self.seconds["ack"].append(time.perf_counter() - began)
            if number >= 0:
                self.fate[number] = _TWICE if self.fate[number] >= _DONE else _DONE


async def soak(minutes: float, rate: float, kept_s: int, *, say: Say, keep: Path | None = None) -> SoakResult:
    """Run it on one of each service, with records that leave after `kept_s`."""
    program = (sys.executable, "-m", "reliability.short_lived", str(kept_s))
    with tempfile.TemporaryDirectory(prefix="ojs-soak-") as temporary:
        folder = keep or Path(temporary)
        say("starting the system")
        with Site.started(folder, 0, program=program, each=1) as site:
            return await _soak(site, folder, minutes, rate, kept_s, say)


async def _soak(site: Site, folder: Path, minutes: float, rate: float, kept_s: int, say: Say) -> SoakResult:
    web = Web(site.urls, random.Random(0))
    load = _Load(web, rate)
    samples: list[Sample] = []
    store = await Store.open(site.nats_url, StoreConfig(), role="test", features=STORE_FEATURES)
    try:
        await _keep_events(store, round(kept_s * rate * _EVENTS_EACH))
        sampling = asyncio.create_task(_sample(site, folder, store, load, samples, minutes, say))
        try:
            await load.run(minutes * 60)
        finally:
            sampling.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await sampling
        unfinished = not await settled(web, _SETTLE_S)
    finally:
        await store.close()
        web.close()
    return SoakResult(
        minutes=minutes,
        rate=rate,
        kept_s=kept_s,
        jobs=len(load.fate),
        lost=load.fate.count(_PUSHED),
        doubled=load.fate.count(_TWICE),
        unfinished=unfinished,
        finds=len(site.logged("a lost hint was issued again")),
        tracebacks=len(site.tracebacks),
        clients_saw=dict(web.errors),
        trends=trends([(sample.at_s, sample.values) for sample in samples]),
        samples=samples,
    )


async def _keep_events(store: Store, number: int) -> None:
    """Bound the stream of events as an operator would (docs/retention.md)."""
    name = store.config.events_stream
    config = (await call(store.nats, f"STREAM.INFO.{name}"))["config"]
    answer = await call(store.nats, f"STREAM.UPDATE.{name}", config | {"max_msgs": number})
    assert "error" not in answer, answer


async def _sample(site: Site, folder: Path, store: Store, load: _Load, samples: list[Sample], minutes: float, say: Say) -> None:
    """Look at the system again and again, a hundred times and more."""
    began = time.monotonic()
    every_s = min(max(minutes * 60 / 120, 2.0), 60.0)
    while True:
        await asyncio.sleep(every_s)
        values = _latencies(load)
        try:
            values |= await asyncio.to_thread(_processes, site, folder) | await _streams(store)
        except (OjsError, OSError) as error:
            say(f"a look has failed: {error}")
        samples.append(Sample(round(time.monotonic() - began, 1), {name: round(value, 3) for name, value in values.items()}))
        told = "  ".join(f"{name} {value:.0f}" for name, value in values.items() if name in _TOLD)
        say(f"{samples[-1].at_s / 60:5.1f} min  {len(load.fate)} jobs  {told}")


_TOLD: Final = frozenset(
    {"nats RSS MiB", "gateway RSS MiB", "projector RSS MiB", "nats files MiB", "index files MiB", "push p99 ms"}
)


async def _streams(store: Store) -> dict[str, float]:
    values: dict[str, float] = {}
    for stream in (store.config.records_stream, store.config.ready_stream, store.config.events_stream):
        state = (await call(store.nats, f"STREAM.INFO.{stream}"))["state"]
        values |= {f"{stream} MiB": state["bytes"] / 2**20, f"{stream} messages": state["messages"]}
    return values


def _processes(site: Site, folder: Path) -> dict[str, float]:
    values: dict[str, float] = {}
    for name in (*site.services, *site.servers):
        short = name.rpartition("-")[0]
        pid = site.pid(name)
        values[f"{short} RSS MiB"] = resident_mib(pid)
        values[f"{short} open files"] = sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    values["nats files MiB"] = _size_mib(folder / "nats")
    values["index files MiB"] = _size_mib(folder / "services" / "projector-1")
    values["log files MiB"] = _size_mib(folder / "services") - values["index files MiB"]
    return values


def _latencies(load: _Load) -> dict[str, float]:
    values: dict[str, float] = {}
    for what, seconds in load.seconds.items():
        if (found := quantiles(seconds)) is not None:
            values |= {f"{what} p50 ms": found.p50, f"{what} p99 ms": found.p99}
        seconds.clear()
    return values


def _size_mib(folder: Path) -> float:
    """What the files of a folder take of the disk. Files that leave meanwhile don't count."""
    found = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                found += Path(parent, name).stat().st_blocks * 512
    return found / 2**20


def report(result: SoakResult) -> str:
    """The verdict and a table of everything that was looked at."""
    verdict = "levels off" if result.level else "doesn't level off"
    lines = [
        f"soak of {result.minutes:g} min at {result.rate:g} jobs/s, records kept for {result.kept_s} s: {verdict}; "
        f"{result.jobs} jobs, {result.lost} lost, {result.doubled} doubled, safety net {result.finds}, "
        f"tracebacks {result.tracebacks}, clients saw {result.clients_saw or 'no error'}"
        + ("; NOT ALL JOBS ENDED" if result.unfinished else ""),
        "",
        "| | At a quarter | At half | At the end | Slope of the second half, an hour | |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {one.name} | {one.quarter:.4g} | {one.half:.4g} | {one.end:.4g} | {one.slope_h:+.3g} | "
        f"{'level' if one.level else 'GROWS'} |"
        for one in result.trends
    ]
    return "\n".join(lines)
