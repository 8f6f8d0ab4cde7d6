"""A real browser: Chromium without a window, driven over its DevTools protocol."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp

from support.processes import end
from support.waiting import eventually

_PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_IDLE: Final = (
    "--no-first-run",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-extensions",
    "--disable-sync",
    "--metrics-recording-only",
    "--mute-audio",
    "--password-store=basic",
    "--in-process-gpu",
    "--enable-features=NetworkServiceInProcess2",
    "--num-raster-threads=1",
    "--disable-features=MediaRouter,OptimizationHints,PreloadTopChromeWebUI,SpareRendererForSitePerProcess,Translate",
    "--renderer-process-limit=1",  # for each site: a process of its own compiles for each tab what another has compiled
)
"""What keeps Chromium from what isn't about the pages of tests: other processes, its own pages, requests to its makers."""
_START_SECONDS: Final = 60.0
_ANSWER_SECONDS: Final = 60.0


def browser_program() -> str | None:
    """The Chromium of this machine, or None; `OJS_CHROMIUM` names another."""
    named = os.environ.get("OJS_CHROMIUM")
    return named or next((path for path in map(shutil.which, _PROGRAMS) if path), None)


class Sent(NamedTuple):
    """A request as a tab sends it."""

    method: str
    url: str
    body: str


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str, noted: list[str], requests: list[str]) -> None:
        self._browser = browser
        self._session = session
        self.noted = noted
        """What the browser complains of in this tab, once `note` was called: errors, refused requests, violated policies."""
        self.requests = requests
        """The addresses of what this tab has asked for since `note_requests` was called."""

    async def note(self) -> None:
        """Have the browser tell of what goes wrong in this tab."""
        for domain in ("Runtime", "Log"):
            await self.command(f"{domain}.enable", {})

    async def note_requests(self) -> None:
        """Have the browser tell of each request of this tab when it is sent."""
        await self.command("Network.enable", {})

    async def hold(self, which: Callable[[Sent], bool], text: str) -> list[Sent]:
        """Have the requests that `which` chooses answered with 409 and a text; the list has them, and no server."""
        held: list[Sent] = []

        async def decide(about: Any) -> None:
            sent = Sent(about["request"]["method"], about["request"]["url"], about["request"].get("postData", ""))
            chosen = which(sent)
            if chosen:
                held.append(sent)
            answer = {"responseCode": 409, "body": base64.b64encode(text.encode()).decode()} if chosen else {}
            command = "Fetch.fulfillRequest" if chosen else "Fetch.continueRequest"
            await self.command(command, {"requestId": about["requestId"], **answer})

        self._browser.deciders[self._session] = decide
        await self.command("Fetch.enable", {})
        return held

    async def pass_all(self) -> None:
        """Have all requests reach their server again."""
        await self.command("Fetch.disable", {})

    async def go(self, url: str) -> None:
        """Load a page; returns when its document is there."""
        await self._browser.command("Page.navigate", {"url": url}, self._session)

        async def loaded() -> bool:
            return bool(await self.run(f"document.readyState === 'complete' && location.href.startsWith({json.dumps(url)})"))

        await eventually(loaded, _ANSWER_SECONDS)

    async def command(self, method: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """One command of the protocol about this tab, and its result."""
        return await self._browser.command(method, parameters, self._session)

    async def picture(self, quality: int) -> bytes:
        """What is seen, as a WebP file of this quality (per cent)."""
        taken = await self.command("Page.captureScreenshot", {"format": "webp", "quality": quality})
        return base64.b64decode(taken["data"])

    async def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for. Raises AssertionError for what the page throws."""
        asked = {"expression": script, "awaitPromise": True, "returnByValue": True}
        answer = await self._browser.command("Runtime.evaluate", asked, self._session)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")


class Browser:
    """Chromium with a profile of its own."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._noted: defaultdict[str, list[str]] = defaultdict(list)
        self._requests: defaultdict[str, list[str]] = defaultdict(list)
        """Both by session."""
        self.deciders: dict[str, Callable[[Any], Coroutine[Any, Any, None]]] = {}
        """By session, what becomes of requests that are held."""
        self._deciding: set[asyncio.Task[None]] = set()

    @classmethod
    @asynccontextmanager
    async def started(cls, program: str, folder: Path, names: Mapping[str, str]) -> AsyncIterator[Browser]:
        """A browser for which each of `names` is the host of that address."""
        process = _launched(program, folder, names)
        try:
            announced = folder / "profile" / "DevToolsActivePort"

            def listening() -> list[str] | None:
                assert process.poll() is None, (folder / "browser.log").read_text(errors="replace")
                lines = announced.read_text().splitlines() if announced.exists() else []
                return lines if len(lines) == 2 else None

            lines = await eventually(listening, _START_SECONDS)
            assert lines is not None
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(f"ws://127.0.0.1:{lines[0]}{lines[1]}", max_msg_size=0) as socket,
            ):
                browser = cls(socket)
                reading = asyncio.create_task(browser._read())
                try:
                    yield browser
                finally:
                    reading.cancel()
        finally:
            end(process)

    async def page(self) -> Page:
        """A new, empty tab."""
        target = await self.command("Target.createTarget", {"url": "about:blank"})
        attached = await self.command("Target.attachToTarget", {"targetId": target["targetId"], "flatten": True})
        session = attached["sessionId"]
        return Page(self, session, self._noted[session], self._requests[session])

    async def command(self, method: str, parameters: Mapping[str, Any], session: str | None = None) -> dict[str, Any]:
        """One command of the protocol and its result. Raises AssertionError if it is refused."""
        number = next(self._ids)
        waiting = self._answers[number] = asyncio.get_running_loop().create_future()
        asked = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json(asked if session is None else asked | {"sessionId": session})
        answer = await asyncio.wait_for(waiting, _ANSWER_SECONDS)
        assert "error" not in answer, (method, answer)
        result: dict[str, Any] = answer["result"]
        return result

    async def _read(self) -> None:
        async for message in self._socket:
            answer = message.json()
            waiting = self._answers.pop(answer.get("id", 0), None)
            session, event = answer.get("sessionId", ""), answer.get("method")
            if waiting is not None:
                waiting.set_result(answer)
            elif event == "Network.requestWillBeSent":
                self._requests[session].append(answer["params"]["request"]["url"])
            elif event == "Fetch.requestPaused":
                task = asyncio.create_task(self.deciders[session](answer["params"]))
                self._deciding.add(task)
                task.add_done_callback(self._deciding.discard)
            elif complaint := _complaint(event, answer.get("params", {})):
                self._noted[session].append(complaint)


def _complaint(event: str | None, about: Any) -> str:
    """Return what an event of the browser complains of, if anything."""
    match event:
        case "Runtime.exceptionThrown":
            thrown = about["exceptionDetails"]
            return str(thrown.get("exception", {}).get("description") or thrown["text"])
        case "Runtime.consoleAPICalled" if about["type"] in {"error", "assert"}:
            return " ".join(str(said.get("description") or said.get("value")) for said in about["args"])
        case "Log.entryAdded" if about["entry"]["level"] == "error":
            entry = about["entry"]
            return f"{entry['source']}: {entry['text']} {entry.get('url', '')}"
    return ""


def _launched(program: str, folder: Path, names: Mapping[str, str]) -> subprocess.Popen[bytes]:
    rules = ", ".join(f"MAP {name} {address}" for name, address in names.items())
    # As root, and in most containers, Chromium can't make its sandbox; it only sees the pages of tests here.
    seen = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-port=0")
    with (folder / "browser.log").open("wb") as output:
        return subprocess.Popen(
            [program, *seen, *_IDLE, f"--user-data-dir={folder / 'profile'}", f"--host-resolver-rules={rules}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
