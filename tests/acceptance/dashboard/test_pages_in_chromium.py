"""Every page of the dashboard, as a browser shows it."""

from __future__ import annotations

import pytest

from acceptance.dashboard.conftest import OpenScreen
from acceptance.dashboard.scenery import Scenery

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

PAGES = {
    "/": ["What is wrong now", "Over time", "Dead letters"],
    "/queues": ["mail", "images", "bulk", "paused"],
    "/queues/mail": ["Waiting by priority", "Settings", "Purge"],
    "/jobs": ["Cancel all that match", "image.scale"],
    "/jobs?q=queue:mail": ["mail.send", "2 jobs"],
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
    "/system?part=unreadable": ["All records can be read."],
    "/system?part=config": ["What this gateway is set to"],
}


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_shows_what_there_is_and_bars_nobody(screen: OpenScreen, scenery: Scenery, path: str) -> None:
    tab = await screen()
    await tab.go(path.format(**scenery._asdict()))
    await tab.shows(*PAGES[path])
    assert await tab.barriers() == []
    assert await tab.troubles() == []


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/{hostile}", "/workflows/{workflow}"])
async def test_a_page_is_there_in_the_dark_and_on_a_phone(screen: OpenScreen, scenery: Scenery, path: str) -> None:
    tab = await screen(dark=True, width=390)
    await tab.go(path.format(**scenery._asdict()))
    await tab.shows(*PAGES[path])
    assert await tab.page.run("document.documentElement.scrollWidth <= innerWidth"), "the page is wider than the phone"
    assert await tab.barriers() == []
    assert await tab.troubles() == []


async def test_keys_lead_to_pages_and_to_the_filter(screen: OpenScreen, scenery: Scenery) -> None:
    del scenery
    tab = await screen()
    await tab.go("/")
    await tab.press("g")
    await tab.press("j")
    await tab.shows("Cancel all that match")
    await tab.press("/")
    assert await tab.page.run("document.activeElement.name") == "q"
    await tab.go("/")
    await tab.press("?")
    await tab.shows("Go to the filter")
