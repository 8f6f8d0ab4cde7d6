"""What processes of this machine spend, read from /proc (Linux)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Final, NamedTuple

from msgspec import Struct

GENERATOR: Final = "generator"
"""The name under which this process appears among the others."""

_TICK_S: Final = 1 / os.sysconf("SC_CLK_TCK")


class Usage(Struct, frozen=True):
    """One process over one stretch: CPU seconds spent in it, memory at its end in MiB (PSS where readable)."""

    cpu_s: float
    rss_mib: float
    pss_mib: float | None


class Spent(Struct, frozen=True):
    """All measured processes over one stretch of `seconds`. `other_cpu_s` is what the rest of the machine used.

    `gone` names the processes that ended meanwhile.
    """

    seconds: float
    processes: dict[str, Usage]
    other_cpu_s: float
    gone: list[str]


class Reading(NamedTuple):
    """CPU seconds so far, per process and for the machine as a whole."""

    at: float
    cpu_s: dict[str, float]
    machine_s: float


def parse_cpu(stat: str) -> float:
    """CPU seconds (user and system) of a /proc/<pid>/stat line. The command in it may hold spaces and parentheses."""
    fields = stat[stat.rindex(")") + 2 :].split()
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def parse_busy(stat: str) -> float:
    """Busy CPU seconds of all cores together, of the text of /proc/stat (guest time is part of user time)."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(field) for field in stat.split("\n", 1)[0].split()[1:9])
    return (user + nice + system + irq + softirq + steal) * _TICK_S


def _status_kib(text: str, name: str) -> int:
    for line in text.splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise ValueError(f"no {name} in it")


def resident_mib(pid: int | str = "self") -> float:
    """The resident memory of a process, or of this one."""
    return _status_kib(Path(f"/proc/{pid}/status").read_text(), "VmRSS") / 1024


def descendants(pid: int, named: Mapping[str, int]) -> dict[str, int]:
    """name -> pid of all living processes below `pid` but those that are `named`: what one of these started is named after it,
    others by their command; with the pid where a name repeats.
    """
    owners = {owner: name for name, owner in named.items() if owner != pid}
    children: dict[int, list[tuple[int, str]]] = {}
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                stat = (directory / "stat").read_text()
            except OSError:
                continue
            name = stat[stat.index("(") + 1 : stat.rindex(")")]
            parent = int(stat[stat.rindex(")") + 2 :].split()[1])
            children.setdefault(parent, []).append((int(directory.name), name))
    found: dict[str, int] = {}
    waiting = [pid]
    while waiting:
        parent = waiting.pop()
        for child, command in children.get(parent, []):
            waiting.append(child)
            if child in owners:
                continue
            if parent in owners:
                owners[child] = owners[parent]
            name = owners.get(child, command)
            found[f"{name}-{child}" if name in found or name in named else name] = child
    return found


class Meter:
    """Reads the same processes again and again. The generator itself is always among them."""

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._pids = {**pids, GENERATOR: os.getpid()}

    def read(self) -> Reading:
        cpu = {name: parse_cpu(stat) for name, stat in self._each("stat")}
        return Reading(perf_counter(), cpu, parse_busy(Path("/proc/stat").read_text()))

    def spent(self, before: Reading) -> Spent:
        """What was spent since that reading."""
        now = self.read()
        rss = {name: _status_kib(text, "VmRSS") / 1024 for name, text in self._each("status") if "VmRSS:" in text}
        pss = {name: _status_kib(text, "Pss") / 1024 for name, text in self._each("smaps_rollup")}
        cpu = {name: value - before.cpu_s[name] for name, value in now.cpu_s.items() if name in before.cpu_s}
        usage = {name: Usage(value, rss[name], pss.get(name)) for name, value in cpu.items() if name in rss}
        other = now.machine_s - before.machine_s - sum(cpu.values())
        return Spent(now.at - before.at, usage, max(other, 0.0), [name for name in self._pids if name not in usage])

    def _each(self, file: str) -> Iterable[tuple[str, str]]:
        for name, pid in self._pids.items():
            try:
                yield name, Path(f"/proc/{pid}/{file}").read_text()
            except OSError:
                continue  # ended, or not readable: the caller misses the name
