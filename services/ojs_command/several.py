"""`ojs-nats services`: all services but the gateway, or some of them, in one process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Final

import structlog
from msgspec.structs import replace

from ojs_command.services import SHARED
from ojs_command.together import ServiceTask, load_services
from ojs_engine.base.problems import StartupProblem
from ojs_runtime import tracing
from ojs_runtime.health import Readiness, health_listener
from ojs_runtime.service import prepare
from ojs_runtime.service_entry import ServiceEntry
from ojs_runtime.settings import Settings
from ojs_runtime.stopping import CRASHED, Stopping, StopTimings
from ojs_runtime.supervised import ReadyLine, Supervisor

NAME: Final = SHARED.name

log = structlog.get_logger(__name__)


async def run_services(
    entries: Sequence[ServiceEntry],
    settings: Settings,
    supervisor: int | None = None,
    timings: StopTimings = StopTimings(),
) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code. Raises `StartupProblem` if none of them can start.

    `supervisor` is the inherited descriptor of a link to the process that started this one (`ojs_runtime.supervised`).
    """
    prepare(NAME, settings)
    stop_seconds = timings.alone_s if supervisor is None else timings.supervised_s
    seconds = stop_seconds - timings.margin_s
    stopping = Stopping(stop_seconds)
    stopping.on_signals()
    link = await Supervisor.attach(supervisor, stopping.request) if supervisor is not None else None
    own = replace(settings, health_port=None)
    tasks = [ServiceTask(name, build, own, seconds) for name, build in (await load_services(entries)).items()]

    async def check() -> Readiness:
        return _readiness({task.name: why for task, why in zip(tasks, await _troubles(tasks), strict=True)})

    health = health_listener(NAME, settings, settings.health_port, check) if settings.health_port is not None else None
    try:
        if health is not None:
            await health.start()
        await stopping.unless(_start(tasks))
        if not stopping.requested:
            url = health.url if health is not None else None
            log.info("ready", url=url, services=[task.name for task in tasks if task.pid], pid=os.getpid())
            if link is not None:
                link.ready(ReadyLine(NAME, os.getpid(), url))
        await stopping.wait()
    finally:
        await asyncio.gather(*(task.stop(seconds) for task in tasks))
        if health is not None:
            await health.stop()
        await tracing.stop()
        if link is not None:
            await link.detach()
    log.info("stopped")
    return 0 if all(task.clean for task in tasks) else CRASHED


async def _start(tasks: Sequence[ServiceTask]) -> None:
    """Start all at once, and return when each is ready or is known not to be.

    Raises `StartupProblem` if that is none.
    """
    found = await asyncio.gather(*(task.start_or_retry() for task in tasks))
    problems = [(task, problem) for task, problem in zip(tasks, found, strict=True) if problem is not None]
    if len(problems) == len(tasks):
        raise StartupProblem(str(problems[0][1]))
    for task, problem in problems:
        log.error("could not be started, is tried again", child=task.name, reason=str(problem))


async def _troubles(tasks: Sequence[ServiceTask]) -> list[str | None]:
    return await asyncio.gather(*(task.trouble() for task in tasks))


def _readiness(troubles: dict[str, str | None]) -> Readiness:
    told = {name: "ok" if why is None else why for name, why in troubles.items()}
    wrong = [f"{name}: {why}" for name, why in troubles.items() if why is not None]
    return Readiness("; ".join(wrong) or None, {"services": told})
