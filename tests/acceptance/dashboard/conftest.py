"""A system with something of everything in it, and a browser that looks at it."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest
import pytest_asyncio

from acceptance.dashboard.scenery import Scenery
from support.browser import Browser, browser_program
from support.dashboard import need_libraries
from support.proxy import Trouble
from support.python_worker import WorkerProcess, installed
from support.screen import Screen
from support.system import TOGETHER, System

OpenScreen = Callable[..., Awaitable[Screen]]
NO_SCHEMA = ("status of 404",)
"""What a browser says when a form asks whether a job type has a schema, and it has none."""
BEHIND = "status of 503"
REFUSED = ("status of 4", "status of 5", "ERR_")
"""What a browser says of answers and connections that go wrong."""
LOCAL_WEBHOOKS = ("--webhook-insecure", "--webhook-private")


class Crew(NamedTuple):
    """The real workers of the site."""

    folder: Path
    start: Callable[..., WorkerProcess]


def not_run() -> NoReturn:
    """Say that nothing was tested; where everything has to be, that is a failure."""
    reason = "there is no Chromium on this machine, so the dashboard was NOT tested (apt-get install chromium)"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


def busy(retry_after: str, silence_s: float = 0.0) -> Trouble:
    """What a server says that can't do it now."""
    text = json.dumps({"error": {"code": "unavailable", "message": "busy just now"}})
    return Trouble(status=503, headers={"Retry-After": retry_after}, text=text, silence_s=silence_s)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system for the tests of a module."""
    with System.started(tmp_path_factory.mktemp("site"), TOGETHER, *LOCAL_WEBHOOKS) as system:
        yield system


@pytest.fixture(scope="module")
def scenery(site: System) -> Scenery:
    """Jobs in every state, queues, workers, workflows, crons, limits, a webhook, and hostile text wherever the API takes it."""
    return Scenery.made(site)


@pytest.fixture(scope="module")
def crew(site: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crew]:
    """One worker runs; `start` starts more."""
    folder = tmp_path_factory.mktemp("crew")
    installed("handlers", folder)
    begun: list[WorkerProcess] = []

    def start(*arguments: str) -> WorkerProcess:
        label = f"worker-{len(begun)}"
        begun.append(WorkerProcess.started(folder, "handlers", *arguments, url=site.url, label=label))
        return begun[-1]

    start()
    yield Crew(folder, start)
    for worker in begun:
        worker.end()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """A browser for the tests of a module."""
    need_libraries()
    program = browser_program()
    if program is None:
        not_run()
    async with Browser.started(program, tmp_path_factory.mktemp("browser"), {}) as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def kept(browser: Browser, site: System) -> Screen:
    """The tab that stays: a new one takes as long as three pages that are followed to."""
    return await Screen.opened(browser, site.url)


@pytest_asyncio.fixture(loop_scope="module")
async def screen(browser: Browser, site: System, kept: Screen) -> AsyncIterator[OpenScreen]:
    """`await screen()`: the tab of the module, as if it were new. Its document may have been loaded by an earlier test.

    Who asks for several, for another `url` or for an `own` one gets a new tab, which is closed at the end, since a browser has
    six connections to a host. What the browser complains of in a tab fails the test, but for what has one of the texts of
    `known`, and a projector that is behind, as it may be on a busy machine.
    """
    tabs: list[tuple[Screen, tuple[str, ...]]] = []

    async def opened(url: str = "", *, known: tuple[str, ...] = (), own: bool = False) -> Screen:
        if own or tabs or url not in {"", site.url}:
            tab = await Screen.opened(browser, url or site.url)
        else:
            tab = kept
            await tab.anew()
        tabs.append((tab, known))
        return tab

    yield opened
    for tab, _ in tabs:
        await (tab.rest() if tab is kept else tab.close())
    assert [trouble for tab, known in tabs for trouble in tab.troubles(*known, BEHIND)] == []
