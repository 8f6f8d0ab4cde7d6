"""`ojs-nats services`: all services but the gateway, or some of them, in one process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Final

import structlog
from msgspec.structs import replace

from ojs_command.services import ServiceEntry
from ojs_command.together import ServiceTask, load_services
from ojs_core.base.problems import StartupProblem
from ojs_core.runtime.health import Readiness, health_listener
from ojs_core.runtime.service import prepare
from ojs_core.runtime.settings import Settings
from ojs_core.runtime.stopping import CRASHED, STOP_SECONDS, Stopping
from ojs_core.telemetry import tracing

NAME: Final = "services"
_SERVICES_SECONDS: Final = STOP_SECONDS - 0.2

log = structlog.get_logger(__name__)


async def run_services(entries: Sequence[ServiceEntry], settings: Settings) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code. Raises `StartupProblem` if none of them can start."""
    prepare(NAME, settings)
    stopping = Stopping()
    stopping.on_signals()
    own = replace(settings, health_port=None)
    tasks = [ServiceTask(name, build, own, _SERVICES_SECONDS) for name, build in (await load_services(entries)).items()]

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
        await stopping.wait()
    finally:
        await asyncio.gather(*(task.stop(_SERVICES_SECONDS) for task in tasks))
        if health is not None:
            await health.stop()
        await tracing.stop()
    log.info("stopped")
    return 0 if all(task.clean for task in tasks) else CRASHED


async def _start(tasks: Sequence[ServiceTask]) -> None:
    """Start all at once, and return when each is ready or is known not to be. Raises `StartupProblem` if that is none."""
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
