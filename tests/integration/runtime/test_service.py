"""`ojs_core.runtime.service.run` with services that misbehave, each in a process of its own."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from typing import Any

import pytest

from support.nats import NatsServer
from support.processes import end
from support.system import environment

PROGRAM = """\
import asyncio, sys
from ojs_core.runtime.service import run, run_loop
from ojs_core.runtime.settings import Settings

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
sys.exit(run_loop(run("misfit", Settings(nats=sys.argv[1], log_format="json"), build, supervisor=supervisor)))
"""


def start(
    nats: NatsServer, *, start: str = "pass", stop: str = "pass", build: str = "pass", descriptors: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    program = textwrap.dedent(PROGRAM.format(start=start, stop=stop, build=build))
    arguments = [sys.executable, "-c", program, nats.url, *map(str, descriptors)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, env=environment(), pass_fds=descriptors)


def events(process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    assert process.stdout is not None
    with process.stdout as output:
        return [json.loads(line) for line in output.read().splitlines()]


def until_ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["event"] == "ready"


def names(lines: list[dict[str, Any]]) -> list[str]:
    return [line["event"] for line in lines]


@pytest.mark.parametrize(("part", "asked"), [("build", []), ("start", ["asked to stop"])])
def test_a_crash_has_exit_code_70_and_its_traceback_in_the_log(
    shared_nats_server: NatsServer, part: str, asked: list[str]
) -> None:
    crash = "raise RuntimeError('bad luck')"
    process = start(shared_nats_server, build=crash if part == "build" else "pass", start=crash if part == "start" else "pass")
    assert process.wait(60) == 70
    lines = events(process)
    assert names(lines) == [*asked, "crashed"]
    assert "RuntimeError: bad luck" in lines[-1]["exception"]


def test_a_stop_that_takes_too_long_is_cut_off(shared_nats_server: NatsServer) -> None:
    process = start(shared_nats_server, stop="await asyncio.Event().wait()")
    until_ready(process)
    began = time.monotonic()
    assert end(process) == 70
    assert time.monotonic() - began > 3
    assert names(events(process))[:2] == [
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
@pytest.mark.slow
def test_what_can_t_be_stopped_keeps_no_process(shared_nats_server: NatsServer, held: str) -> None:
    process = start(shared_nats_server, stop=held)
    until_ready(process)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 70
    assert "ended by force: something in this process didn't stop in time" in names(events(process))


def test_a_start_that_takes_for_ever_is_stopped(shared_nats_server: NatsServer) -> None:
    process = start(shared_nats_server, start='print(\'{"event": "ready"}\', flush=True); await asyncio.Event().wait()')
    until_ready(process)
    assert end(process, signal.SIGINT) == 0
    assert names(events(process)) == ["asked to stop", "stopped"]


def test_an_error_nobody_waits_for_is_logged(shared_nats_server: NatsServer) -> None:
    stray = "asyncio.get_running_loop().call_soon(lambda: 1 / 0); await asyncio.sleep(0)"
    process = start(shared_nats_server, start=stray)
    assert process.stdout is not None
    line = json.loads(process.stdout.readline())
    assert line["event"] == "unexpected error in the background"
    assert "ZeroDivisionError" in line["exception"]
    until_ready(process)
    assert end(process) == 0
    process.stdout.close()


def test_a_supervised_service_reports_once_and_stops_with_its_supervisor(shared_nats_server: NatsServer) -> None:
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            process = start(shared_nats_server, descriptors=[theirs.fileno()])
        ours.settimeout(20)
        line = json.loads(ours.makefile().readline())
        assert (line["name"], line["pid"]) == ("misfit", process.pid)
        assert line["url"].startswith("http://127.0.0.1:")
    assert process.wait(5) == 0
    assert names(events(process)) == ["ready", "asked to stop", "stopped"]
