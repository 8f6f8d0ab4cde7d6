"""The unit of `ojs-nats` in the hands of a real systemd, without its user and what hides folders: the test's, too."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from ojs_command.embedded import find_server
from support.forked import OJS_NATS, completed
from support.processes import free_port, runs
from support.system import environment, send
from support.systemd import CannotRunSystemd, Systemd, systemd
from support.units import Machine
from support.waiting import until

ROOT: Final = Path(__file__).parents[2]
UNIT: Final = "ojs-nats@gateway.service"
JOB: Final = {"type": "a.b", "args": []}
_NOTHING_HIDDEN: Final = """
[Service]
StandardOutput=append:{log}
StandardError=inherit
DynamicUser=no
PrivateTmp=no
ProtectHome=no
"""


class Gateway:
    """A gateway of two processes as a unit, which drains for longer than the test takes."""

    def __init__(self, manager: Systemd, url: str, log: Path) -> None:
        self.manager = manager
        self.url = url
        self._log = log

    def told(self, event: str) -> list[dict[str, Any]]:
        """The log lines of an event."""
        lines = self._log.read_text(encoding="utf-8").splitlines() if self._log.exists() else []
        return [line for line in map(json.loads, filter(lambda line: line.startswith("{"), lines)) if line["event"] == event]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """It runs beside a nats-server that is a unit, too."""
    machine, log = Machine(tmp_path / "machine"), tmp_path / "gateway.log"
    folders = "opt", "etc/ojs-nats", "etc/nats", "usr/local/bin"
    opt, settings, conf, programs = (machine.root / folder for folder in folders)
    for folder in (opt, settings, conf, programs):
        folder.mkdir(parents=True)
    (opt / "ojs-nats").symlink_to(sys.prefix)
    (programs / "nats-server").symlink_to(find_server("auto"))
    port, nats_port, monitor = free_port(), free_port(), free_port()
    lines = f"OJS_NATS=nats://127.0.0.1:{nats_port}", f"OJS_PORT={port}", "OJS_PROCESSES=2", "OJS_DRAIN_DELAY=25"
    (settings / "environment").write_text("\n".join((*lines, "OJS_LOG_FORMAT=json")), encoding="utf-8")
    try:
        with systemd(tmp_path / "systemd") as manager:
            printed = completed([*OJS_NATS, "nats-conf", "--store", str(manager.state / "nats")], environment()).stdout
            printed = printed.replace("4222", str(nats_port)).replace("8222", str(monitor))
            (conf / "nats.conf").write_text(printed, encoding="utf-8")
            for name, output in (("nats-server", tmp_path / "nats.log"), ("ojs-nats@", log)):
                text = (ROOT / f"deploy/systemd/{name}.service").read_text(encoding="utf-8")
                (manager.units / f"{name}.service").write_text(machine.here(text), encoding="utf-8")
                own = manager.units / f"{name}.service.d/nothing-hidden.conf"
                own.parent.mkdir()
                own.write_text(_NOTHING_HIDDEN.format(log=output), encoding="utf-8")
            manager.do("start", "nats-server.service", UNIT)
            yield Gateway(manager, f"http://127.0.0.1:{port}", log)
    except CannotRunSystemd as reason:
        pytest.skip(str(reason))


@pytest.mark.slow
def test_a_gateway_that_is_killed_is_started_again_and_drains_when_its_unit_is_stopped(gateway: Gateway) -> None:
    until(lambda: len(gateway.told("ready")) == 3, 180.0)
    before = {int(line["pid"]) for line in gateway.told("ready")}
    os.kill(int(gateway.manager.shown(UNIT, "MainPID")), signal.SIGKILL)
    until(lambda: len(gateway.told("ready")) == 6, 180.0)
    assert [pid for pid in before if runs(pid)] == []

    draining, stopped = len(gateway.told("draining")), len(gateway.told("stopped"))
    gateway.manager.do("stop", "--no-block", UNIT)
    until(lambda: len(gateway.told("draining")) == draining + 3)
    assert send("GET", f"{gateway.url}/readyz").status == 503
    assert send("POST", f"{gateway.url}/ojs/v1/jobs", JOB).status == 201
    os.kill(int(gateway.manager.shown(UNIT, "MainPID")), signal.SIGTERM)
    until(lambda: gateway.manager.shown(UNIT, "ActiveState") == "inactive")
    assert gateway.manager.shown(UNIT, "Result") == "success"
    assert len(gateway.told("stopped")) == stopped + 3
