"""The interface of everything that a process runs."""

from __future__ import annotations

from typing import Protocol


class Service(Protocol):
    """A part of a process that works from its start to its stop."""

    async def start(self) -> None:
        """Begin to work; returns once it does. Raises `StartupProblem` if it can't."""

    async def stop(self) -> None:
        """Take nothing new and finish what is in flight. Also called after `start` has failed or was cut short."""
