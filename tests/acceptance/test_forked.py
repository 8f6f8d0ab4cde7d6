"""Processes of the tests that are forked: they are as those that are started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.examples import amount
from support.forked import OJS_NATS, Forked, completed, start
from support.processes import family, runs
from support.system import Command, environment
from support.waiting import until

STARTED = {"PYTHONHASHSEED": "7"}
"""Only a start of Python reads it."""


@pytest.mark.parametrize(
    "words",
    [
        "config --json",
        *(["list --server http://127.0.0.1:1", "explode"] if amount() == "all" else []),
    ],
)
def test_a_forked_command_says_what_one_says_that_is_started(words: str, tmp_path: Path) -> None:
    (tmp_path / "ojs-nats.toml").write_text('log_level = "debug"\n', encoding="utf-8")
    env = environment(OJS_PORT="9123", OJS_INSTANCE="one", HOME=str(tmp_path), XDG_CONFIG_HOME=str(tmp_path))
    forked, started = (completed([*OJS_NATS, *words.split()], variables, folder=tmp_path) for variables in (env, env | STARTED))
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)


def test_what_only_a_start_reads_is_started(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").touch()
    wanted = {Forked: [environment()], subprocess.Popen: [environment(**STARTED), environment(PYTHONPATH=str(tmp_path))]}
    with Path(os.devnull).open("r+b") as null:
        for kind, variables in wanted.items():
            for env in variables:
                process = start([*OJS_NATS, "--version"], env, (null.fileno(), null.fileno(), null.fileno()))
                process.kill()  # that it would have run, the test above shows
                process.wait()
                assert isinstance(process, kind)


def test_a_forked_process_is_killed_and_stopped_by_signals(tmp_path: Path) -> None:
    waiting = ("scheduler", "--nats", "nats://127.0.0.1:1", "--log-format", "json", "--connect-timeout", "600")
    for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGTERM, 0)):
        command = Command(tmp_path, *waiting, label=number.name)
        assert isinstance(command.process, Forked)
        until(lambda command=command: command.events("waiting for NATS"))  # type: ignore[misc]
        assert command.process.poll() is None
        assert command.stop(number) == code
        assert command.process.poll() == code


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL] if amount() == "all" else [signal.SIGKILL])
def test_no_process_of_a_run_of_the_tests_outlives_it(number: signal.Signals) -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-m", "pytest", "-n2", "-p", "no:cacheprovider", "tests/unit/domain/transitions"]
    run = subprocess.Popen(command, cwd=root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0)
    try:
        # The two servers; for each process of tests its Python, the server's fork for it, and itself.
        until(lambda: len(family(run.pid)) >= 1 + 2 + 2 * 3, 180)
        running = family(run.pid)
        if number == signal.SIGINT:
            os.killpg(run.pid, number)  # as Ctrl-C
        else:
            run.kill()
        run.wait(60)
        until(lambda: not any(runs(pid) for pid in running))
    finally:
        run.kill()
        run.wait()
