"""Commands as an operator gives them, each in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
from typing import Any, NamedTuple

from support.forked import OJS_NATS, completed
from support.system import environment

_SECONDS = 3_600.0


class Done(NamedTuple):
    """The last line that a command printed, and the seconds of CPU that it used."""

    said: dict[str, Any]
    cpu_s: float


def run(*words: str) -> dict[str, Any]:
    """Run a command to its end, which has to be a good one; returns the last line that it printed."""
    return _said(completed([*OJS_NATS, *words, "--json"], environment(), seconds=_SECONDS))


def measured(*words: str) -> Done:
    """Run it as one that is started, and not forked, so that the CPU which it used is known."""
    before = _used_s()
    done = subprocess.run([*OJS_NATS, *words, "--json"], env=environment(), capture_output=True, text=True, check=False)
    return Done(_said(done), _used_s() - before)


def _said(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
