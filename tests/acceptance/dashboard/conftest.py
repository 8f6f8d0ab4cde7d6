"""A system with something of everything in it, and a browser that looks at it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
import pytest_asyncio

from acceptance.dashboard.scenery import Scenery
from support.browser import Browser, browser_program
from support.screen import Screen
from support.system import System

OpenScreen = Callable[..., Awaitable[Screen]]


def not_run() -> NoReturn:
    """Say that nothing was tested; where everything has to be, that is a failure."""
    reason = "there is no Chromium on this machine, so the dashboard was NOT tested (apt-get install chromium)"
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A system for the tests of a module."""
    with System.started(tmp_path_factory.mktemp("site"), "--together") as system:
        yield system


@pytest.fixture(scope="module")
def scenery(site: System) -> Scenery:
    """Jobs in every state, queues, workers, workflows, crons, limits, and a webhook."""
    return Scenery.made(site)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    program = browser_program()
    if program is None:
        not_run()
    async with Browser.started(program, tmp_path_factory.mktemp("browser"), {}) as started:
        yield started


@pytest_asyncio.fixture(loop_scope="module")
async def screen(browser: Browser, site: System) -> AsyncIterator[OpenScreen]:
    """`await screen(dark=…, width=…)`: a tab with the dashboard, closed at the end: a browser has six connections to a host."""
    tabs: list[Screen] = []

    async def opened(url: str = "", *, dark: bool = False, width: int = 1280) -> Screen:
        tabs.append(await Screen.opened(browser, url or site.url, dark=dark, width=width))
        return tabs[-1]

    yield opened
    for tab in tabs:
        await tab.close()


@pytest.fixture
def shots() -> Path | None:
    """Where pictures for the documents go; None if none are asked for (`OJS_PICTURES=FOLDER`)."""
    named = os.environ.get("OJS_PICTURES")
    return Path(named) if named else None
