"""The filter of jobs: a line that isn't understood changes nothing, and an operation is about what was shown."""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import quote

import pytest

from acceptance.dashboard.conftest import REFUSED, OpenScreen, busy
from support.proxy import Proxy, Trouble
from support.system import System
from support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

NOT_UNDERSTOOD: Final = {
    "type:u3.t qeue:u3a": "qeue:u3a isn't understood. Did you mean queue:u3a?",
    "Queue:u3a": "Did you mean queue:u3a?",
    "queue=u3a": "Did you mean queue:u3a?",
    "colour:red": "A filter can name state: queue:",
    "queue:u3a queue:u3b": "queue:u3a and queue:u3b can't both hold",
    "type:a type:b": "type:a and type:b can't both hold",
    "tag:a tag:b": "can't both hold",
    "meta.a:1 meta.a:2": "can't both hold",
    "age>1h age>2h": "age>1h and age>2h can't both hold",
    "age>1h until:2026-01-01T00:00:00Z": "can't both hold",
    "age>1x": "age>1x isn't an age",
    "age>-1h": "isn't an age",
    "age>999999999w": "isn't an age",
    "age>1constructor": "isn't an age",
    "queue:": "queue: has no value.",
    'queue:""': "has no value.",
    'queue:"a b': "quotation mark that isn't closed",
    "state:dead": "There is no state dead: it can be scheduled",
    "order:up": "it can be asc or desc",
    "http://x": "A filter can name state: queue:",
    "words": "words isn't understood",
    '"two words"': "A filter can name state: queue:",
}
UNDERSTOOD: Final = (
    "queue:u3a type:u3.t",
    "queue:u3a age>0s meta.none:x",
    "state:available queue:u3a age<9d sort:priority order:asc",
)


COUNTED: Final = {"succeeded": 3, "failed": 0, "errors": [], "has_more": False}
"""What a dry run says."""


def staged(site: System) -> None:
    site.reset()
    for queue, number in (("u3a", 3), ("u3b", 2)):
        jobs = [{"type": "u3.t", "args": [], "options": {"queue": queue}}] * number
        site.call("POST", "/jobs/batch", {"jobs": jobs}, 201)


async def test_what_a_filter_does_not_understand_is_an_error_and_nothing_acts_on_the_rest(
    screen: OpenScreen, site: System
) -> None:
    staged(site)
    tab = await screen()
    await tab.follow("/jobs")
    await tab.shows("5 jobs", "Cancel all that match")
    for line, problem in NOT_UNDERSTOOD.items():
        await tab.follow(f"/jobs?q={quote(line)}")
        await tab.shows(problem)
        assert "jobs" not in await tab.page.run("document.querySelector('main section').innerText"), line
        assert not {name for name in await tab.offered() if "all that match" in name}, line
        assert await tab.commands() == [], line
        field = "document.querySelector('main form.search input')"
        assert await tab.page.run(f"[{field}.value, {field}.ariaInvalid]") == [line, "true"]
    for line in UNDERSTOOD:
        await tab.follow(f"/jobs?q={quote(line)}")
        await tab.hides("can't both hold")
        assert await tab.page.run("document.querySelector('main form.search input').ariaInvalid") == "false", line


async def test_an_operation_says_how_many_and_which_by_the_request_that_will_act(screen: OpenScreen, site: System) -> None:
    staged(site)
    held = site.fetch("u3a", worker_id="w")[0]["id"]
    tab = await screen()
    await tab.follow("/jobs?q=queue:u3a")
    await tab.shows("3 jobs")
    await tab.click("Cancel all that match")
    await tab.shows("2 jobs would be cancelled: those that fit queue:u3a and are available, scheduled, pending or retryable.")
    links = "[...document.querySelectorAll('dialog li a')].map((link) => link.title)"
    waiting = {job["id"] for job in site.call("GET", "/jobs?queue=u3a&state=available")["jobs"]}
    assert set(await tab.page.run(links)) == waiting
    await tab.click("Cancel all that match")
    await tab.shows("Done: 2 of 2 cancelled")
    assert site.job(held)["state"] == "active"
    assert site.call("GET", "/jobs?queue=u3b&state=available")["pagination"]["total"] == 2


async def test_an_operation_that_was_counted_for_another_page_does_not_ask_there(screen: OpenScreen, site: System) -> None:
    staged(site)
    with Proxy.before(site.url, keeps_host=True) as proxy:
        tab = await screen(proxy.url, known=REFUSED)
        await tab.go("/jobs?q=queue:u3a")
        await tab.shows("3 jobs")
        proxy.trouble("cancel", Trouble(status=200, text=json.dumps(COUNTED), silence_s=1.0))
        await tab.click("Cancel all that match")
        await tab.follow("/jobs?q=queue:u3b")
        await tab.shows("2 jobs")

        def the_first_was_counted() -> bool:
            return proxy.troubled["cancel"] == 1

        await eventually(the_first_was_counted)
        await tab.page.run("fetch('/ojs/v1/queues').then((answer) => answer.text())")
        await tab.closes()
        await tab.click("Cancel all that match")
        await tab.shows("2 jobs would be cancelled")
        await tab.leave()


async def test_an_operation_stops_after_the_page_that_it_is_at(screen: OpenScreen, site: System) -> None:
    site.reset()
    jobs = [{"type": "a.b", "args": [], "options": {"queue": "stopped"}}] * 450
    site.call("POST", "/jobs/batch", {"jobs": jobs}, 201)
    with Proxy.before(site.url, keeps_host=True) as proxy:
        tab = await screen(proxy.url, known=REFUSED)
        await tab.go("/jobs?q=queue:stopped")
        await tab.shows("450 jobs")
        await tab.click("Cancel all that match")
        await tab.fill("Type 450 to confirm", "450")
        proxy.trouble("cancel", None, *[busy("60")] * 100)
        await tab.click("Cancel all that match")
        await tab.shows("Working: 200 of 450 cancelled", "busy just now")
        await tab.click("Stop")
        await tab.shows("Stopped: 200 of 450 cancelled")
        assert site.call("GET", "/jobs?queue=stopped&state=cancelled")["pagination"]["total"] == 200
        proxy.clear()
        await tab.click("Close")
        await tab.click("Cancel all that match")
        await tab.fill("Type 250 to confirm", "250")
        await tab.click("Cancel all that match")
        await tab.shows("Done: 250 of 250 cancelled")
        assert proxy.passed["cancel"] == 3, "it is counted, then done in two pages"
        await tab.leave()
