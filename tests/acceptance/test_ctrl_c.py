"""Ctrl-C while a command starts. Once it runs, tests/acceptance/test_cli.py and test_dev.py send it."""

from __future__ import annotations

import fcntl
import mmap
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.python_worker import installed
from support.system import environment

STARTED = "ojs_nats._command.entry"
"""The module that handles Ctrl-C from its first moment. Before it, Python itself starts."""
PAGE = mmap.PAGESIZE
"""Room for about sixty lines: a command gets no further than that from what the test has read, however slow that is."""


def interrupted(words: list[str], folder: Path, imports: int) -> tuple[int, str]:
    """Start a command, and interrupt it behind so many imports; returns its exit code, and what it printed."""
    command = ["env", "--default-signal=INT", sys.executable, "-X", "importtime", "-m", "ojs_command", *words]
    env = environment(PYTHONPATH=str(folder), OJS_URL="http://127.0.0.1:9")
    with subprocess.Popen(
        command, cwd=folder, env=env, bufsize=0, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, PAGE)
        printed, seen = "", -1
        for line in map(bytes.decode, process.stdout):
            if not line.startswith("import time:"):
                printed += line
            elif seen >= 0 or line.rstrip().endswith(f" {STARTED}"):
                seen += 1
                if seen == imports:
                    process.send_signal(signal.SIGINT)
        assert seen >= imports, f"it had imported all by then: {printed}"
    return process.returncode, printed


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["top"],
        ["config"],
        ["nats-conf"],
        ["worker", "handlers"],
        ["gateway", "--port", "0"],
        ["dev", "--port", "0", "--nats-port", "0"],
    ],
    ids=lambda words: words[0],
)
def test_a_command_that_starts_ends_with_130_and_says_nothing(words: list[str], tmp_path: Path) -> None:
    installed("handlers", tmp_path)
    for imports in (1, 60, 150):
        assert interrupted(words, tmp_path, imports) == (130, "")
