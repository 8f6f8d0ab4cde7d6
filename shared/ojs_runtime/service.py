"""The runtime of one process: logging, the store, signals, health, one ready line and the exit code.

A service is built from the store and the settings, started, and stopped by SIGTERM or SIGINT. Exit codes: 0 after a clean
stop, 1 if it can't start (one plain sentence on standard error), 70 after a crash (with its traceback in the log) or when
work had to be cut off, 128 + n when a second signal n cuts a stop short.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import importlib
import importlib.metadata
import os
import sys
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, Protocol, runtime_checkable

import structlog

from ojs_engine.base.problems import StartupProblem, Unreachable
from ojs_engine.base.service import Service
from ojs_engine.domain.storage_room import RoomSettings
from ojs_engine.store.store import Store, StoreFeatures
from ojs_engine.telemetry import metrics
from ojs_runtime import logs, tracing
from ojs_runtime.connections import raise_file_limit
from ojs_runtime.health import DRAINING, Readiness, health_listener, readiness_of
from ojs_runtime.listen import Listener
from ojs_runtime.settings import Settings
from ojs_runtime.stopping import CRASHED, Stopping, StopTimings
from ojs_runtime.supervised import ReadyLine, Supervisor

CUT_OFF: Final = "work was cut off: it didn't end in time; its jobs come back when their leases expire"
"""What the log says of a service whose stop takes too long."""

_SWITCH_SECONDS: Final = 0.0005
"""How long the event loop waits, each time that it comes back from the system, for a thread that computes (docs/adr/031).
Python's default is ten times that, and one request comes back many times.
"""

_YOUNG_OBJECTS: Final = 10_000
"""After so many more objects were made than freed the collector looks for cycles among them; Python's 700 are those of a
request or two, which hardly ever leave any.
"""

log = structlog.get_logger(__name__)


@runtime_checkable
class Serving(Protocol):
    """A service with an HTTP server of its own, health endpoints included. Those without, or with a shared port, get one. So do
    those whose clients need certificates, which probes don't have.
    """

    @property
    def url(self) -> str:
        """Base URL, once it has started."""

    @property
    def dashboard(self) -> str | None:
        """The address of its dashboard, once it has started; None if it has none."""


@runtime_checkable
class Draining(Protocol):
    """A service that says itself whether it is ready."""

    def tell_readiness(self, draining: Callable[[], bool]) -> None:
        """Call itself unready as soon as `draining` says so."""


Build = Callable[[Store, Settings], Service]


def run_loop(main: Coroutine[Any, Any, int]) -> int:
    """Run `main` in an event loop of its own, uvloop's where it is installed; returns its result, the exit code.

    Threads of this process leave the interpreter to the loop sooner from then on. Raises only `StartupProblem`.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)
    factory: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
    with contextlib.suppress(ImportError):
        factory = importlib.import_module("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(_logged(main))


async def _logged(main: Coroutine[Any, Any, int]) -> int:
    try:
        return await main
    except StartupProblem:
        raise
    except Exception:
        log.critical("crashed", exc_info=True)
        return CRASHED


async def run(
    name: str,
    settings: Settings,
    build: Build,
    features: StoreFeatures,
    *,
    supervisor: int | None = None,
    timings: StopTimings = StopTimings(),
) -> int:
    """Run one service until it is asked to stop; returns the exit code. Raises `StartupProblem` if it can't start.

    All processes of a system have the same `features` in their stores. `supervisor` is the inherited descriptor of a
    link to the process that started this one (`ojs_runtime.supervised`).
    """
    prepare(name, settings)
    stopping = Stopping(timings.alone_s if supervisor is None else timings.supervised_s, settings.drain_delay, timings)
    stopping.on_signals()
    link = await Supervisor.attach(supervisor, stopping.request) if supervisor is not None else None
    try:
        ready = None if link is None else lambda line, _store: link.ready(line)
        clean = await session(name, settings, build, features, stopping, ready)
    finally:
        await tracing.stop()
        if link is not None:
            await link.detach()
    log.info("stopped")
    return 0 if clean else CRASHED


def configure_logs(name: str, settings: Settings) -> None:
    """Have this process log under the name."""
    logs.configure(
        service=name,
        instance=settings.instance,
        log_format=settings.log_format,
        level=settings.log_level,
        namespace=settings.namespace,
    )


def prepare(name: str, settings: Settings) -> None:
    """Have this process log, trace and count under the name, in its running loop."""
    configure_logs(name, settings)
    raise_file_limit()
    tracing.start(settings.otlp_endpoint, name, settings.instance)
    metrics.identify(name, importlib.metadata.version("ojs-nats-server"), settings.namespace)
    asyncio.get_running_loop().set_exception_handler(_log_stray)


async def session(
    name: str,
    settings: Settings,
    build: Build,
    features: StoreFeatures,
    stopping: Stopping,
    ready: Callable[[ReadyLine, Store], None] | None,
) -> bool:
    """One service in a process that is prepared, from the connection to NATS to its end; whether the stop was clean. `ready` is
    called once it works, with its store. Raises `StartupProblem`.
    """
    store = await stopping.unless(_open(name, settings, features))
    if store is None:
        return True
    try:
        service = build(store, settings)
        health: Listener | None = None
        clean = False
        try:
            await stopping.unless(service.start())
            if not stopping.requested:
                if isinstance(service, Draining):
                    service.tell_readiness(lambda: stopping.draining)
                apart = settings.processes > 1 or settings.client_ca is not None or not isinstance(service, Serving)
                if settings.health_port is not None and (apart or settings.health_port != 0):
                    health = health_listener(name, settings, settings.health_port, partial(_readiness, store, stopping))
                    await health.start()
                _spare_the_collector()
                _announce(name, service, health, store, ready)
                await stopping.wait()
        finally:
            clean = await _stop(service, stopping)
            if health is not None:
                await health.stop()
        return clean
    finally:
        await _close(store, stopping.timings.close_s / 2)


async def _readiness(store: Store, stopping: Stopping) -> Readiness:
    return Readiness(DRAINING, {}) if stopping.draining else await readiness_of(store)


async def _open(name: str, settings: Settings, features: StoreFeatures, again_s: float = 0.25) -> Store:
    """The store, once NATS can be reached: processes may start in any order, so NATS may come last."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + settings.connect_timeout
    warned = False
    room = RoomSettings(reserve=settings.storage_reserve, limit=settings.storage_limit, folder=settings.storage_folder)
    while True:
        try:
            url = settings.nats_of(name)
            return await Store.open(
                url, settings.streams, role=name, features=features, room=room, test_mode=settings.test_mode
            )
        except Unreachable as problem:
            if loop.time() + again_s >= deadline:
                raise
            if not warned:
                log.warning("waiting for NATS", reason=str(problem), seconds=settings.connect_timeout)
                warned = True
            await asyncio.sleep(again_s)


def _announce(
    name: str,
    service: Service,
    health: Listener | None,
    store: Store,
    ready: Callable[[ReadyLine, Store], None] | None,
) -> None:
    url = service.url if isinstance(service, Serving) else health.url if health is not None else None
    own = {"health_url": health.url} if health is not None and health.url != url else {}
    if isinstance(service, Serving) and service.dashboard is not None:
        own["dashboard"] = service.dashboard
    log.info("ready", url=url, **own, nats_server=store.server_version, pid=os.getpid())
    if ready is not None:
        ready(ReadyLine(name, os.getpid(), url), store)


def _spare_the_collector() -> None:
    """What is there once a service has started stays for good: no collection looks at it again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG_OBJECTS)


async def _stop(service: Service, stopping: Stopping) -> bool:
    """Stop within the time that is left; whether that was enough."""
    try:
        async with asyncio.timeout(stopping.remaining(stopping.timings.close_s)):
            await service.stop()
    except TimeoutError:
        log.error(CUT_OFF)
        return False
    return True


async def _close(store: Store, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await store.close()
    except TimeoutError:
        log.warning("the connection to NATS didn't close in time")


def _log_stray(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    log.error("unexpected error in the background", problem=context.get("message"), exc_info=context.get("exception"))
