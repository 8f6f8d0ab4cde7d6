"""`ojs_runtime.service.run` with services that misbehave, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pytest

from support.forked import Forked
from support.nats import NatsServer
from support.processes import Process, end
from support.system import environment

PROGRAM = """\
import asyncio, sys
from ojs_engine.store.store import StoreFeatures
from ojs_runtime.service import run, run_loop
from ojs_runtime.settings import Settings
from ojs_runtime.stopping import StopTimings

class Service:
    async def start(self):
        {start}
    async def stop(self):
        print('{{"event": "asked to stop"}}', flush=True)
        {stop}

def build(store, settings):
    {build}
    return Service()

supervisor = int(sys.argv[2]) if len(sys.argv) > 2 else None
settings = Settings(nats=sys.argv[1], log_format="json", storage_limit=1 << 32)
sys.exit(run_loop(run("misfit", settings, build, StoreFeatures(), supervisor=supervisor, timings=StopTimings({times}))))
"""


class Started(NamedTuple):
    """A process, and what it prints."""

    process: Process
    output: BinaryIO

    def events(self) -> list[dict[str, Any]]:
        """Return what it printed since, once all who might print have ended."""
        with self.output:
            return [json.loads(line) for line in self.output.read().splitlines()]

    def event(self) -> dict[str, Any]:
        """Wait for the next line."""
        event: dict[str, Any] = json.loads(self.output.readline())
        return event


def start(
    nats: NatsServer,
    *,
    start: str = "pass",
    stop: str = "pass",
    build: str = "pass",
    times: str = "",
    descriptors: Sequence[int] = (),
) -> Started:
    """Fork it, or start it where it takes descriptors."""
    program = textwrap.dedent(PROGRAM.format(start=start, stop=stop, build=build, times=times))
    arguments = [nats.url, *map(str, descriptors)]
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as out, Path(os.devnull).open("rb") as nothing:
        process: Process
        if descriptors:
            command = [sys.executable, "-c", program, *arguments]
            process = subprocess.Popen(command, stdout=out, env=environment(), pass_fds=descriptors)
        else:
            files = (nothing.fileno(), out.fileno(), 2)
            process = Forked(arguments, environment(), files, Path.cwd(), code=program)
    return Started(process, os.fdopen(reading, "rb"))


def names(lines: list[dict[str, Any]]) -> list[str]:
    return [line["event"] for line in lines]


@pytest.mark.parametrize(("part", "asked"), [("build", []), ("start", ["asked to stop"])])
def test_a_crash_has_exit_code_70_and_its_traceback_in_the_log(
    shared_nats_server: NatsServer, part: str, asked: list[str]
) -> None:
    crash = "raise RuntimeError('bad luck')"
    misfit = start(shared_nats_server, build=crash if part == "build" else "pass", start=crash if part == "start" else "pass")
    assert misfit.process.wait(60) == 70
    lines = misfit.events()
    assert names(lines) == [*asked, "crashed"]
    assert "RuntimeError: bad luck" in lines[-1]["exception"]


SOON = "alone_s=2.0, services_s=1.2, gateways_s=1.1, supervised_s=1.0"


def test_a_stop_that_takes_too_long_is_cut_off(shared_nats_server: NatsServer) -> None:
    misfit = start(shared_nats_server, stop="await asyncio.Event().wait()", times=SOON)
    assert misfit.event()["event"] == "ready"
    began = time.monotonic()
    assert end(misfit.process) == 70
    assert time.monotonic() - began > 0.5
    assert names(misfit.events())[:2] == [
        "asked to stop",
        "work was cut off: it didn't end in time; its jobs come back when their leases expire",
    ]


_SWALLOWS = """
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass"""


@pytest.mark.parametrize(
    "held", [f"{_SWALLOWS}", "asyncio.get_running_loop().run_in_executor(None, __import__('time').sleep, 300)"]
)
def test_what_can_t_be_stopped_keeps_no_process(shared_nats_server: NatsServer, held: str) -> None:
    misfit = start(shared_nats_server, stop=held, times=f"{SOON}, by_force_s=0.2")
    assert misfit.event()["event"] == "ready"
    misfit.process.send_signal(signal.SIGTERM)
    assert misfit.process.wait(60) == 70
    assert "ended by force: something in this process didn't stop in time" in names(misfit.events())


def test_a_start_that_takes_for_ever_is_stopped(shared_nats_server: NatsServer) -> None:
    misfit = start(shared_nats_server, start='print(\'{"event": "ready"}\', flush=True); await asyncio.Event().wait()')
    assert misfit.event()["event"] == "ready"
    assert end(misfit.process, signal.SIGINT) == 0
    assert names(misfit.events()) == ["asked to stop", "stopped"]


def test_an_error_nobody_waits_for_is_logged(shared_nats_server: NatsServer) -> None:
    stray = "asyncio.get_running_loop().call_soon(lambda: 1 / 0); await asyncio.sleep(0)"
    misfit = start(shared_nats_server, start=stray)
    line = misfit.event()
    assert line["event"] == "unexpected error in the background"
    assert "ZeroDivisionError" in line["exception"]
    assert misfit.event()["event"] == "ready"
    assert end(misfit.process) == 0
    misfit.output.close()


def test_a_supervised_service_reports_once_and_stops_with_its_supervisor(shared_nats_server: NatsServer) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            misfit = start(shared_nats_server, descriptors=[theirs.fileno()])
        ours.settimeout(180)
        line = json.loads(ours.makefile().readline())
        assert (line["name"], line["pid"]) == ("misfit", misfit.process.pid)
        assert line["url"].startswith("http://127.0.0.1:")
    assert misfit.process.wait(60) == 0
    assert names(misfit.events()) == ["ready", "asked to stop", "stopped"]
