"""The one shape behind chain, group, batch, DAG and all their nestings: numbered nodes.

Node 0 is the workflow itself. Jobs are leaves, nested workflows inner nodes. The children of a node have consecutive
numbers (members first, then callbacks), deeper nodes have larger ones. So a parent is found by bisection, "are all of
them done" is one look at a slice, and a list of ten thousand jobs costs the shape nothing but its two ends.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property
from typing import Final, get_args

from msgspec import Struct

from ojs_api import workflows as contract
from ojs_engine.base.extensions import Extensions

NodeKind = contract.NodeKind
Role = contract.Role
CALLBACKS: Final[tuple[Role, ...]] = get_args(Role)


class Composite(Struct, frozen=True, omit_defaults=True):
    """An inner node: a workflow, or a workflow inside one."""

    node: int
    kind: NodeKind
    first: int
    """Number of its first child."""
    size: int
    """Its children, callbacks included."""
    roles: tuple[Role, ...] = ()
    """The ends that its last children are called back for."""
    name: str = ""
    ids: tuple[str, ...] = ()
    """The ids of its children; empty: their positions."""
    needs: tuple[tuple[int, ...], ...] = ()
    """DAG: the positions that each child depends on."""
    extensions: Extensions = {}

    @property
    def members(self) -> int:
        """Its children without the callbacks."""
        return self.size - len(self.roles)

    @property
    def end(self) -> int:
        """One past its last child."""
        return self.first + self.size

    @property
    def last_member(self) -> int:
        return self.first + self.members - 1

    def step_id(self, position: int) -> str:
        if self.ids:
            return self.ids[position]
        role = self.role(position)
        return str(position) if role is None else role

    def role(self, position: int) -> Role | None:
        """Return the end that the child at a position is called back for; None for a member."""
        return self.roles[position - self.members] if position >= self.members else None

    def depends_on(self, position: int) -> tuple[int, ...]:
        """The positions that a child waits for."""
        if self.needs:
            return self.needs[position]
        if position >= self.members:
            return tuple(range(self.members))
        return (position - 1,) if self.kind == "chain" and position else ()


class Shape(Struct, frozen=True, omit_defaults=True):
    """A graph as it is stored, without the templates of its jobs. It never changes once it is stored."""

    composites: tuple[Composite, ...]
    """By number, the root first; so their children's ranges ascend, too."""
    types: tuple[tuple[str, int], ...]
    """Job types of all nodes by number, as runs; a nested workflow has its kind."""
    chunks: tuple[int, ...]
    """The first node of each chunk of job templates."""
    defined_at: int
    """When it came in (Unix ms): what relative times in the templates were counted from."""
    extended: tuple[int, ...] = ()
    """The jobs whose templates have members of extensions."""


class Graph:
    """A shape with its look-ups."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.composites = shape.composites
        self.root = shape.composites[0]
        self.size = max(composite.end for composite in shape.composites)
        self._firsts = [composite.first for composite in shape.composites]
        self._at = {composite.node: composite for composite in shape.composites}

    def composite(self, node: int) -> Composite | None:
        """The workflow at a node; None if it is a job."""
        return self._at.get(node)

    def parent(self, node: int) -> Composite:
        """The workflow that a node other than the root is directly part of."""
        return self.composites[bisect_right(self._firsts, node) - 1]

    def jobs_in(self, start: int, end: int) -> list[int]:
        """The jobs among the nodes from `start` to `end` (exclusive)."""
        return [node for node in range(start, end) if node not in self._at]

    def type_of(self, node: int) -> str:
        """A job's type, or a nested workflow's kind."""
        place = bisect_right(self._type_starts, node) - 1
        return self.shape.types[place][0]

    def chunk_of(self, node: int) -> int:
        """Number of the chunk that holds a job's template."""
        return bisect_right(self.shape.chunks, node) - 1

    def dependents(self, composite: Composite) -> tuple[tuple[int, ...], ...]:
        """DAG: the positions that depend on each child."""
        found = self._dependents.get(composite.node)
        if found is None:
            lists: list[list[int]] = [[] for _ in range(composite.size)]
            for position, needs in enumerate(composite.needs):
                for need in needs:
                    lists[need].append(position)
            found = tuple(map(tuple, lists))
            self._dependents[composite.node] = found
        return found

    @cached_property
    def callbacks(self) -> tuple[int, ...]:
        """The nodes that are callbacks, of all workflows in it."""
        return tuple(node for composite in self.composites for node in range(composite.last_member + 1, composite.end))

    @cached_property
    def first_job(self) -> int:
        return next(node for node in range(1, self.size) if node not in self._at)

    @cached_property
    def jobs(self) -> int:
        """The number of jobs, nested ones included, callbacks not."""
        return self.size - len(self.composites) - len(self.callbacks)

    @cached_property
    def bytes(self) -> int:
        """About what it takes in memory."""
        kept = sum(100 + len(raw) for c in self.composites for raw in c.extensions.values())
        places = sum(200 + 80 * (len(c.ids) + len(c.needs)) + 8 * sum(map(len, c.needs)) for c in self.composites)
        return 500 + kept + 8 * len(self.shape.extended) + places

    @cached_property
    def _dependents(self) -> dict[int, tuple[tuple[int, ...], ...]]:
        return {}

    @cached_property
    def _type_starts(self) -> list[int]:
        starts, at = [], 0
        for _, count in self.shape.types:
            starts.append(at)
            at += count
        return starts
