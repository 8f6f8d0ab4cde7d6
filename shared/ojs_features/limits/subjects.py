"""Subjects of what limits have on NATS."""

from __future__ import annotations

from typing import NamedTuple

from ojs_engine.jetstream.subjects import StoreConfig, check_names


class Subjects(NamedTuple):
    """Subjects of one namespace. Each raises invalid_request for a name that can't be part of one."""

    config: StoreConfig

    def limit(self, scope: str) -> str:
        """Subject of a limit's record."""
        return self.config.record("limit", scope)

    def timer(self, scope: str, op: str) -> str:
        """Subject of the timer of a note to a limit."""
        check_names(scope, op)
        return f"{self.config.namespace}.timer.limit.{scope}.{op}"

    def hold(self, scope: str, priority: int, queue: str, *, front: bool) -> str:
        """Subject of the tokens that wait for a permit of a key; `front` of those that had been let go, and come back."""
        subject = f"{self.held_of(queue, scope)[:-1]}{priority + 100:03d}"
        return f"{subject}.front" if front else subject

    def hold_of(self, scope: str) -> str:
        """Subjects of all tokens that wait for a permit of a key."""
        check_names(scope)
        return f"{self.config.namespace}.hold.*.{scope.removeprefix('key.')}.>"

    def held_of(self, queue: str, scope: str) -> str:
        """Subjects of the tokens of a queue that wait for a permit of a key."""
        check_names(queue, scope)
        return f"{self.config.namespace}.hold.{queue.replace('.', '_')}.{scope.removeprefix('key.')}.>"

    def ready_of_hold(self, subject: str) -> str:
        """Where a held token goes on."""
        _, _, queue, _, priority, *_ = subject.split(".")
        return f"{self.config.namespace}.ready.{queue}.{priority}.front"
