"""A machine of its own, as far as the network goes: a network namespace, and a cable to pull. It takes root."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self


class CannotIsolate(Exception):
    """This process may not make network namespaces; the message is that of `ip`."""


class Machine:
    """Processes of it are started with `within` before their command, and are reached at `address`.

    While it is unplugged, packets are lost both ways without a word, those that connect as well. As a context manager
    it is there until the end; one for each process of tests. Raises CannotIsolate.
    """

    def __init__(self) -> None:
        pid = os.getpid()
        self._name = f"ojs-{pid}"
        self._cable = f"ojs{pid}"
        network, first = f"198.18.{pid // 64 % 256}", pid % 64 * 4
        self.address = f"{network}.{first + 2}"
        self.within = ("ip", "netns", "exec", self._name)
        _ip("netns", "add", self._name)
        try:
            _ip("link", "add", self._cable, "type", "veth", "peer", "name", "cable", "netns", self._name)
            _ip("address", "add", f"{network}.{first + 1}/30", "dev", self._cable)
            _ip("link", "set", self._cable, "up")
            _ip("-n", self._name, "address", "add", f"{self.address}/30", "dev", "cable")
            for device in ("lo", "cable"):
                _ip("-n", self._name, "link", "set", device, "up")
        except CannotIsolate:
            _ip("netns", "delete", self._name)
            raise

    @contextmanager
    def unplugged(self) -> Iterator[None]:
        """Nothing reaches it, and nothing leaves it, as long as this lasts."""
        _ip("-n", self._name, "link", "set", "cable", "down")
        try:
            yield
        finally:
            _ip("-n", self._name, "link", "set", "cable", "up")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _ip("netns", "delete", self._name)


def _ip(*arguments: str) -> None:
    try:
        subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise CannotIsolate("there is no program `ip`") from None
    except subprocess.CalledProcessError as error:
        raise CannotIsolate(error.stderr.strip()) from None
