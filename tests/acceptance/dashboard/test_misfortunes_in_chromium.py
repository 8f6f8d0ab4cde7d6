"""What goes wrong around a page: clicks too many, answers of proxies, browsers that keep nothing, people who leave."""

from __future__ import annotations

import json
from typing import Final
from urllib.parse import quote

import pytest

from acceptance.dashboard.conftest import REFUSED, OpenScreen, busy
from support.proxy import Proxy, Trouble
from support.screen import Screen
from support.system import System

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

ODD: Final = "a/b%2F../ü😀?#&=+ \u202ex"


async def before(tab: Screen, script: str) -> None:
    """Run this ahead of each document's own scripts."""
    await tab.page.command("Page.addScriptToEvaluateOnNewDocument", {"source": script})


async def asked(tab: Screen, what: str) -> int:
    """How many requests there were whose address has a text."""
    entries = "performance.getEntriesByType('resource')"
    return int(await tab.page.run(f"{entries}.filter((one) => one.name.includes({json.dumps(what)})).length"))


async def test_a_double_click_does_it_once(screen: OpenScreen, site: System) -> None:
    site.call("POST", "/crons", {"name": "twice", "cron": "0 3 1 1 *", "type": "a.b", "args": []}, 201)
    tab = await screen()
    await tab.follow("/crons/twice")
    await tab.page.run("""(() => {
        const found = [...document.querySelectorAll('button')].find((one) => one.innerText === 'Run now');
        for (const detail of [1, 2]) found.dispatchEvent(new MouseEvent('click', { bubbles: true, detail }));
    })()""")
    await tab.shows("Its job is pushed.", "triggered")
    assert await asked(tab, "/trigger") == 1


async def test_a_dialog_is_of_its_page_alone(screen: OpenScreen, site: System) -> None:
    job = site.push("a.b", queue="left")["id"]
    tab = await screen()
    await tab.follow("/jobs?q=queue:left")
    await tab.click(f"{job[:8]}…{job[-4:]}")
    await tab.shows("Timeline")
    await tab.click("Cancel")
    await tab.shows("It will not run.")
    await tab.page.run("history.back()")
    await tab.titled("Jobs")
    await tab.closes()
    await tab.page.run("history.forward()")
    await tab.shows("Timeline")
    await tab.closes()
    assert site.job(job)["state"] == "available"


async def test_what_fails_after_its_dialog_was_closed_is_said(screen: OpenScreen, site: System) -> None:
    job = site.push("a.b", queue="failing")["id"]
    with Proxy.before(site.url, keeps_host=True) as proxy:
        tab = await screen(proxy.url, known=REFUSED)
        await tab.go(f"/jobs/{job}")
        await tab.click("Cancel")
        proxy.trouble("cancel", busy("1", silence_s=2))
        await tab.click("Cancel")
        await tab.click("Close")
        await tab.shows("Cancel: busy just now")


async def test_what_was_selected_is_not_when_something_else_is_shown(screen: OpenScreen, site: System) -> None:
    first, second = (site.push("a.b", queue=f"chosen.{one}")["id"] for one in "ab")
    tab = await screen()
    await tab.follow("/jobs?q=queue:chosen.a")
    await tab.click(f"Select job {first}")
    await tab.shows("Cancel 1 job")
    await tab.page.run("document.querySelector('[data-search]').value = 'queue:chosen.b'")
    await tab.click("Filter")
    await tab.shows(second[:8])
    await tab.hides("Cancel 1 job")


async def test_an_operation_on_all_that_match_outlives_its_page_and_can_be_stopped(screen: OpenScreen, site: System) -> None:
    site.push("a.b", queue="long")
    with Proxy.before(site.url, keeps_host=True) as proxy:
        tab = await screen(proxy.url, known=REFUSED)
        await tab.go("/jobs?q=queue:long")
        await tab.click("Cancel all that match")
        await tab.shows("1 job would be cancelled")
        proxy.trouble("cancel", *[busy("Wed, 21 Oct 2099 07:28:00 GMT")] * 10_000)
        await tab.click("Cancel all that match")
        await tab.shows("Working: 0 of 1")
        await tab.click("Queues")
        await tab.titled("Queues")
        await tab.page.run("history.back()")
        await tab.shows("Working: 0 of 1")
        await tab.click("Cancel all that match")
        await tab.shows("Something works on jobs already")
        await tab.click("Stop")
        await tab.shows("Stopped: 0 of 1")
        assert proxy.troubled["cancel"] < 1_000, "it is asked again without a pause"


@pytest.mark.parametrize("file", ["app.js", "lit-html.js"])
@pytest.mark.parametrize("trouble", [Trouble(status=403), Trouble(status=404), Trouble()], ids=["403", "404", "closed"])
async def test_a_page_whose_files_do_not_come_says_why(screen: OpenScreen, site: System, file: str, trouble: Trouble) -> None:
    with Proxy.before(site.url, keeps_host=True) as proxy:
        tab = await screen(proxy.url, known=REFUSED)
        proxy.trouble(file, *[trouble] * 20)
        await tab.page.go(proxy.url + "/queues")
        await tab.shows("The dashboard could not be loaded", "--allowed-origins", "It has to pass /ui and /ojs/v1 on")
        proxy.clear()
        await tab.go("/jobs")
        await tab.titled("Jobs")
        assert "could not be loaded" not in await tab.text()
        await tab.leave()


async def test_what_is_beyond_the_first_page_is_found(screen: OpenScreen, site: System) -> None:
    site.reset()
    for number in range(101):
        site.call("POST", "/queues", {"name": f"a{number:03}"}, 201)
        if number < 51:
            beat = {"worker_id": f"a{number:03}", "active_jobs": [], "queues": ["q"]}
            site.call("POST", "/workers/heartbeat", beat)
    held = site.push("a.b", queue="zz.last", rate_limit={"key": "zz.key", "concurrency": 1})["id"]
    site.fetch("zz.last", worker_id="zz.worker")
    beat = {"worker_id": "zz.worker", "active_jobs": [held], "queues": ["zz.last"]}
    site.call("POST", "/workers/heartbeat", beat)
    site.call("POST", "/queues/zz.last/pause")
    tab = await screen()
    await tab.follow("/queues")
    await tab.shows("These are 100 of 102 queues by name")
    await tab.page.run("document.querySelector('[data-search]').value = 'LAST'")
    await tab.click("Filter")
    await tab.shows("zz.last", "paused")
    await tab.hides("These are 100")
    await tab.follow("/queues?q=nowhere")
    await tab.shows("No queue has nowhere in its name.")
    assert "There is no queue yet" not in await tab.text()
    await tab.follow(f"/jobs/{held}")
    await tab.click("zz.worker")
    await tab.shows("zz.worker holds", "running", held[:8])
    await tab.follow(f"/jobs/{held}")
    await tab.click("zz.key")
    await tab.titled("Limits")
    await tab.shows("1 of 1")


async def test_a_server_that_is_busy_until_a_date_is_asked_again(screen: OpenScreen, site: System) -> None:
    job = site.push("a.b", queue="dated")["id"]
    with Proxy.before(site.url, keeps_host=True) as proxy:
        tab = await screen(proxy.url, known=REFUSED)
        await tab.go("/queues")
        proxy.trouble("jobs", busy("Wed, 21 Oct 2099 07:28:00 GMT"))
        await tab.click("Jobs")
        await tab.shows("busy just now", "tries again by itself")
        await tab.shows(job[:8])
        await tab.hides("busy just now")


async def test_a_clock_that_is_wrong_makes_nothing_old_or_early(screen: OpenScreen, site: System) -> None:
    site.push("a.b", queue="timed")
    for wrong in ("3_600_000", "-3_600_000"):
        tab = await screen(own=True)
        await before(tab, f"{{ const right = Date.now; Date.now = () => right() + {wrong}; }}")
        await tab.go("/jobs?q=queue:timed")
        await tab.shows("1 job")
        told = await tab.page.run("document.querySelector('tbody time').innerText")
        assert "h" not in told, told


async def test_a_browser_that_keeps_nothing_shows_pages_all_the_same(screen: OpenScreen) -> None:
    tab = await screen(own=True)
    refuses = "{ get() { throw new DOMException('no', 'SecurityError'); } }"
    await before(tab, f"Object.defineProperty(globalThis, 'localStorage', {refuses})")
    await tab.go("/")
    await tab.titled("Overview")
    await tab.press("t")
    assert await tab.page.run("document.documentElement.dataset.theme") in {"dark", "light"}


ODD_ADDRESSES: Final = (
    "/queues/..%2f..%2fetc",
    "/queues/%F0%9F%98%80%E2%80%AEx",
    "/queues/" + "q" * 250,
    "/jobs/%E0%A4%A",
    "/jobs?q=" + quote(ODD * 40),
    "/jobs?cursor=junk&q=age%3E-1h%20age%3C9e9d%20state:%20:x",
    "/crons/%2e%2e%2f",
    "/workflows/x?offset=-7",
)


async def test_an_odd_address_is_a_page_all_the_same(screen: OpenScreen) -> None:
    tab = await screen(known=REFUSED)
    for path in ODD_ADDRESSES:
        await tab.go(path)
        assert "can't be shown" not in await tab.text(), path
        await tab.click("Overview")
        await tab.titled("Overview")
