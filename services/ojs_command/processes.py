"""`ojs-nats gateway --processes N`: several gateway processes that share one port.

The kernel gives each new connection to one of them, by chance; none knows of the others. This process serves nothing:
it starts them, starts those again that die, and stops them.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import Any

import structlog
from msgspec.structs import replace

from ojs_command.children import ServiceChild, start_all
from ojs_engine.base.problems import StartupProblem
from ojs_runtime.listen import kept_port
from ojs_runtime.service import configure_logs
from ojs_runtime.service_entry import ServiceEntry
from ojs_runtime.settings import Settings
from ojs_runtime.stopping import Stopping, StopTimings
from ojs_runtime.supervised import ReadyLine, Supervisor

log = structlog.get_logger(__name__)


async def run_processes(
    entry: ServiceEntry, settings: Settings, supervisor: int | None, timings: StopTimings = StopTimings()
) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code. Raises `StartupProblem`.

    `supervisor` is the inherited descriptor of a link to the process that started this one.
    """
    if sys.platform != "linux":
        raise StartupProblem(
            f"--processes {settings.processes}: connections are spread over the processes of a port by Linux alone; here, "
            "start a gateway for each of several ports, behind a proxy"
        )
    configure_logs(entry.name, settings)
    stopping = Stopping(timings.alone_s, settings.drain_delay)
    stopping.on_signals()
    link = await Supervisor.attach(supervisor, stopping.request) if supervisor is not None else None
    try:
        async with kept_port(settings.host, settings.port) as port:
            shared = replace(settings, port=port)
            children = [_child(entry, shared, number) for number in range(1, settings.processes + 1)]
            try:
                await stopping.unless(start_all(children))
                if not stopping.requested:
                    log.info("ready", url=children[0].url, processes=settings.processes, pid=os.getpid())
                    if link is not None:
                        link.ready(ReadyLine(entry.name, os.getpid(), children[0].url))
                await stopping.announced()
            finally:
                await _stop(children, stopping, timings.gateways_s + settings.drain_delay)
    finally:
        if link is not None:
            await link.detach()
    log.info("stopped")
    return 0


async def _stop(children: Sequence[ServiceChild], stopping: Stopping, seconds: float) -> None:
    """Have them drain and end, each by itself, or end at once when a second signal says so."""
    ended = asyncio.gather(*(child.stop(seconds) for child in children))
    hurry = asyncio.create_task(stopping.wait())
    either: set[asyncio.Future[Any]] = {hurry, ended}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if hurry.done():
        for child in children:
            child.let_go()
    hurry.cancel()
    await ended


def _child(entry: ServiceEntry, settings: Settings, number: int) -> ServiceChild:
    first = settings.health_port
    own = replace(settings, health_port=first + number - 1) if first else settings
    return ServiceChild(entry, own, _nobody_reads_it, number)


def _nobody_reads_it() -> None:
    """`dev` writes down its children's process ids; here the log has them."""
