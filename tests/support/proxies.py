"""The proxies of docs/proxies.md, run with their configurations in deploy/proxies."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from support.processes import end, free_port
from support.system import environment
from support.waiting import until

CONFIGS: Final = Path(__file__).parents[2] / "deploy" / "proxies"


class Proxy(NamedTuple):
    """A program, how it is started in a folder with its configurations, and how those name its ports."""

    name: str
    files: tuple[str, ...]
    arguments: Callable[[Path], list[str]]
    ports: tuple[str, ...] = (":80", ":443", ":8000")
    needs: Path | None = None
    """A file that another package brings."""

    @property
    def program(self) -> str:
        """The path of the program. Without it the test is skipped; in CI it fails if Debian has a package."""
        named = os.environ.get(f"OJS_{self.name.upper()}")
        found = named or shutil.which(self.name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")
        if found and (self.needs is None or self.needs.exists()):
            return found
        missing = f"there is no {self.needs if found else self.name} here"
        if "CI" in os.environ and self.name != "traefik":
            pytest.fail(f"{missing}, and CI has to have one")
        pytest.skip(f"{missing} (OJS_{self.name.upper()} names the program)")


def nginx_arguments(file: str) -> Callable[[Path], list[str]]:
    """Return how nginx is started with a configuration."""
    return lambda folder: [
        *("-p", str(folder), "-c", file, "-e", "stderr"),
        *("-g", f"daemon off; pid {folder}/nginx.pid;"),
    ]


def haproxy_arguments(file: str) -> Callable[[Path], list[str]]:
    """Return how HAProxy is started with a configuration."""
    return lambda folder: ["-db", "-f", str(folder / file)]


@contextmanager
def running(proxy: Proxy, program: str, folder: Path, places: Mapping[str, str]) -> Iterator[list[str]]:
    """Run a proxy with its configurations, on free ports, and yield the addresses that it listens at.

    Args:
        proxy: what to run.
        program: its path.
        folder: a new one, for the configurations and what the proxy keeps.
        places: what the configurations name, such as addresses of gateways, and what is there in its place.

    """
    ports = [free_port() for _ in proxy.ports]
    pairs = zip(proxy.ports, ports, strict=True)
    named = {name: name.replace(name.lstrip("listen :"), str(port)) for name, port in pairs} | dict(places)
    pattern = re.compile("|".join(rf"{re.escape(name)}(?![0-9])" for name in sorted(named, key=len, reverse=True)))
    for file in proxy.files:
        text = (CONFIGS / file).read_text(encoding="utf-8")
        (folder / file).write_text(pattern.sub(lambda found: named[found[0]], text), encoding="utf-8")
    log = folder / "proxy.log"
    home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with log.open("wb") as output:
        command = [program, *proxy.arguments(folder)]
        process = subprocess.Popen(command, env=environment(**home), stdout=output, stderr=output)

    def listens() -> bool:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        with contextlib.suppress(OSError):
            for port in ports:
                socket.create_connection(("127.0.0.1", port)).close()
            return True
        return False

    try:
        until(listens)
        yield [f"127.0.0.1:{port}" for port in ports]
    finally:
        end(process, signal.SIGTERM)
