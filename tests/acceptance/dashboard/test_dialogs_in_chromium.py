"""Each dialog of each page: its own button acts, once what it asks for is typed, and nothing else in it does."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

import pytest
import pytest_asyncio

from acceptance.dashboard.stage import BEAT, Stage
from ojs_dashboard.files import FOLDER
from support.browser import Browser, Sent
from support.guarded import Guarded
from support.screen import Screen
from support.system import System
from support.waiting import eventually

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

MANY: Final = 120
"""Jobs, so that their number has to be typed."""
CHANGES_MANY: Final = {"POST /jobs", "POST /jobs/bulk/{}", "POST /admin/jobs/bulk/{}"}
PAGES: Final[dict[str, set[str]]] = {
    "/": set(),
    "/queues": {"POST /queues", "POST /queues/{}/pause"},
    "/queues/mail": {
        "POST /queues/{}/pause",
        "PUT /queues/{}/config",
        "PUT /admin/queues/{}/rate-limit",
        "DELETE /admin/queues/{}/jobs",
    },
    "/jobs?q=queue:many": CHANGES_MANY,
    "/jobs?q=queue:mail": CHANGES_MANY,
    "/jobs?view=unique": {"POST /jobs"},
    "/jobs/{waiting}": {"PATCH /jobs/{}", "POST /admin/jobs/{}/{}", "POST /jobs"},
    "/jobs/{dead}": {"POST /admin/jobs/{}/{}", "POST /jobs"},
    "/jobs/{scheduled}": {"PATCH /jobs/{}", "POST /admin/jobs/{}/{}", "POST /jobs"},
    "/workflows": set(),
    "/workflows/{workflow}": {"POST /workflows/{}/cancel"},
    "/workflows/{cancelled}": {"POST /workflows/{}/retry"},
    "/crons": {"POST /crons", "POST /crons/{}/{}"},
    "/crons/nightly": {"POST /crons/{}/{}", "PATCH /crons/{}", "DELETE /crons/{}"},
    "/workers": {"POST /admin/workers/directive", "POST /admin/workers/{}/directive"},
    "/limits": {"PUT /rate-limits/{}/override", "DELETE /rate-limits/{}/override"},
    "/webhooks": {
        "POST /webhooks/subscriptions",
        "POST /webhooks/subscriptions/{}/test",
        "PATCH /webhooks/subscriptions/{}",
        "POST /webhooks/subscriptions/{}/rotate-secret",
        "DELETE /webhooks/subscriptions/{}",
    },
    "/events": set(),
    "/system": {"POST /admin/system/maintenance"},
    "/system?part=keys": {"POST /admin/keys", "POST /admin/keys/{}/rotate", "DELETE /admin/keys/{}"},
    "/system?part=audit": set(),
    "/system?part=unreadable": {"DELETE /admin/unreadable/{}/{}"},
    "/system?part=config": set(),
}
"""What the buttons of each page ask for, with `{}` for each name in a path."""
ACTS: Final = "main button:not(.quiet, [type=submit], [disabled], .pages *, form *)"
"""The buttons of a page that may change something; the others copy, choose or turn a page."""
SAFE: Final = re.compile(r"/cron/preview|/session|\"dry_run\":true")
"""Requests that aren't GET and change nothing."""
ELSEWHERE: Final = {"POST /webhooks/deliveries/{}/retry", "DELETE /admin/workers/{}", "POST /queues/{}/resume"}
"""Operations whose buttons need what isn't staged here; `test_actions_in_chromium.py` presses them."""
REFUSAL: Final = json.dumps({"error": {"code": "conflict", "message": "held by the test"}})


@pytest.fixture(scope="module")
def site(guarded: Guarded) -> System:
    """The system with keys, in place of one without."""
    return guarded.system


class Dialogs(NamedTuple):
    """A tab whose requests that change something reach no server, and those requests."""

    tab: Screen
    held: list[Sent]
    ids: dict[str, str]

    async def run(self, script: str) -> Any:
        return await self.tab.page.run(script)

    async def sent(self) -> int:
        """How many requests that change something the page has sent. One that is harmless goes after them."""
        await self.run("fetch('/ojs/v1/session').then((answer) => answer.text())")
        return len(self.held)

    async def title(self) -> str:
        """The title of the dialog on top; empty for none."""
        return str(await self.run("[...document.querySelectorAll('dialog[open] h2')].at(-1)?.innerText ?? ''"))

    async def press(self, name: str) -> str:
        """Press a button of the page; returns the title of the dialog that opens, empty for a request without one."""
        before = len(self.held)
        pressed = f"""(() => {{
            const all = [...document.querySelectorAll({json.dumps(ACTS)})];
            const found = all.find((one) => one.innerText === {json.dumps(name)});
            found?.click();
            return !!found;
        }})()"""

        async def there_is_such_a_button() -> bool:
            return bool(await self.run(pressed))

        await eventually(there_is_such_a_button)

        async def it_asks_or_acts() -> bool:
            return bool(await self.title()) or len(self.held) > before

        await self.tab.until(it_asks_or_acts, f"{name} opens a dialog or sends a request")
        return "" if len(self.held) > before else await self.title()

    async def in_dialog(self, what: str) -> Any:
        """The value of an expression about `dialog`, the one on top, and `named`, its buttons by their names."""
        return await self.run(f"""(() => {{
            const dialog = [...document.querySelectorAll('dialog[open]')].at(-1);
            const named = new Map([...dialog?.querySelectorAll('button') ?? []].map((one) => [one.innerText, one]));
            return {what};
        }})()""")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def dialogs(browser: Browser, guarded: Guarded) -> AsyncIterator[Dialogs]:
    """Somebody who may do everything."""
    stage = await Stage.made(guarded)

    async def ask(method: str, path: str, body: object = None) -> Any:
        status, answer, _ = await guarded.ask(method, path, body, token=guarded.tokens["admin"])
        assert status < 300, (method, path, answer)
        return answer

    job = {"type": "a.b", "args": []}
    await ask("POST", "/jobs/batch", {"jobs": [{**job, "options": {"queue": "many"}}] * MANY})
    later = {**job, "options": {"queue": "mail", "scheduled_at": "2099-01-01T00:00:00Z"}}
    scheduled = (await ask("POST", "/jobs", later))["job"]["id"]
    ended = (await ask("POST", "/jobs", {**job, "options": {"queue": "mail"}}))["job"]["id"]
    await ask("DELETE", f"/jobs/{ended}")
    cancelled = (await ask("POST", "/workflows", {"type": "chain", "steps": [job, job]}))["workflow"]["id"]
    await ask("DELETE", f"/workflows/{cancelled}")
    await asyncio.to_thread(guarded.system.put_record, "queue.torn", b'{"torn')
    tab = await Screen.opened(browser, guarded.url)
    await tab.go("/")
    await tab.fill("Key", guarded.tokens["admin"])
    await tab.click("Sign in")
    await tab.shows("Sign out")
    held = await tab.page.hold(
        lambda sent: sent.method not in {"GET", "HEAD"} and not SAFE.search(sent.url + sent.body), REFUSAL
    )
    yield Dialogs(tab, held, {**stage._asdict(), "scheduled": scheduled, "cancelled": cancelled})
    await tab.page.pass_all()
    await tab.close()


@pytest.mark.parametrize("path", PAGES)
async def test_what_acts_on_a_page_is_the_button_that_says_so_and_nothing_beside_it(
    dialogs: Dialogs, guarded: Guarded, path: str
) -> None:
    await guarded.ask("POST", "/workers/heartbeat", BEAT, token=guarded.tokens["admin"])  # or it is stale by and by
    address = path.format(**dialogs.ids)
    await dialogs.tab.follow(address)
    asked = {await only_its_button_acts(dialogs, name) for name in await names(dialogs)}
    if path.startswith("/jobs?q"):
        for name in await names_of_selected(dialogs):
            await dialogs.tab.follow("/")
            await dialogs.tab.follow(address)
            await names_of_selected(dialogs)
            asked.add(await only_its_button_acts(dialogs, name))
    assert asked == PAGES[path]


async def names(dialogs: Dialogs) -> list[str]:
    """The names of the buttons of a page, once there are as many as a moment ago."""
    found: list[str] = []

    async def there_are_no_more() -> bool:
        before = found[:]
        found[:] = await dialogs.run(f"[...document.querySelectorAll({json.dumps(ACTS)})].map((one) => one.innerText)")
        return found == before

    await eventually(there_are_no_more, every=0.1)
    return list(dict.fromkeys(found))


async def names_of_selected(dialogs: Dialogs) -> list[str]:
    await dialogs.tab.click("Select all on this page")
    await dialogs.tab.hides("all that match")
    return [name for name in await names(dialogs) if name.endswith((" jobs", " job"))]


async def only_its_button_acts(dialogs: Dialogs, name: str) -> str:
    """Try all that a button of the page leads to; returns the operation that is asked for in the end."""
    dialogs.held.clear()
    title = await dialogs.press(name)
    if title:
        await nothing_else_acts(dialogs, title)
        await wrong_words_do_nothing(dialogs, title)
        assert await dialogs.sent() == 0, title
        await dialogs.in_dialog("named.get('Close').click()")
        assert (await dialogs.title(), await dialogs.sent()) == ("", 0), f"{title} is closed and nothing was done"
        assert await dialogs.press(name) == title
        await fill_in(dialogs)
        await dialogs.in_dialog(f"named.get({json.dumps(title)}).click()")

    async def the_refusal_is_there() -> bool:
        return bool(await dialogs.run("document.body.textContent.includes('held by the test')"))

    await dialogs.tab.until(the_refusal_is_there, f"{name} sends its request, and says what came of it")
    await dialogs.in_dialog("named.get('Close')?.click()")
    assert await dialogs.sent() == 1, (name, dialogs.held)
    if "all that match" in title:  # what works on them says so until it is closed
        await dialogs.tab.click("Close")
    return operation(dialogs.held[0])


async def nothing_else_acts(dialogs: Dialogs, title: str) -> None:
    """Press Enter wherever the focus may be, and each other button but the one that closes."""
    await dialogs.tab.press("Enter")
    if not await dialogs.title():  # `Close` had the focus
        await dialogs.press(title)
    fields = "[...dialog.querySelectorAll('input, textarea, select')]"
    for field in await dialogs.in_dialog(f"{fields}.map((one) => one.id)"):
        await dialogs.in_dialog(f"document.getElementById({json.dumps(field)}).focus()")
        await dialogs.tab.press("Enter")
        assert await dialogs.title() == title, f"Enter in {field}"
    others = [name for name in await dialogs.in_dialog("[...named.keys()]") if name not in {"Close", title}]
    for other in others:
        await dialogs.in_dialog(f"named.get({json.dumps(other)}).click()")
        await dialogs.sent()
        if await dialogs.title() == "Copy":  # without a clipboard the text is in a dialog of its own, above this one
            assert await dialogs.in_dialog("dialog.querySelector('textarea').value.length") > 0
            await dialogs.in_dialog("named.get('Close').click()")
        assert await dialogs.title() == title, other
    assert await dialogs.sent() == 0, title


async def typed_word(dialogs: Dialogs) -> str:
    """The word that is asked for; empty for none."""
    label = await dialogs.in_dialog("dialog.querySelector('label[for=field-typed]')?.innerText ?? ''")
    return re.sub(r"^Type (.*) to confirm$", r"\1", str(label))


async def wrong_words_do_nothing(dialogs: Dialogs, title: str) -> None:
    word = await typed_word(dialogs)
    wrong = ["", word.swapcase(), word[:-1], f" {word}", f"{word} ", f"{word}{word[-1]}"] if word else []
    for one in wrong:
        if one == word:
            continue  # a number has no other case
        await dialogs.tab.fill(f"Type {word} to confirm", one)
        act = f"named.get({json.dumps(title)})"
        assert await dialogs.in_dialog(f"{act}.disabled"), f"{title} with {one!r}"
        await dialogs.in_dialog("dialog.querySelector('#field-typed').focus()")
        await dialogs.tab.press("Enter")
        await dialogs.in_dialog(f"{act}.disabled = false, {act}.form.noValidate = true, {act}.click()")
        assert (await dialogs.title(), await dialogs.sent()) == (title, 0), f"{title} with {one!r}"
        await dialogs.in_dialog(f"{act}.disabled = true, {act}.form.noValidate = false")


async def fill_in(dialogs: Dialogs) -> None:
    """Type the word that is asked for, and something into each field that is empty."""
    word = await typed_word(dialogs)
    if word:
        await dialogs.tab.fill(f"Type {word} to confirm", word)
    await dialogs.in_dialog("""[...dialog.querySelectorAll('input[type=text]')].forEach((one) => {
        one.value ||= 'made.up';
        one.dispatchEvent(new Event('input', {bubbles: true}));
    })""")


def operation(sent: Sent) -> str:
    """An operation by its method and path, with `{}` for whatever isn't a word of the API."""
    path = re.sub(r"^https?://[^/]+/ojs/v1|\?.*$", "", sent.url)
    for written in sorted(operations()):
        method, _, template = written.partition(" ")
        pattern = re.escape(template).replace(r"\{\}", "[^/]+")
        if method == sent.method and re.fullmatch(pattern, path):
            return written
    raise AssertionError(sent)


def operations() -> set[str]:
    """The operations that the sources name and that change something, with `{}` for each name in their paths."""
    found: set[str] = set()
    for source in FOLDER.rglob("*.js"):
        for written in re.findall(r"[`'](?:POST|PUT|PATCH|DELETE) /[^`']*[`']", source.read_text(encoding="utf-8")):
            found.add(re.sub(r"\$?\{[^}]*\}", "{}", written[1:-1]))
    return {one for one in found if not SAFE.search(one)}


async def test_every_operation_of_the_sources_is_one_of_a_button_that_is_pressed() -> None:
    assert operations() == set.union(ELSEWHERE, *PAGES.values())
