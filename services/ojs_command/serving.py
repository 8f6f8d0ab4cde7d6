"""Runs the server: all of it on one machine, or one service."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from ojs_command.dev import run_dev
from ojs_command.processes import run_processes
from ojs_command.services import ServiceEntry
from ojs_command.setup import set_up
from ojs_command.several import run_services
from ojs_core.runtime.service import run, run_loop
from ojs_core.runtime.settings import Loaded, Settings


def serve_all(loaded: Loaded) -> int:
    """Until it is told to stop; returns the exit code. Raises StartupProblem."""
    return run_loop(run_dev(loaded))


def make_streams(settings: Settings) -> int:
    """Return the exit code of `ojs-nats setup`. Raises StartupProblem."""
    return run_loop(set_up(settings))


def serve_some(entries: Sequence[ServiceEntry], settings: Settings, supervisor: int | None) -> int:
    """The same of several services in this process."""
    return run_loop(run_services(entries, settings, supervisor))


def serve_one(entry: ServiceEntry, settings: Settings, number: int | None, supervisor: int | None) -> int:
    """The same of one service. `number` is which of several gateways of one port it is, None if it isn't one of them."""
    if entry.kind == "gateway" and settings.processes > 1 and number is None:
        return run_loop(run_processes(entry, settings, supervisor))
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, entry.nice)
    return run_loop(run(entry.name, settings, entry.load(), supervisor=supervisor))
