"""What a web page can do to a server on the machine of whoever looks at it: nothing, in a real browser (docs/adr/031)."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from support.browser import Browser, Page, browser_program
from support.system import TOGETHER, System

pytestmark = pytest.mark.slow

LOOPBACK = "127.0.0.1"
NAMES = {"evil.example": LOOPBACK, "friend.example": LOOPBACK, "rebound.example": LOOPBACK}


class Scene(NamedTuple):
    """A running system, and a web site that it knows nothing of under the names of NAMES."""

    system: System
    browser: Browser
    site_port: int

    async def visit(self, name: str) -> Page:
        """A page of the site, with `B` for the address of the gateway."""
        page = await self.browser.page()
        await page.go(f"http://{name}:{self.site_port}/")
        await page.run(f"globalThis.B = {json.dumps(self.system.url)}, true")
        return page

    def stored(self) -> dict[str, Any]:
        """What a page could have changed."""
        jobs = self.system.request("GET", "/ojs/v1/jobs").body["jobs"]
        queue = self.system.request("GET", "/ojs/v1/queues/victim").body
        maintenance = self.system.request("GET", "/ojs/v1/admin/system/maintenance").body
        return {"jobs": [job["type"] for job in jobs], "paused": queue["paused"], "maintenance": maintenance["maintenance"]}


def not_run() -> NoReturn:
    """Say that nothing was tested; where everything has to be, that is a failure."""
    reason = "there is no Chromium on this machine, so it was NOT tested what web pages can do (apt-get install chromium)"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
async def site() -> AsyncIterator[int]:
    async def page(_request: web.Request) -> web.Response:
        return web.Response(text="<!doctype html><title>a page</title>", content_type="text/html")

    app = web.Application()
    app.router.add_get("/", page)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, LOOPBACK, 0).start()
    yield runner.addresses[0][1]
    await runner.cleanup()


@pytest.fixture(scope="module")
def friendly(tmp_path_factory: pytest.TempPathFactory, site: int) -> Iterator[System]:
    """A system that one of the site's names may use."""
    origins = ("--allowed-origins", f"http://friend.example:{site}")
    with System.started(tmp_path_factory.mktemp("friendly"), TOGETHER, *origins) as system:
        yield system


@pytest.fixture(scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    program = browser_program()
    if program is None:
        not_run()
    async with Browser.started(program, tmp_path_factory.mktemp("browser"), NAMES) as started:
        yield started


@pytest.fixture
def scene(browser: Browser, friendly: System, site: int) -> Scene:
    friendly.reset()
    friendly.request("POST", "/ojs/v1/jobs", {"type": "secret.job", "args": ["s3cret"], "options": {"queue": "victim"}})
    return Scene(friendly, browser, site)


SEND = "fetch(B + %s, {method: 'POST', mode: 'no-cors', %s}).then(a => a.type, e => 'refused: ' + e)"
JOB = '\'{"type":"csrf.job","args":[]}\''
FORM = """new Promise(done => {
  const frame = document.body.appendChild(Object.assign(document.createElement('iframe'), {name: 'f' + Math.random()}))
  const form = document.body.appendChild(document.createElement('form'))
  Object.assign(form, {method: 'post', action: B + %s, enctype: %s, target: frame.name})
  const field = form.appendChild(document.createElement('input'))
  Object.assign(field, {name: %s, value: %s})
  if (!field.name) field.remove()
  frame.onload = () => done('sent')
  form.submit()
})"""
CHANGES = {
    "push, a Blob without a type": SEND % ("'/ojs/v1/jobs'", f"body: new Blob([{JOB}])"),
    "push, as text": SEND % ("'/ojs/v1/jobs'", f"body: {JOB}"),
    "push, as a beacon": f"navigator.sendBeacon(B + '/ojs/v1/jobs', new Blob([{JOB}]))",
    "push, as a form of text": FORM % ("'/ojs/v1/jobs'", "'text/plain'", """'{"type":"csrf.job","args":["'""", """'"]}'"""),
    "push, as JSON": (
        f"fetch(B + '/ojs/v1/jobs', {{method: 'POST', headers: {{'Content-Type': 'application/json'}}, body: {JOB}}})"
        ".then(a => a.type, e => 'refused: ' + e)"
    ),
    "pause, as an empty form": FORM % ("'/ojs/v1/queues/victim/pause'", "'application/x-www-form-urlencoded'", "''", "''"),
    "pause, as a form": FORM % ("'/ojs/v1/queues/victim/pause'", "'application/x-www-form-urlencoded'", "'a'", "'1'"),
    "pause, as a form with parts": FORM % ("'/ojs/v1/queues/victim/pause'", "'multipart/form-data'", "'a'", "'1'"),
    "pause, without a body": SEND % ("'/ojs/v1/queues/victim/pause'", ""),
    "purge, as an empty form": FORM % ("'/ojs/v1/queues/victim/purge'", "'application/x-www-form-urlencoded'", "''", "''"),
    "purge, without a body": SEND % ("'/ojs/v1/queues/victim/purge'", ""),
    "maintenance, a Blob without a type": SEND
    % ("'/ojs/v1/admin/system/maintenance'", """body: new Blob(['{"enabled":true,"reason":"csrf"}'])"""),
    "a wipe, without a body": SEND % ("'/ojs/v1/admin/reset'", ""),
    "a deletion": "fetch(B + '/ojs/v1/queues/victim', {method: 'DELETE'}).then(a => a.type, e => 'refused: ' + e)",
}
READS = {
    "jobs": "fetch(B + '/ojs/v1/jobs').then(a => a.text(), e => 'refused')",
    "health": "fetch(B + '/healthz').then(a => a.text(), e => 'refused')",
    "a WebSocket": """new Promise(done => {
        const socket = new WebSocket(B.replace('http', 'ws') + '/ojs/v1/ws')
        socket.onopen = () => done('opened')
        socket.onerror = () => done('refused')
    })""",
    "an event stream": """new Promise(done => {
        const source = new EventSource(B + '/ojs/v1/events/stream?last_event_id=0')
        source.onopen = () => done('opened')
        source.onerror = () => { source.close(); done('refused') }
    })""",
    "a script": """new Promise(done => {
        const script = document.createElement('script')
        script.onload = () => done('loaded')
        script.onerror = () => done('refused')
        script.src = B + '/ojs/v1/jobs'
        document.head.append(script)
    })""",
}


async def test_a_page_from_elsewhere_changes_and_reads_nothing(scene: Scene) -> None:
    untouched = scene.stored()
    assert untouched == {"jobs": ["secret.job"], "paused": False, "maintenance": False}
    page = await scene.visit("evil.example")
    for what, script in CHANGES.items():
        await page.run(script)
        assert scene.stored() == untouched, what
    assert {what: await page.run(script) for what, script in READS.items()} == dict.fromkeys(READS, "refused")


async def test_a_page_whose_name_turns_out_to_be_this_machine_is_refused(scene: Scene) -> None:
    untouched = scene.stored()
    page = await scene.browser.page()
    rebound = f"http://rebound.example:{urlsplit(scene.system.url).port}"
    await page.go(f"{rebound}/ojs/v1/jobs")
    assert "s3cret" not in await page.run("document.documentElement.textContent")
    await page.run("globalThis.B = location.origin, true")
    assert await page.run("fetch('/ojs/v1/jobs').then(a => a.status)") == 403
    for what, script in CHANGES.items():
        await page.run(script)
        assert scene.stored() == untouched, what
    assert await page.run(READS["a WebSocket"]) == "refused"
    assert await page.run(READS["an event stream"]) == "refused"


async def test_a_page_of_an_allowed_origin_uses_everything(scene: Scene) -> None:
    page = await scene.visit("friend.example")
    pushed = await page.run(
        "fetch(B + '/ojs/v1/jobs', {method: 'POST', headers: {'Content-Type': 'application/json', 'X-Request-Id': 'mine'},"
        ' body: \'{"type":"good.job","args":[1]}\'})'
        ".then(async a => [a.status, a.headers.get('X-Request-Id'), await a.json()])"
    )
    assert pushed[:2] == [201, "mine"]
    job_id = pushed[2]["job"]["id"]
    assert await page.run(f"fetch(B + '/ojs/v1/jobs/{job_id}').then(a => a.json()).then(a => a.job.args)") == [1]
    assert await page.run("fetch(B + '/ojs/v1/jobs/none').then(a => a.json()).then(a => a.error.code)") == "not_found"
    assert await page.run(f"fetch(B + '/ojs/v1/jobs/{job_id}', {{method: 'DELETE'}}).then(a => a.status)") == 200
    assert await page.run(READS["a WebSocket"]) == "opened"
    assert await page.run(READS["an event stream"]) == "opened"


async def test_the_servers_own_address_and_links_to_it_can_be_looked_at(scene: Scene) -> None:
    page = await scene.visit("evil.example")
    await page.run(f"(document.body.innerHTML = '<a href=\"{scene.system.url}/ojs/v1/health\">x</a>', true)")
    await page.run("document.querySelector('a').click()")
    await page.go(f"{scene.system.url}/ojs/v1/health")
    assert await page.run("JSON.parse(document.body.textContent).status") == "ok"
    assert await page.run("fetch('/ojs/v1/jobs').then(a => a.status)") == 200
    assert await page.run("fetch('/ojs/v1/queues/victim/pause', {method: 'POST'}).then(a => a.status)") == 200
