"""Whoever asks: a key's holder, or everybody where the door is open."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final

from msgspec import Struct

from ojs_engine.access.permissions import PERMISSIONS, Permission, Role


class Reach(Struct, frozen=True, kw_only=True):
    """The jobs that somebody sees. Patterns of queues and types, in which `*` stands for any characters; none: all."""

    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    @property
    def narrowed(self) -> bool:
        """Whether there are queues or job types that it doesn't see."""
        return bool(self.queues or self.types)

    def enters(self, queue: str) -> bool:
        """Whether there may be jobs in a queue that it sees."""
        return not self.queues or matches(self.queues, queue)

    def sees(self, queue: str, job_type: str | None = None) -> bool:
        """Whether it may see and touch jobs of a type in a queue; without a type, everything that the queue holds.

        Who forgets the type gets False for a principal that is narrowed by types, never too much.
        """
        return self.enters(queue) and (not self.types or (job_type is not None and matches(self.types, job_type)))


class Principal(Reach, frozen=True, kw_only=True):
    """A caller and what it may do."""

    id: str
    name: str
    role: Role
    permissions: frozenset[Permission]

    @property
    def reach(self) -> Reach:
        """The jobs that it sees, without its name."""
        return Reach(queues=self.queues, types=self.types)

    def may(self, permission: Permission) -> bool:
        return permission in self.permissions


EVERYBODY: Final = Principal(id="everybody", name="everybody", role="admin", permissions=frozenset(PERMISSIONS))
"""Who asks where no key is needed."""
NOBODY: Final = Principal(id="nobody", name="nobody", role="custom", permissions=frozenset())
"""Who asks without a key where everybody is answered."""


def matches(patterns: Sequence[str], name: str) -> bool:
    """Whether one of the patterns stands for a name."""
    return any(fnmatchcase(name, _plain(pattern)) for pattern in patterns)


@lru_cache(maxsize=1_024)
def _plain(pattern: str) -> str:
    """The pattern with no other wildcard than `*`."""
    return pattern.replace("[", "[[]").replace("?", "[?]")
