"""A real nats-server for one test or one module."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from support import users
from support.machine import Machine
from support.processes import end, free_port
from support.waiting import until

_CONFIGURATION = """\
server_name: {name}
host: "{host}"
max_payload: 8MB
ports_file_dir: "{folder}"
log_file: "{folder}/nats-server.log"
jetstream {{
  store_dir: "{folder}/store"
  max_memory_store: 256MB
  max_file_store: {max_file_store}
  limits {{ batch {{ max_inflight_per_stream: 500, max_inflight_total: 5000, max_msgs: {max_batch}, timeout: "10s" }} }}
  {jetstream}
}}
{more}
"""

_RELOADED = "Reloaded server configuration"


class NatsServer:
    """A nats-server with files in `folder`. It takes a free port and keeps it, so it can be killed and started again.

    `more` is added to its configuration, `jetstream` to that of its storage.
    `max_batch` is how many messages it takes in one atomic batch.
    `machine` is where it runs, if not here. Use as a context manager, or call `start` and `stop`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        name: str = "test",
        more: str = "",
        jetstream: str = "",
        max_batch: int = 32_000,
        max_file_store: str = "4GB",
        machine: Machine | None = None,
    ) -> None:
        self.folder = folder
        self.port = -1
        self._with_users = users.wanted() and not more
        self._has_streams = False
        self._more = users.section() if self._with_users else more
        self._jetstream = jetstream
        self._host = machine.address if machine else "127.0.0.1"
        self._within = machine.within if machine else ()
        self._max_batch = max_batch
        self.max_file_store = max_file_store
        """What it is started with."""
        self.name = name
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        address = f"{self._host}:{self.port}"
        return users.all_rights(address) if self._with_users else f"nats://{address}"

    @property
    def url_by_role(self) -> str:
        """Its address for services and commands, each of which is the user of its role where there are users."""
        return users.by_role(self.url) if self._with_users else self.url

    @property
    def pid(self) -> int:
        assert self._process is not None, "nats-server doesn't run"
        return self._process.pid

    def start(self) -> Self:
        """Start, on the same port and files as before if it ran before; returns when it takes connections."""
        file = self._configure()
        process = subprocess.Popen(
            [*self._within, program(), "-c", str(file), "-p", str(self.port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._process = process
        ports = self.folder / f"nats-server_{process.pid}.ports"

        def listening() -> int | None:
            assert process.poll() is None, f"nats-server ended: {self.log[-2000:]}"
            try:
                urls: list[str] = json.loads(ports.read_text(encoding="utf-8"))["nats"]
            except (FileNotFoundError, json.JSONDecodeError):  # not written yet, or half of it
                return None
            return urlsplit(urls[0]).port

        try:
            self.port = until(listening) or 0
        except AssertionError:
            self.stop()
            raise
        if self._with_users and not self._has_streams:
            users.make_streams(self.url)
            self._has_streams = True
        return self

    def _configure(self) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / "nats-server.conf"
        text = _CONFIGURATION.format(
            name=self.name,
            host=self._host,
            folder=self.folder,
            more=self._more,
            jetstream=self._jetstream,
            max_batch=self._max_batch,
            max_file_store=self.max_file_store,
        )
        file.write_text(text, encoding="utf-8")
        return file

    def reload(self, more: str) -> None:
        """Have it read its configuration anew, with `more` in the place of what was added; returns when it has."""
        self._more = more
        self._configure()
        before = self.log.count(_RELOADED)
        os.kill(self.pid, signal.SIGHUP)
        until(lambda: self.log.count(_RELOADED) > before)

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        self._end(signal.SIGKILL)
        for ports in self.folder.glob("*.ports"):  # only a server that stops by itself takes it away
            ports.unlink()

    def stop(self) -> None:
        """SIGTERM; returns when it is gone. Does nothing if it doesn't run."""
        self._end(signal.SIGTERM)
        if self._with_users:
            violations = [line for line in self.log.splitlines() if "iolation" in line]
            assert violations == [], violations[:20]

    def restart(self) -> None:
        """Kill it and start it again."""
        self.kill()
        self.start()

    @property
    def log(self) -> str:
        file = self.folder / "nats-server.log"
        return file.read_text(encoding="utf-8", errors="replace") if file.exists() else ""

    def _end(self, number: signal.Signals) -> None:
        if self._process is not None:
            end(self._process, number)
            self._process = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


@contextmanager
def configured(folder: Path, text: str, address: str = "") -> Iterator[str]:
    """A server by a configuration as `ojs-nats nats-conf` prints it; yields its URL, and may not be up yet.

    It is on another port, unless the address is named that its configuration has.
    """
    folder.mkdir()
    file = folder / "nats.conf"
    file.write_text(text.replace("127.0.0.1:8222", "127.0.0.1:-1"), encoding="utf-8")
    host, port = ("127.0.0.1", free_port()) if not address else (address, 4222)
    command = [program(), "-c", str(file), "-p", str(port), "-l", str(folder / "log")]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"nats://{host}:{port}"
    finally:
        end(process)


def program() -> str:
    """The nats-server under test: that of OJS_TEST_NATS_SERVER, else the wheel's, beside this Python."""
    if chosen := os.environ.get("OJS_TEST_NATS_SERVER"):
        return chosen
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    assert found is not None, "no nats-server: script/setup"
    return found
