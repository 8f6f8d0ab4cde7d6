"""A systemd of a test's own: `systemd --user` in cgroups below this process's, with units that the test gives it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from support.processes import end
from support.system import environment
from support.waiting import until

PROGRAM: Final = Path("/lib/systemd/systemd")
_CGROUPS: Final = Path("/sys/fs/cgroup")
_TARGET: Final = "[Unit]\nDescription=What each service wants\n"
_START: Final = """
for group in "$@"; do echo $$ > "$group/cgroup.procs" || exit; done
exec unshare --mount --propagation private sh -c '
    mount -t tmpfs none /run && mkdir -p /run/systemd/system /run/systemd/inaccessible/dir || exit
    cd /run/systemd/inaccessible && touch reg && mknod chr c 0 0 && chmod 0 * && cd / || exit
    exec "$0" --user --unit=basic.target' "$program" </dev/null
"""
"""It only runs where systemd has booted a machine, of which a folder tells. What it hides it does with files of another."""


class CannotRunSystemd(Exception):
    """There is no systemd, or this process may not make cgroups."""


class Systemd:
    """One that runs, and looks for units in `units`. Their own folders are in `state`."""

    def __init__(self, units: Path, state: Path, env: dict[str, str]) -> None:
        self.units = units
        self.state = state
        self._env = env

    def do(self, *words: str) -> str:
        """Give a command of `systemctl`, which has to succeed; returns what it printed."""
        command = ["systemctl", "--user", *words]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def shown(self, unit: str, key: str) -> str:
        """Return a property of a unit."""
        return self.do("show", unit, f"--property={key}", "--value").strip()


@contextmanager
def systemd(folder: Path) -> Iterator[Systemd]:
    """A systemd with its files in a folder. What it has started is killed at the end. Raises CannotRunSystemd."""
    if not PROGRAM.exists() or os.geteuid() != 0 or any(shutil.which(name) is None for name in ("systemctl", "unshare")):
        raise CannotRunSystemd("it takes root, systemd and unshare")
    units, run, state = (folder / name for name in ("units", "run", "state"))
    for each in (units, run, state):
        each.mkdir(parents=True)
    (units / "basic.target").write_text(_TARGET, encoding="utf-8")
    kept = {name: str(state) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}  # its version says which of the two
    env = environment(XDG_RUNTIME_DIR=str(run), SYSTEMD_UNIT_PATH=str(units), program=str(PROGRAM), **kept)
    groups = _made_groups(f"ojs-test-{os.getpid()}")
    try:
        process = subprocess.Popen(["sh", "-c", _START, "sh", *map(str, groups)], env=env)
        try:

            def answers() -> bool:
                if process.poll() is not None:
                    raise CannotRunSystemd("systemd doesn't start here")
                return (run / "systemd" / "private").exists()

            until(answers)
            yield Systemd(units, state, env)
        finally:
            end(process, signal.SIGKILL)
    finally:
        _remove(groups)


def _made_groups(name: str) -> list[Path]:
    """Make a cgroup in each hierarchy that systemd uses, of version 2 or of both. Raises CannotRunSystemd."""
    made: list[Path] = []
    for line in Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers not in {"", "name=systemd"}:
            continue
        hybrid = _CGROUPS / ("unified" if not controllers else "systemd")
        group = (hybrid if hybrid.is_dir() else _CGROUPS) / path.lstrip("/") / name
        try:
            group.mkdir()
        except OSError as error:
            _remove(made)
            raise CannotRunSystemd(f"no cgroup can be made: {error}") from None
        made.append(group)
    return made


def _remove(groups: list[Path]) -> None:
    for group in groups:

        def empty(group: Path = group) -> bool:
            pids = [int(pid) for file in group.rglob("cgroup.procs") for pid in file.read_text(encoding="ascii").split()]
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not pids

        until(empty)
        for below in sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True):
            below.rmdir()
        group.rmdir()
