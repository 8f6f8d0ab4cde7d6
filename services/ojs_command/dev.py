"""`ojs-nats dev`: a NATS server and every service, as child processes on one machine."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from typing import ClassVar, Final

import msgspec
import structlog

from ojs_command.children import ServiceChild, start_all
from ojs_command.embedded import FILE_STORE_BYTES, EmbeddedServer, ServerTimings, find_server
from ojs_command.folder import DataFolder, FolderTimings, RunState
from ojs_command.services import SERVICES, SHARED, SMALL
from ojs_command.together import ServiceTask, load_services
from ojs_dashboard.files import missing
from ojs_link.address import FILES
from ojs_link.timings import Order, Timings
from ojs_runtime import logs
from ojs_runtime.listen import require_free
from ojs_runtime.service import configure_logs, prepare
from ojs_runtime.settings import DEFAULT_SOURCE, Loaded, Settings
from ojs_runtime.stopping import Stopping, StopTimings

_NO_FILES: Final = {f"nats_{name}": None for name in FILES}
"""The server of `dev` asks for no credentials."""

log = structlog.get_logger(__name__)


class DevTimings(Timings, frozen=True, kw_only=True):
    """The times of `ojs-nats dev`."""

    stop: StopTimings = StopTimings()
    """Stopping what it has started."""
    server: ServerTimings = ServerTimings()
    """Its nats-server."""
    folder: FolderTimings = FolderTimings()
    """Its folder."""
    order: ClassVar[Order] = (
        ("stop.server_s", "folder.server_s", "a nats-server that stops in time would keep the next `dev` away"),
    )


async def run_dev(loaded: Loaded, timings: DevTimings = DevTimings()) -> int:
    """Run until SIGTERM or SIGINT; returns the exit code. Raises `StartupProblem`."""
    settings = loaded.settings
    if settings.together:
        prepare("dev", settings)
    else:
        configure_logs("dev", settings)
    stopping = Stopping(timings.stop.alone_s)
    stopping.on_signals()
    embedded = loaded.sources["nats"] in {DEFAULT_SOURCE, "NATS_URL"}  # which is for every program of a machine
    folder = DataFolder(settings.data, timings.folder)
    with folder.claimed() as server_lock:
        await _System(settings, folder, server_lock if embedded else None, timings).run(stopping)
    log.info("stopped")
    return 0


class _System:
    """The processes of one `dev`. `server_lock` is None when it uses a NATS server that runs already."""

    def __init__(self, settings: Settings, folder: DataFolder, server_lock: int | None, timings: DevTimings) -> None:
        self._stop = timings.stop
        self._settings = settings
        self._folder = folder
        self._server: EmbeddedServer | None = None
        self._services: Sequence[ServiceChild | ServiceTask] = []
        self._ready = False
        if server_lock is not None:
            program = find_server(settings.nats_server)
            self._server = EmbeddedServer(
                program,
                folder.path,
                settings.nats_port,
                server_lock,
                self._changed,
                reserve=settings.storage_reserve,
                timings=timings.server,
            )

    async def run(self, stopping: Stopping) -> None:
        """Start everything, say so, and stop it in order when asked to. Raises `StartupProblem`."""
        try:
            await stopping.unless(self._start())
            if not stopping.requested:
                self._ready = True
                self._changed()
                self._announce()
            await stopping.wait()
        finally:
            await asyncio.gather(*(service.stop(self._stop.services_s) for service in self._services))
            if self._server is not None:
                await self._server.stop(self._stop.server_s)

    async def _start(self) -> None:
        await require_free(self._settings.host, self._settings.port)
        if self._server is not None:
            await self._server.require_port()
        loading = asyncio.create_task(load_services()) if self._settings.together else None
        settings = msgspec.structs.replace(self._settings, projector_data=self._folder.path / "projector")
        if self._server is not None:
            try:
                await self._server.start()
            except OSError as error:  # of its files
                raise self._folder.unusable(error) from error
            settings = msgspec.structs.replace(
                settings,
                nats=self._server.url,
                nats_api_url=None,
                storage_folder=self._server.store,
                storage_limit=settings.storage_limit or FILE_STORE_BYTES,
                **_NO_FILES,
            )
        if loading is None:
            alone = [entry for entry in SERVICES if settings.apart or entry not in SMALL]
            self._services = [ServiceChild(entry, settings, self._changed) for entry in alone]
            if not settings.apart:
                small = [entry.name for entry in SMALL]
                self._services = [*self._services, ServiceChild(SHARED, settings, self._changed, arguments=small)]
        else:
            self._services = [
                ServiceTask(name, build, settings, self._stop.supervised_s) for name, build in (await loading).items()
            ]
        await start_all(self._services)

    def _announce(self) -> None:
        url = self._url
        push = f"""curl {url}/ojs/v1/jobs -H 'Content-Type: application/json' -d '{{"type":"hello","args":["world"]}}'"""
        dashboard = f"{url}/" if self._settings.dashboard and not missing() else None
        if logs.resolve_format(self._settings.log_format, sys.stdout) == "console":
            log.info("ready, %s   push a first job: %s", f"open {dashboard}" if dashboard else f"on {url}", push)
        else:
            log.info("ready", url=url, dashboard=dashboard, nats_url=self._nats_url, push=push)

    @property
    def _url(self) -> str | None:
        return next((service.url for service in self._services if service.name == "gateway"), None)

    @property
    def _nats_url(self) -> str:
        return self._server.url if self._server is not None else self._settings.nats

    def _changed(self) -> None:
        children = [child for child in (self._server, *self._services) if child is not None]
        state = RunState(
            pid=os.getpid(),
            ready=self._ready,
            url=self._url,
            nats_url=self._nats_url,
            children={child.name: child.pid for child in children if child.pid is not None},
            urls={service.name: service.url for service in self._services if service.url is not None},
        )
        try:
            self._folder.write(state)
        except OSError as error:
            if not self._ready:
                raise self._folder.unusable(error) from error
            log.error("run.json is out of date", reason=error.strerror)  # on a full disk the processes matter more
