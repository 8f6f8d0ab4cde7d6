"""Every page of the dashboard, as a browser shows it: also in the dark, on a phone, and with hostile text in it."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

import pytest

from acceptance.dashboard.conftest import NO_SCHEMA, OpenScreen
from acceptance.dashboard.scenery import HOSTILE, LARGEST, Scenery
from support.cli import Cli, Said
from support.examples import amount
from support.screen import Screen
from support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

PAGES = {
    "/": ["What is wrong now", "Over time", "Dead letters"],
    "/queues": ["mail", "images", "bulk", "paused", "Not ended, 1 h"],
    "/queues/mail": ["Waiting by priority", "Nothing waits.", "Settings", "Purge"],
    "/queues/reports": ["Waiting by priority", "Jobs"],
    "/jobs": ["Cancel all that match", "image.scale"],
    "/jobs?q=queue:mail": ["mail.send", "2 jobs"],
    "/jobs?view=unique": ["No unique job is there."],
    "/jobs/{dead}": ["SmtpError", "Timeline", "Stack trace", "Retry"],
    "/jobs/{completed}": ["9223372036854775807", "Result", "Push again"],
    "/jobs/{active}": ["worker-1", "Cancel"],
    "/jobs/{scheduled}": ["scheduled"],
    "/jobs/{hostile}": ["9223372036854775808", "900,000 characters", "⟨U+202E⟩"],
    "/workflows": ["order", "gallery", "0 of 3"],
    "/workflows/{workflow}": ["order.check", "order.send", "Graph"],
    "/workflows/{group}": ["60 members"],
    "/crons": ["nightly", "Every day at 03:00"],
    "/crons/nightly": ["Europe/Berlin", "Last runs", "Next runs"],
    "/workers": ["worker-1", "box"],
    "/limits": ["smtp", "0 of 2"],
    "/webhooks": ["https://example.org/hook", "job.discarded"],
    "/events": ["Nothing has happened since this page was opened"],
    "/system": ["Health", "Processes", "Index", "Maintenance"],
    "/webhooks?status=failing": ["There is none."],
    "/system?part=audit": ["admin.pause_queue", "pauseQueue", "bulk"],
    "/system?part=keys": ["There are no keys"],
    "/system?part=unreadable": ["All records can be read."],
    "/system?part=config": ["What this gateway is set to"],
}


SMALL = """[...document.querySelectorAll('button, nav a, select, summary, input[type=search]')]
    .filter((one) => one.checkVisibility() && one.getBoundingClientRect().height < 44)
    .map((one) => one.outerHTML.slice(0, 60))"""
"""What a finger doesn't hit."""
OPEN_ALL = "document.querySelectorAll('details').forEach((node) => (node.open = true))"


async def told(cli: Cli, *words: str) -> Said:
    """What the command says, beside the event loop."""
    return await asyncio.to_thread(lambda: cli(*words))


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_shows_what_there_is_and_bars_nobody(
    screen: OpenScreen, scenery: Scenery, site: System, tmp_path: Path, path: str
) -> None:
    """It is looked at in every way: in the light, by its command, in the dark and on a phone, and with all opened.

    axe does so in the light and in the dark with `OJS_EXAMPLES=all`, else in the light at one page and in the dark at the next.
    """
    in_the_dark = list(PAGES).index(path) % 2 == 1
    tab = await screen()
    await tab.follow(path.format(**scenery._asdict()))
    await tab.shows(*PAGES[path])
    if amount() == "all" or not in_the_dark:
        assert await tab.barriers() == []

    for command in await tab.commands():
        words = [word for word in shlex.split(command)[1:] if word != "-f"]  # which doesn't end
        said = await told(Cli(tmp_path, site.url), *words)
        assert said.code in ({0, 1} if words == ["doctor"] else {0}), (command, said)

    await tab.looked_at(dark=True, width=390)
    await tab.shows(*PAGES[path])
    assert await tab.page.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the phone"
    assert await tab.page.run(SMALL) == []
    if amount() == "all" or in_the_dark:
        assert await tab.barriers() == [], "in the dark and on a phone"

    await tab.looked_at()
    await stays_text(tab)


async def stays_text(tab: Screen) -> None:
    await tab.page.run(OPEN_ALL)
    await tab.settled()
    assert await tab.escaped() == {}


@pytest.mark.parametrize("path", ["/jobs/{evil}", "/workflows/{evil_flow}", "/crons/evil-cron", "/jobs?q=queue:evil"])
async def test_hostile_text_stays_text(screen: OpenScreen, scenery: Scenery, path: str) -> None:
    tab = await screen()
    await tab.follow(path.format(**scenery._asdict()))
    await stays_text(tab)
    if "{evil}" in path:
        await tab.shows("<img src=x onerror=", "⟨U+202E⟩", "␛[31m", str(LARGEST), str(-LARGEST))


COUNTS_KEYS = """{
    const keys = Object.keys;
    globalThis.most = 0;
    Object.keys = (value) => {
        const found = keys(value);
        globalThis.most = Math.max(globalThis.most, found.length);
        return found;
    };
}"""


async def test_a_long_text_is_not_taken_apart_into_its_characters(screen: OpenScreen, scenery: Scenery) -> None:
    """That took a processor for a second whenever the page was drawn."""
    tab = await screen(own=True)
    await tab.page.command("Page.addScriptToEvaluateOnNewDocument", {"source": COUNTS_KEYS})
    await tab.go(f"/jobs/{scenery.hostile}")
    await tab.shows("900,000 characters")
    assert 0 < await tab.page.run("globalThis.most") < 10_000


async def test_a_form_keeps_hostile_text_and_large_numbers_as_they_are(
    screen: OpenScreen, scenery: Scenery, site: System
) -> None:
    tab = await screen(known=NO_SCHEMA)
    await tab.follow(f"/jobs/{scenery.evil}")
    await tab.click("Push again")
    typed = "[...document.querySelectorAll('dialog textarea')].map((field) => field.value).join('')"
    assert "\u202e" not in await tab.page.run(typed), "it would turn what stands around it"
    await tab.fill("Type", "evil.again")
    await tab.click("Push again")
    await tab.closes()
    [again] = site.call("GET", "/jobs?type=evil.again")["jobs"]
    assert again["args"] == [HOSTILE, LARGEST, -LARGEST, "x" * 1_000]


async def test_the_list_of_queues_draws_how_many_jobs_had_not_ended(screen: OpenScreen, scenery: Scenery) -> None:
    del scenery
    tab = await screen()
    await tab.follow("/queues")
    drawn = "[...document.querySelectorAll('tr')].find((row) => row.innerText.startsWith('bulk')).querySelector('svg')"
    assert await tab.page.run(f"{drawn}.getAttribute('aria-label')") == "from 0 to 20, at most 20"
    assert await tab.page.run(f"{drawn}.querySelector('path').getAttribute('d').split('L').length") == 21


async def test_a_job_shows_the_id_of_its_trace(screen: OpenScreen, site: System) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    body = {"type": "a.b", "args": [], "meta": {"traceparent": f"00-{trace}-00f067aa0ba902b7-01"}}
    job = (await asyncio.to_thread(site.call, "POST", "/jobs", body, 201))["job"]["id"]
    tab = await screen()
    await tab.go(f"/jobs/{job}")
    await tab.shows(trace)


DIALOGS = {
    "/queues/mail": "Purge",
    "/jobs/{waiting}": "Priority",
    "/jobs/{active}": "Cancel",
    "/workflows/{workflow}": "Cancel",
    "/crons/nightly": "Delete",
    "/workers": "Terminate",
}


async def test_the_command_of_a_dialog_is_one_that_there_is(
    screen: OpenScreen, scenery: Scenery, site: System, tmp_path: Path
) -> None:
    tab = await screen()
    await tab.follow("/")
    for path, button in DIALOGS.items():
        beat = {"worker_id": "worker-1", "active_jobs": [], "queues": ["mail"], "hostname": "box"}
        await asyncio.to_thread(site.request, "POST", "/ojs/v1/workers/heartbeat", beat)  # or it would be stale
        await tab.follow(path.format(**scenery._asdict()))
        await tab.click(button)
        [command] = await tab.commands("dialog")
        said = await told(Cli(tmp_path, site.url), *shlex.split(command)[1:], "--help")
        assert said.code == 0, (path, command, said)


LETTERS = {
    "o": "Overview",
    "q": "Queues",
    "j": "Jobs",
    "f": "Workflows",
    "c": "Crons",
    "w": "Workers",
    "l": "Limits",
    "h": "Webhooks",
    "e": "Events",
    "s": "System",
}


async def test_keys_lead_to_pages_and_to_the_filter(screen: OpenScreen, scenery: Scenery) -> None:
    del scenery
    tab = await screen()
    await tab.follow("/")
    for key, page in LETTERS.items():
        await tab.follow("/jobs" if page == "Overview" else "/")
        await tab.press("g")
        await tab.press(key)
        await tab.titled(page)
    await tab.press("?")
    await tab.shows("Go to the filter")
    await tab.press("Escape")
    await tab.hides("Go to the filter")
    await tab.press("p")
    await tab.shows("Resume updates")
    await tab.press("t")
    assert await tab.page.run("document.documentElement.dataset.theme") == "dark"
    await tab.press("t")
    assert await tab.page.run("document.documentElement.dataset.theme") == "light"
    await tab.press("g")
    await tab.press("j")
    await tab.shows("Cancel all that match")
    await tab.press("/")
    assert await tab.page.run("document.activeElement.name") == "q"
