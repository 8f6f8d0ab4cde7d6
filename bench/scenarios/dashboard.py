"""The dashboard over a large population, in Chromium: what somebody waits for who looks at it."""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, Final
from urllib.parse import quote

from bench.client import exchange
from bench.disk import read_once
from bench.plan import Bench, ServerRefused
from bench.population import ALIKE, QUEUES, TYPES
from bench.result import Result
from bench.scenarios.stored import filled, opened_store
from bench.stats import quantiles
from support.browser import Browser, Page, browser_program

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
    if (found) resolve(found.startTime);
}).observe({type: 'paint', buffered: true}))"""
"""When something was seen for the first time (ms from the navigation)."""
_ROWS: Final = "document.querySelector('main tbody a.id')?.href ?? ''"
_NEXT: Final = f"""new Promise((resolve) => {{
    const next = [...document.querySelectorAll('nav.pages button')].find((button) => button.innerText === 'Next page');
    if (!next) return resolve(null);
    const [began, before] = [performance.now(), {_ROWS}];
    const look = () => {{
        const now = {_ROWS};
        if (now && now !== before) resolve(performance.now() - began);
        else requestAnimationFrame(look);
    }};
    next.click();
    look();
}})"""
"""How long the next page takes from the click until its first row can be seen (ms)."""
_SEEN: Final = """(id) => new Promise((resolve) => {
    const look = () => {
        if (document.querySelector(`main tbody a[href$="${id}"]`)) resolve(Date.now());
        else requestAnimationFrame(look);
    };
    look();
})"""
"""When a job can be seen (Unix ms)."""


async def run(bench: Bench) -> AsyncIterator[Result]:
    program = browser_program()
    if program is None:
        print("dashboard: left out, there is no Chromium (apt-get install chromium)", file=sys.stderr)
        return
    await bench.reset()
    async with opened_store(bench) as store:
        yield await filled(bench, store, store.clock.now(), "dashboard")
    await asyncio.to_thread(read_once, None if bench.data is None else bench.data / "projector")
    with tempfile.TemporaryDirectory(prefix="ojs-bench-browser-") as folder:
        async with Browser.started(program, Path(folder), {}) as browser:
            page = await browser.page()
            yield await _measured(VARIANTS[0], lambda: _paints(bench, page))
            yield await _measured(VARIANTS[1], lambda: _turns(bench, page))
            yield await _measured(VARIANTS[2], lambda: _events(bench, page, "/events?queue={}"))
            yield await _measured(VARIANTS[3], lambda: _events(bench, page, "/jobs?q=queue:{}"))
    await bench.reset()


async def _measured(variant: str, measure: Callable[[], Awaitable[Sequence[float]]]) -> Result:
    began = perf_counter()
    took_ms = await measure()
    latency = quantiles(ms / 1_000 for ms in took_ms)
    return Result(scenario="dashboard", variant=variant, jobs=len(took_ms), seconds=perf_counter() - began, latency=latency)


async def _paints(bench: Bench, page: Page) -> list[float]:
    """From the navigation until something is seen, with nothing in the browser's cache."""
    await page.command("Network.enable", {})
    await page.command("Network.setCacheDisabled", {"cacheDisabled": True})
    took: list[float] = []
    for _ in range(_LOADS):
        await _shown(bench, page, "/")
        took.append(await page.run(_PAINTED))
    await page.command("Network.setCacheDisabled", {"cacheDisabled": False})
    return took


async def _turns(bench: Bench, page: Page) -> list[float]:
    """From a click on `Next page` until its rows are seen."""
    took: list[float] = []
    for line in _FILTERS:
        await _shown(bench, page, f"/jobs?q={quote(line, safe=':.*')}")
        for _ in range(_PAGES):
            ms = await page.run(_NEXT)
            if ms is None:
                break
            took.append(ms)
    return took


async def _events(bench: Bench, page: Page, path: str) -> list[float]:
    """From the push of a job, as the server dates it, until it is seen."""
    queue = bench.queue("seen")
    await _shown(bench, page, path.format(queue))
    took: list[float] = []
    for _ in range(_EVENTS):
        await asyncio.sleep(_PAUSE_S)
        body = {"type": "bench.job", "args": [], "options": {"queue": queue}}
        status, answer = await exchange(bench.target, bench.requests.post("/ojs/v1/jobs", body), timeout_s=10)
        if status != 201:
            raise ServerRefused(f"a push was answered with {status}")
        job: dict[str, Any] = json.loads(answer)["job"]
        at = await page.run(f"Date.parse({json.dumps(job['enqueued_at'])})")
        took.append(await page.run(f"({_SEEN})({json.dumps(job['id'])})") - at)
    return took


async def _shown(bench: Bench, page: Page, path: str) -> None:
    """Load a page of the dashboard; returns when what it reads is there."""
    await page.go(f"http://{bench.target.authority}{path}")
    await page.run("""new Promise((resolve) => {
        const look = () => document.querySelector('main h1') && !document.querySelector('.skeleton') ? resolve(true)
            : requestAnimationFrame(look);
        look();
    })""")
