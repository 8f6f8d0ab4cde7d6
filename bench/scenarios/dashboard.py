"""The dashboard over a large population, in Chromium: what somebody waits for who looks at it."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from bench.client import exchange
from bench.disk import read_once
from bench.plan import Bench, ServerRefused
from bench.population import ALIKE, QUEUES, TYPES
from bench.result import Result
from bench.scenarios.stored import caught_up, filled, opened_store
from bench.stats import quantiles
from ojs_core.read.client import Queries
from ojs_core.store.store import Store
from support.browser import Browser, browser_program
from support.screen import Screen

_LOADS: Final = 20
_PAGES: Final = 5
"""Pages by cursor, after the first, of each filter."""
_EVENTS: Final = 20
_PAUSE_S: Final = 1.5
"""Between events: a page asks at most once a second."""
_FILTERS: Final = (
    "",
    "state:discarded",
    "state:scheduled",
    f"queue:{ALIKE}",
    f"queue:{QUEUES[0]}",
    f"type:{TYPES[0]}",
    "type:mail.*",
    f"meta.tenant:{ALIKE} state:completed",
    "age>1h",
)
VARIANTS: Final = ("first paint", "page of jobs", "event on its page", "job in the list")

_PAINTED: Final = """new Promise((resolve) => new PerformanceObserver((list) => {
    const found = list.getEntriesByName('first-contentful-paint')[0];
    if (found) resolve([found.startTime, performance.now()]);
}).observe({type: 'paint', buffered: true}))"""
"""When something was seen for the first time, and the time now (ms from the navigation)."""
_ROWS: Final = "document.querySelector('main tbody a.id')?.href ?? ''"
_NEXT: Final = f"""new Promise((resolve) => {{
    const next = [...document.querySelectorAll('nav.pages button')].find((button) => button.innerText === 'Next page');
    if (!next) return resolve(null);
    performance.clearResourceTimings();
    const [began, before] = [performance.now(), {_ROWS}];
    const look = () => {{
        const now = {_ROWS};
        if (!now || now === before) return requestAnimationFrame(look);
        const took = performance.now() - began;
        const asked = performance.getEntriesByType('resource').find(({{name}}) => name.includes('/ojs/v1/jobs?'));
        resolve([took, asked ? asked.responseEnd - asked.startTime : 0]);
    }};
    next.click();
    look();
}})"""
"""How long the next page takes from the click until its first row can be seen, and the server's answer of that (ms)."""
_SEEN: Final = """(id, since) => new Promise((resolve) => {
    const look = () => {
        if (document.querySelector(`main tbody a[href$="${id}"]`)) resolve(Date.now() - Date.parse(since));
        else if (Date.now() - Date.parse(since) > 10_000) resolve(null);
        else requestAnimationFrame(look);
    };
    look();
})"""
"""How long after a time a job can be seen (ms); null if it can't after ten seconds."""


class Took(NamedTuple):
    """What was measured (ms): until it is seen, and other times by name, of each sample; and how many were never seen."""

    seen: Sequence[float]
    more: Mapping[str, Sequence[float]] = {}
    missed: int = 0


async def run(bench: Bench) -> AsyncIterator[Result]:
    program = browser_program()
    if program is None:
        print("dashboard: left out, there is no Chromium (apt-get install chromium)", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="ojs-bench-browser-") as folder:
        async with Browser.started(program, Path(folder), {}) as browser:
            screen = await Screen.opened(browser, f"http://{bench.target.authority}")
            await screen.page.go(f"http://{bench.target.authority}/")
            if not await screen.page.run("!!document.querySelector('script')"):
                raise ServerRefused("the server has no dashboard: script/setup brings its libraries")
            wiped = await bench.reset()
            async with opened_store(bench) as store:
                if wiped or not await _there(bench, store):
                    yield await filled(bench, store, store.clock.now(), "dashboard")
            await asyncio.to_thread(read_once, None if bench.data is None else bench.data / "projector")
            yield await _measured(VARIANTS[0], lambda: _paints(screen))
            yield await _measured(VARIANTS[1], lambda: _turns(screen))
            yield await _measured(VARIANTS[2], lambda: _events(bench, screen, "/events?queue={}"))
            yield await _measured(VARIANTS[3], lambda: _events(bench, screen, "/jobs?q=queue:{}"))
    await bench.reset()


async def _there(bench: Bench, store: Store) -> bool:
    """Whether a server that keeps its jobs has as many as are wanted."""
    await caught_up(store)
    return (await Queries(store).totals()).counts.total >= bench.plan.records


async def _measured(variant: str, measure: Callable[[], Awaitable[Took]]) -> Result:
    began = perf_counter()
    took = await measure()
    return Result(
        scenario="dashboard",
        variant=variant,
        jobs=len(took.seen),
        seconds=perf_counter() - began,
        latency=quantiles(ms / 1_000 for ms in took.seen),
        more={f"{name} p50 ms": median(samples) for name, samples in took.more.items() if samples},
        errors={"never seen": took.missed} if took.missed else {},
    )


async def _paints(screen: Screen) -> Took:
    """From the navigation until something is seen, and until everything is, with nothing in the browser's cache."""
    await screen.page.command("Network.enable", {})
    await screen.page.command("Network.setCacheDisabled", {"cacheDisabled": True})
    painted: list[float] = []
    read: list[float] = []
    for _ in range(_LOADS):
        await screen.go("/")
        first, now = await screen.page.run(_PAINTED)
        painted.append(first)
        read.append(now)
    await screen.page.command("Network.setCacheDisabled", {"cacheDisabled": False})
    return Took(painted, {"all is there": read})


async def _turns(screen: Screen) -> Took:
    """From a click on `Next page` until its rows are seen."""
    took: list[float] = []
    answers: list[float] = []
    for line in _FILTERS:
        await screen.go(f"/jobs?q={quote(line, safe=':.*')}")
        for _ in range(_PAGES):
            turned = await screen.page.run(_NEXT)
            if turned is None:
                break
            took.append(turned[0])
            answers.append(turned[1])
    return Took(took, {"answer": answers})


async def _events(bench: Bench, screen: Screen, path: str) -> Took:
    """From the push of a job, as the server dates it, until it is seen."""
    queue = bench.queue("seen")
    await screen.go(path.format(queue))
    await _push_and_look(bench, screen, queue)  # since a page that was just opened may not follow yet
    took: list[float] = []
    missed = 0
    for _ in range(_EVENTS):
        await asyncio.sleep(_PAUSE_S)
        ms = await _push_and_look(bench, screen, queue)
        if ms is None:
            missed += 1
        else:
            took.append(ms)
    return Took(took, missed=missed)


async def _push_and_look(bench: Bench, screen: Screen, queue: str) -> float | None:
    """How long a job that is pushed now takes until it is seen (ms); None if it isn't."""
    body = {"type": "bench.job", "args": [], "options": {"queue": queue}}
    status, answer = await exchange(bench.target, bench.requests.post("/ojs/v1/jobs", body), timeout_s=10)
    if status != 201:
        raise ServerRefused(f"a push was answered with {status}")
    job: dict[str, Any] = json.loads(answer)["job"]
    seen: float | None = await screen.page.run(f"({_SEEN})({json.dumps(job['id'])}, {json.dumps(job['enqueued_at'])})")
    return seen
