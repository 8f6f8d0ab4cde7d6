"""Pages that stay current: what happens appears by itself, and a server that comes back is no reason to load them again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from acceptance.dashboard.conftest import Crew, OpenScreen
from support.processes import free_port
from support.python_worker import pushed
from support.screen import Screen
from support.system import TOGETHER, System
from support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


async def marked(tab: Screen) -> None:
    """Leave a mark that would be gone if the page were loaded again."""
    await tab.page.run("globalThis.marked = true")


async def is_marked(tab: Screen) -> bool:
    return bool(await tab.page.run("globalThis.marked === true"))


async def test_a_job_appears_moves_on_and_ends_before_the_eyes(screen: OpenScreen, site: System, crew: Crew) -> None:
    jobs, events = await screen(), await screen()
    await jobs.follow("/jobs?q=queue:py.wait")
    await events.follow("/events?queue=py.wait")
    await marked(jobs)
    await marked(events)
    job = pushed(site, "py.wait", "seen", "seen.go", queue="py.wait")
    await jobs.shows(job[:8], "active")
    await events.shows("job.enqueued", "job.started")
    await jobs.click(f"{job[:8]}…{job[-4:]}")
    await jobs.shows("Timeline", "active")
    (crew.folder / "seen.go").touch()
    await jobs.shows("completed", "Result")
    await events.shows("job.completed")
    assert await is_marked(jobs)
    assert await is_marked(events)


async def test_the_end_of_a_job_is_no_lost_connection(screen: OpenScreen, site: System) -> None:
    job = site.push("shop.ended")["id"]
    tab = await screen(own=True)
    await tab.follow(f"/jobs/{job}")
    await tab.shows("available")
    site.call("DELETE", f"/jobs/{job}")
    await tab.shows("cancelled", "Retry")
    await tab.page.note_requests()

    def asked(what: str) -> int:
        return sum(what in address for address in tab.page.requests)

    def time_has_gone_on() -> bool:
        return asked("/progress") > 2

    await eventually(time_has_gone_on)
    assert asked("/events/stream") == 0, "nothing happens to it any more"
    assert "Connecting to the events" not in await tab.text()

    def its_events_are_followed_again() -> bool:
        return asked("/events/stream") > 0

    await tab.click("Retry")
    await eventually(its_events_are_followed_again)
    await tab.hides("Retry")


async def test_any_number_of_tabs_work_since_those_that_are_not_seen_have_no_stream(screen: OpenScreen, site: System) -> None:
    """A browser opens six connections to a server."""
    site.push("a.b", queue="tabs")
    tabs = []
    for number in range(10):
        tab = await screen(own=True)
        await tab.hide()
        await tab.in_front()
        await tab.go("/events?queue=tabs" if number == 1 else "/jobs?q=queue:tabs")
        await tab.shows("Nothing has happened" if number == 1 else "1 job")
        tabs.append(tab)

    async def all_but_the_last_are_hidden() -> bool:
        return [await tab.page.run("document.hidden") for tab in tabs] == [True] * 9 + [False]

    await eventually(all_but_the_last_are_hidden)
    site.push("a.b", queue="tabs")
    await tabs[-1].shows("2 jobs")
    assert "1 job" in await tabs[0].text(), "what isn't seen asks nothing"
    await tabs[0].in_front()
    await tabs[0].shows("2 jobs")
    site.push("a.b", queue="tabs")
    await tabs[0].shows("3 jobs")
    await tabs[1].in_front()
    await tabs[1].shows("job.enqueued")

    async def both_events_are_there() -> bool:
        return bool(await tabs[1].page.run("document.querySelectorAll('tbody tr').length") == 2)

    await eventually(both_events_are_there)


async def test_a_tab_of_events_that_is_hidden_again_has_no_stream(screen: OpenScreen, site: System) -> None:
    """Also where nothing has happened since."""
    tab, other = await screen(own=True), await screen(own=True)
    for each in (tab, other):
        await each.hide()
    await tab.in_front()
    await tab.go("/events?queue=again")
    await tab.shows("Nothing has happened")
    await tab.page.run("""(() => {
        globalThis.streams = [];
        const asked = fetch;
        globalThis.fetch = async (to, options) => {
            const answer = await asked(to, options);
            if (String(to).includes('/events/stream')) streams.push(options.signal);
            return answer;
        };
    })()""")

    async def streams_ended() -> list[bool]:
        ended: list[bool] = await tab.page.run("streams.map((one) => one.aborted)")
        return ended

    async def it_follows_again() -> bool:
        return await streams_ended() == [False]

    async def it_has_no_stream() -> bool:
        return await streams_ended() == [True]

    await other.in_front()
    await tab.in_front()
    await eventually(it_follows_again)
    await other.in_front()
    await eventually(it_has_no_stream)
    site.push("a.b", queue="again")
    await tab.in_front()
    await tab.shows("job.enqueued")


async def slowly(tab: Screen, ms: int) -> None:
    """Have each answer take so long."""
    await tab.page.command("Network.enable", {})
    conditions = {"offline": False, "latency": ms, "downloadThroughput": -1, "uploadThroughput": -1}
    await tab.page.command("Network.emulateNetworkConditions", conditions)


async def test_a_list_that_is_waited_for_says_so_and_stays_where_it_is(screen: OpenScreen, site: System) -> None:
    jobs = [{"type": "a.b", "args": [], "options": {"queue": "slowly"}}] * 60
    site.call("POST", "/jobs/batch", {"jobs": jobs}, 201)
    tab = await screen(own=True)
    await tab.follow("/jobs?q=queue:slowly")
    await tab.shows("60 jobs")
    assert "Loading…" not in await tab.text()
    place = "document.querySelector('table').getBoundingClientRect().top"
    before = await tab.page.run(place)
    await slowly(tab, 3_000)
    await tab.click("Next page")
    await tab.shows("Loading…")
    assert await tab.page.run(place) == before
    assert await tab.page.run("document.querySelectorAll('tbody tr').length") == 50, "the page before stays"
    await tab.hides("Loading…")
    assert await tab.page.run("document.querySelectorAll('tbody tr').length") == 10
    await tab.click("All")
    await tab.shows("Loading…")
    await slowly(tab, 0)
    await tab.shows("Cancel all that match")
    await tab.hides("Loading…")


@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("/queues", "There is no queue yet", "shop.fresh"),
        ("/", "Overview", "Waiting\n1"),
        ("/queues/shop.fresh", "shop.fresh", "Waiting\n1"),
    ],
)
async def test_counts_move_without_loading_the_page_again(
    screen: OpenScreen, site: System, path: str, before: str, after: str
) -> None:
    site.reset()
    if "fresh" in path:
        site.call("POST", "/queues", {"name": "shop.fresh"}, 201)
    tab = await screen()
    await tab.follow(path)
    await tab.shows(before)
    await marked(tab)
    pushed(site, "a.b", queue="shop.fresh")
    await tab.shows(after)
    assert await is_marked(tab)


async def test_a_workflow_goes_through_its_steps_before_the_eyes(screen: OpenScreen, site: System, crew: Crew) -> None:
    steps = [{"type": "py.wait", "args": [f"step {name}", f"{name}.go"], "options": {"queue": "py.wait"}} for name in "ab"]
    flow = site.call("POST", "/workflows", {"type": "chain", "name": "watched", "steps": steps}, 201)["workflow"]["id"]
    tab = await screen()
    await tab.follow(f"/workflows/{flow}")
    await marked(tab)
    for name, done in (("a", "1 of 2"), ("b", "2 of 2")):
        (crew.folder / f"{name}.go").touch()
        await tab.shows(done)
    await tab.shows("completed")
    assert await is_marked(tab)


async def test_updates_that_are_paused_wait_until_they_are_resumed(screen: OpenScreen, site: System) -> None:
    still, moving = await screen(), await screen()
    for tab in (still, moving):
        await tab.follow("/jobs?q=queue:paused.updates")
    await still.click("Pause updates")
    job = pushed(site, "a.b", queue="paused.updates")
    await moving.shows(job[:8])
    assert job[:8] not in await still.text()
    await still.click("Resume updates")
    await still.shows(job[:8])


async def test_a_flood_of_events_asks_once_a_second_at_most(screen: OpenScreen, site: System) -> None:
    tab = await screen(own=True)  # whose requests are counted
    await tab.follow("/jobs?q=queue:flood")
    last = [pushed(site, "a.b", queue="flood") for _ in range(60)][-1]
    await tab.shows(last[:8], "60 jobs")
    starts: list[float] = await tab.page.run("""performance.getEntriesByType('resource')
        .filter((one) => one.name.includes('/ojs/v1/jobs?')).map((one) => one.startTime)""")
    assert len(starts) > 1
    assert len(starts) <= (starts[-1] - starts[0]) / 1_000 + 2, starts


async def test_events_that_do_not_stop_put_nothing_off(screen: OpenScreen, site: System) -> None:
    tab = await screen()
    await tab.follow("/jobs?q=queue:steady")
    jobs = [{"type": "a.b", "args": [], "options": {"queue": "steady"}}] * 20
    shown: set[int] = set()

    async def several_totals_were_shown() -> bool:
        await asyncio.to_thread(site.call, "POST", "/jobs/batch", {"jobs": jobs}, 201)
        total = await tab.page.run("Number(/([0-9,]+) jobs?/.exec(document.body.innerText)?.[1].replaceAll(',', '') ?? 0)")
        shown.add(total)
        return len(shown) > 3

    await tab.until(several_totals_were_shown, "the total rises while jobs are pushed")


async def test_a_server_that_is_killed_and_comes_back_is_told_of_and_gone_on_with(screen: OpenScreen, tmp_path: Path) -> None:
    port = ("--port", str(free_port()))
    away = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "50")
    with System.started(tmp_path, TOGETHER, *port) as first:
        before = pushed(first, "a.b", queue="lasting")
        overview, jobs = await screen(first.url, known=away), await screen(first.url, known=away)
        await overview.follow("/")
        await jobs.follow("/jobs?q=queue:lasting")
        for tab in (overview, jobs):
            await marked(tab)
        first.kill()
        for tab in (overview, jobs):
            await tab.shows("The server does not answer.")
        assert before[:8] in await jobs.text(), "what was read stays"
        with System.started(tmp_path, TOGETHER, *port) as second:
            for tab in (overview, jobs):
                await tab.hides("The server does not answer.")
            after = pushed(second, "a.b", queue="lasting")
            await jobs.shows(before[:8], after[:8])
            await jobs.hides("Connecting to the events again")
            await overview.shows("Waiting\n2")

            async def both_were_never_loaded_again() -> bool:
                return await is_marked(overview) and await is_marked(jobs)

            await eventually(both_were_never_loaded_again)
