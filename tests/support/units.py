"""systemd's part in deploy/README.md, as far as the units here ask for it: settings, folders, working folder, processes."""

from __future__ import annotations

import shlex
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import Final

from support.processes import end

_PATHS: Final = ("/etc/", "/opt/", "/usr/local/", "/var/lib")


class Unit:
    """A unit file; `section.key` may be given several times."""

    def __init__(self, text: str) -> None:
        self._values: dict[str, list[str]] = defaultdict(list)
        section = ""
        for line in text.splitlines():
            if line.startswith("["):
                section = line.strip("[]")
            elif line and line[0] not in "#;":
                key, _, value = line.partition("=")
                self._values[f"{section}.{key}"].append(value)

    def all(self, key: str) -> list[str]:
        return self._values[key]

    def one(self, key: str) -> str | None:
        values = self._values[key]
        return values[-1] if values else None


class Machine:
    """A machine whose absolute paths are below `root`; its units run as processes of this one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ports: dict[str, str] = {}
        """Of each service."""
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def here(self, text: str) -> str:
        """The same text with the paths of this machine."""
        for path in _PATHS:
            text = text.replace(path, f"{self.root}{path}")
        return text

    def enable_now(self, *names: str) -> None:
        """`systemctl enable --now`: start units, and whatever they want."""
        for given in names:
            name = given if "." in given else f"{given}.service"
            unit = self._load(name)
            for wanted in " ".join(unit.all("Unit.Wants")).split():
                if wanted != "network-online.target":
                    self.enable_now(wanted)
            if name.endswith(".service") and name not in self.processes:
                self.processes[name] = self._start(name, unit)

    def output(self, name: str) -> str:
        return (self.root / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def stop(self) -> dict[str, int]:
        """End all, NATS last; their exit codes."""
        return {name: end(process) for name, process in reversed(self.processes.items())}

    def _load(self, name: str) -> Unit:
        folder = self.root / "etc/systemd/system"
        stem, dot, kind = name.rpartition(".")
        template, at, instance = stem.partition("@")
        text = (folder / f"{template}{at}{dot}{kind}").read_text(encoding="utf-8")
        return Unit(text.replace("%S", "/var/lib").replace("%i", instance))

    def _start(self, name: str, unit: Unit) -> subprocess.Popen[bytes]:
        environment = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        for line in unit.all("Service.Environment"):
            environment |= dict([line.split("=", 1)])
        for file in unit.all("Service.EnvironmentFile"):
            path = Path(self.here(file.removeprefix("-")))
            if path.exists() or not file.startswith("-"):
                lines = (line for line in path.read_text(encoding="utf-8").splitlines() if line and line[0] != "#")
                environment |= dict(line.split("=", 1) for line in lines)
        if state := unit.one("Service.StateDirectory"):
            (self.root / "var/lib" / state).mkdir(parents=True, exist_ok=True)
        # Without one a service works in /, where it can't write: it may find out by leaving files here.
        nowhere = self.root / "nowhere"
        nowhere.mkdir(exist_ok=True)
        folder = unit.one("Service.WorkingDirectory")
        command = unit.one("Service.ExecStart")
        assert command is not None
        with (self.root / f"{name}.log").open("wb") as output:
            return subprocess.Popen(
                shlex.split(self.here(command)),
                env={key: self.here(value) for key, value in environment.items()},
                cwd=self.here(folder) if folder else nowhere,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
