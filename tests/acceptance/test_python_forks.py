"""Programs that fork while they push without a loop: children take nothing from their parent, and hang at nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.system import System

PROGRAM = """\
import multiprocessing, os, signal, sys, threading
from ojs_nats import App, _portal

app = App(sys.argv[1], retry_for="10s")
signal.alarm(60)  # whatever hangs ends


@app.job("f.push", queue="f")
def one(who: str) -> None: ...


def nothing() -> None:
    sys.exit(0)


def push() -> None:
    one.push_sync("child")
    sys.exit(0)


def forked(run) -> int:
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        run()
    return child


def spawned(run) -> int:
    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    process.join()
    assert process.exitcode == 0, process.exitcode


def among_threads(run) -> int:
    over = threading.Event()

    def busy() -> None:
        while not over.is_set():
            _portal.loop()

    threads = [threading.Thread(target=busy) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        return forked(run)
    finally:
        over.set()
        for thread in threads:
            thread.join()


one.push_sync("parent")
for _ in range(3):
    child = globals()[sys.argv[2]](globals()[sys.argv[3]])
    if child:
        assert os.waitpid(child, 0)[1] == 0
    one.push_sync("parent")
"""


@pytest.mark.parametrize("way", ["HTTP", "NATS"])
@pytest.mark.parametrize("run", ["nothing", "push"])
@pytest.mark.parametrize("fork", ["forked", "spawned", "among_threads"])
def test_a_forked_child_takes_nothing_from_its_parent(system: System, way: str, fork: str, run: str) -> None:
    url = system.url if way == "HTTP" else system.nats_url
    command = [sys.executable, "-W", "error", "-c", PROGRAM, url, fork, run]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=90, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    pushed = [job["args"][0] for job in system.fetch("f", count=20)]
    assert sorted(pushed) == ["child"] * (3 if run == "push" else 0) + ["parent"] * 4
