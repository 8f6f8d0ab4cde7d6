"""Words and numbers of the dashboard: what the API writes for programs is said for people."""

from __future__ import annotations

import pytest

from acceptance.dashboard.conftest import OpenScreen
from support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

NONE = "\N{EN DASH}"
SCHEDULES = {
    "@every 1s": "Every 1 s",
    "@every 1h30m": "Every 1 h 30 min",
    "@hourly": "Every hour",
    "@weekly": "At 00:00 on Sunday",
    "*/10 * * * * *": "Every 10 seconds",
    "0 0 3 * * *": "Every day at 03:00",
    "30 0 3 * * *": "30 0 3 * * *",
}


async def test_a_schedule_is_put_into_words_and_its_runs_differ(screen: OpenScreen) -> None:
    tab = await screen()
    await tab.follow("/crons")
    await tab.click("New entry")
    for schedule, words in SCHEDULES.items():
        await tab.fill("Schedule", schedule)
        await tab.shows(f"{words}. Next runs:")
    await tab.fill("Schedule", "@every 1s")
    runs = """new Set([...document.querySelectorAll('dialog ol li')]
        .map((one) => [...one.childNodes].find((node) => node.nodeType === Node.TEXT_NODE && node.data.trim()).data)).size"""

    async def all_runs_differ() -> bool:
        listed = await tab.page.run("document.querySelectorAll('dialog ol li').length")
        return bool(listed > 3 and await tab.page.run(runs) == listed)

    await tab.until(all_runs_differ, "each run is another moment")
    choices = "[...document.querySelectorAll('dialog option')].map((one) => [one.value, one.innerText])"
    assert ["cancel_previous", "the last one is cancelled"] in await tab.page.run(choices)


async def test_what_was_not_measured_is_no_number(screen: OpenScreen, site: System) -> None:
    site.call("POST", "/queues", {"name": "idle"}, 201)
    tab = await screen()
    await tab.follow("/queues/idle")
    await tab.shows(f"Wait, p50 and p99\n{NONE}, {NONE}", f"Run, p50 and p99\n{NONE}, {NONE}")
    assert "0 ms" not in await tab.text()


async def test_a_step_that_failed_has_its_error_in_its_row(screen: OpenScreen, site: System) -> None:
    step = {"type": "a.b", "args": [], "options": {"queue": "words", "retry": {"max_attempts": 1}}}
    flow = site.call("POST", "/workflows", {"type": "chain", "steps": [step, step]}, 201)["workflow"]["id"]
    [job] = site.fetch("words", worker_id="w", wait_ms=10_000)
    error = {"code": "Boom", "message": "no such file"}
    site.call("POST", "/workers/nack", {"job_id": job["id"], "error": error})
    tab = await screen()
    await tab.follow(f"/workflows/{flow}")
    await tab.shows("failed")
    row = "[...document.querySelectorAll('tbody tr')].map((one) => one.innerText).find((one) => one.includes('failed'))"

    async def its_row_says_why() -> bool:
        return "no such file" in str(await tab.page.run(row))

    await tab.until(its_row_says_why, "the row has the error")
    await tab.follow(f"/jobs/{job['id']}")
    await tab.shows("fetched by a worker")


async def test_periods_are_in_words(screen: OpenScreen, site: System) -> None:
    site.call("PUT", "/rate-limits/words.key/override", {"rate": {"limit": 5, "period": "PT1H"}})
    site.call("PUT", "/queues/idle.too/config", {"rate_limit": {"limit": 7, "period": "PT90S"}})
    tab = await screen()
    await tab.follow("/limits")
    await tab.shows("0 of 5 in 1 h")
    await tab.follow("/queues/idle.too")
    await tab.shows("at most 7 in 1 min 30 s")


async def test_rates_of_a_column_are_in_one_unit(screen: OpenScreen, site: System) -> None:
    jobs = [{"type": "a.b", "args": [], "options": {"queue": "rates.many"}}] * 900
    site.call("POST", "/jobs/batch", {"jobs": jobs}, 201)
    site.push("a.b", queue="rates.few")
    tab = await screen()
    await tab.follow("/queues")
    pushed = """[...document.querySelectorAll('tbody tr')].filter((row) => row.innerText.includes('rates.'))
        .map((row) => row.children[6].innerText)"""

    async def both_are_a_second() -> bool:
        found = await tab.page.run(pushed)
        return len(found) == 2 and all(one.endswith("/s") and not one.startswith("0/") for one in found)

    await tab.until(both_are_a_second, "both rates are per second")
