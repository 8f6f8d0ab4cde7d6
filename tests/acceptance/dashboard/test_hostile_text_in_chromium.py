"""Text from outside on every page: it stays text, in the direction and of the length that the page gives it."""

from __future__ import annotations

import pytest

from acceptance.dashboard.conftest import NO_SCHEMA, OpenScreen
from acceptance.dashboard.scenery import HOSTILE, LARGEST, Scenery
from acceptance.dashboard.test_pages_in_chromium import PAGES
from support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

MARKUP = "<img src=x onerror=\"console.error('ran')\">"
"""What names may be: they can be printed."""
STAYS = r"""(() => {
    const whole = document.documentElement.outerHTML;
    return {
        elements: document.body.querySelectorAll('img, script, iframe, object, [onerror], [style]').length,
        marks: whole.match(/.{0,40}[\u0007\u001b\u202a-\u202e\u2066-\u2069].{0,20}/)?.[0] ?? '',
        long: whole.length > 400_000,
        wide: document.documentElement.scrollWidth > innerWidth,
    };
})()"""
STAYED = {"elements": 0, "marks": "", "long": False, "wide": False}
"""What that says where nothing of the text became part of the page."""


class Evil:
    """Hostile text wherever the API takes it, beside the scenery."""

    def __init__(self, site: System) -> None:
        beat = {"worker_id": "evil-worker", "active_jobs": [], "queues": ["evil"], "hostname": HOSTILE}
        site.call("POST", "/workers/heartbeat", beat)
        meta = {HOSTILE: HOSTILE, "long": "y" * 5_000}
        body = {"type": "evil.job", "args": [HOSTILE, LARGEST, -LARGEST, "x" * 1_000], "meta": meta}
        pushed = site.call("POST", "/jobs", {**body, "options": {"queue": "evil", "tags": [MARKUP], "priority": 9}}, 201)
        self.job = pushed["job"]["id"]
        site.fetch("evil", worker_id="evil-worker", wait_ms=10_000)
        held = {"job_id": self.job, "worker_id": "evil-worker", "attempt": 1}
        site.call("PUT", f"/jobs/{self.job}/progress", {**held, "progress": 0.5, "message": HOSTILE, "data": {HOSTILE: 1}})
        error = {"code": HOSTILE, "type": HOSTILE, "message": HOSTILE * 50, "backtrace": [HOSTILE] * 100}
        site.call("POST", "/workers/nack", {**held, "error": error})
        steps = [{**body, "options": {"queue": "evil.steps"}}] * 2
        made = site.call("POST", "/workflows", {"type": "chain", "name": MARKUP, "steps": steps}, 201)
        self.workflow = made["workflow"]["id"]
        site.call("POST", "/crons", {**body, "name": "evil-cron", "cron": "0 3 * * *"}, 201)
        site.call("POST", "/queues/evil.paused/pause", {"reason": HOSTILE})
        site.call("POST", "/admin/system/maintenance", {"enabled": True, "reason": MARKUP})


@pytest.fixture(scope="module")
def evil(site: System, scenery: Scenery) -> Evil:
    del scenery
    return Evil(site)


@pytest.mark.parametrize("path", [*PAGES, "/jobs/{evil}", "/workflows/{flow}", "/crons/evil-cron", "/jobs?q=queue:evil"])
async def test_hostile_text_stays_text(screen: OpenScreen, scenery: Scenery, evil: Evil, path: str) -> None:
    tab = await screen()
    await tab.go(path.format(**scenery._asdict(), evil=evil.job, flow=evil.workflow))
    await tab.page.run("document.querySelectorAll('details').forEach((node) => (node.open = true))")
    await tab.settled()
    assert await tab.page.run(STAYS) == STAYED


async def test_hostile_text_is_shown_as_what_it_is(screen: OpenScreen, evil: Evil) -> None:
    tab = await screen()
    await tab.go(f"/jobs/{evil.job}")
    await tab.shows("<img src=x onerror=", "⟨U+202E⟩", "␛[31m", str(LARGEST), str(-LARGEST))


async def test_a_form_keeps_hostile_text_and_large_numbers_as_they_are(screen: OpenScreen, site: System, evil: Evil) -> None:
    tab = await screen(known=NO_SCHEMA)
    await tab.go(f"/jobs/{evil.job}")
    await tab.click("Push again")
    typed = "[...document.querySelectorAll('dialog textarea')].map((field) => field.value).join('')"
    assert "\u202e" not in await tab.page.run(typed), "it would turn what stands around it"
    await tab.fill("Type", "evil.again")
    await tab.click("Push again")
    await tab.closes()
    [again] = site.call("GET", "/jobs?type=evil.again")["jobs"]
    assert again["args"] == [HOSTILE, LARGEST, -LARGEST, "x" * 1_000]
