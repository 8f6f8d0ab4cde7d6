"""Commands as an operator gives them, each in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
from typing import Any, NamedTuple

from support.forked import OJS_NATS
from support.system import environment


class Done(NamedTuple):
    """The last line that a command printed, and the seconds of CPU that it used."""

    said: dict[str, Any]
    cpu_s: float


def run(*words: str) -> Done:
    """Run a command to its end, which has to be a good one."""
    before = _used_s()
    done = subprocess.run([*OJS_NATS, *words, "--json"], env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Done(json.loads(done.stdout.splitlines()[-1]), _used_s() - before)


def _used_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
