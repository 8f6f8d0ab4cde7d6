"""The rules of progress: what follows when nodes of a graph end (ojs-workflows §4-§6, §9, §10).

A chain goes on with its next step and ends with its first failure. A group ends when all of its members have. A batch
then calls back, and what its callbacks come to is what it comes to. A step of a DAG starts when all that it depends
on has completed, and is cancelled when that can't happen any more; its callbacks wait for all that they depend on,
and a failure that is somebody's to be called back for isn't the DAG's. What stands behind a callback that isn't
called is passed over, too.
"""

from __future__ import annotations

from typing import Final

from ojs_features.workflows.graph import Composite, Graph
from ojs_features.workflows.record import BAD, DONE, GOOD, QUEUED, RUNNING, SKIPPED, WAITING, NodeRange

_WAITING: Final = ord(WAITING)
_QUEUED: Final = ord(QUEUED)
_RUNNING: Final = ord(RUNNING)
_SKIPPED: Final = ord(SKIPPED)
_C, _F, _X = ord("C"), ord("F"), ord("X")


class Progress:
    """The letters of all nodes while they are being changed. `to_create` are new jobs, `ended` the nested workflows
    that have ended, in order; the root's letter says whether the whole has.
    """

    def __init__(self, graph: Graph, states: str) -> None:
        self.graph = graph
        self.states = bytearray(states, "ascii")
        self.to_create: list[int] = []
        self.ended: list[Composite] = []
        self._changed: dict[int, list[int]] = {}

    @classmethod
    def blank(cls, graph: Graph) -> Progress:
        return cls(graph, WAITING * graph.size)

    @property
    def text(self) -> str:
        return self.states.decode("ascii")

    def ranges_to_create(self) -> tuple[NodeRange, ...]:
        """The jobs to create, in order of their numbers."""
        ranges: list[list[int]] = []
        for node in sorted(self.to_create):
            if ranges and ranges[-1][1] == node - 1:
                ranges[-1][1] = node
            else:
                ranges.append([node, node])
        return tuple((start, end) for start, end in ranges)

    def start(self, node: int) -> None:
        """Begin a node that waits."""
        composite = self.graph.composite(node)
        if composite is None:
            self.states[node] = _QUEUED
            self.to_create.append(node)
            return
        self.states[node] = _RUNNING
        first = composite.first
        match composite.kind:
            case "chain":
                self.start(first)
            case "group" | "batch":
                for child in range(first, first + composite.members):
                    self.start(child)
            case "dag":
                for position, needs in enumerate(composite.needs):
                    if not needs:
                        self.start(first + position)

    def end(self, node: int, letter: str) -> None:
        """A job has ended; what follows from it is found by `settle`."""
        self.states[node] = ord(letter)
        self._note(node)

    def settle(self) -> None:
        """Draw all conclusions. The deepest first: their own ends may change what is around them."""
        while self._changed:
            at = max(self._changed)
            children = self._changed.pop(at)
            composite = self.graph.composite(at)
            assert composite is not None
            if self.states[at] != _RUNNING:
                continue
            match composite.kind:
                case "chain":
                    self._chain(composite, children)
                case "group":
                    self._group(composite)
                case "batch":
                    self._batch(composite)
                case "dag":
                    self._dag(composite, children)

    def cancel(self, node: int) -> None:
        """A node will not be begun; nor will anything in it."""
        if self.states[node] != _WAITING:
            return
        composite = self.graph.composite(node)
        if composite is None:
            self.states[node] = ord("x")
            return
        self.states[node] = _X
        for child in range(composite.first, composite.end):
            self.cancel(child)

    def abandon(self) -> None:
        """Cancel everything that hasn't begun; jobs that exist are left to end as they will."""
        for composite in self.graph.composites:
            if self.states[composite.node] in (_WAITING, _RUNNING):
                self.states[composite.node] = _X
        self.states = self.states.replace(b".", b"x")

    def resume(self, node: int) -> None:
        """Go on with a node where it stood: `reset` has put back what is to be done again."""
        composite = self.graph.composite(node)
        if self.states[node] in DONE or (composite is None and self.states[node] == _QUEUED):
            return
        if composite is None:
            self.start(node)
            return
        self.states[node] = _RUNNING
        children = range(composite.first, composite.end)
        match composite.kind:
            case "chain":
                self.resume(next((child for child in children if self.states[child] not in DONE), composite.last_member))
            case "group" | "batch":
                for child in children[: composite.members]:
                    self.resume(child)
            case "dag":
                for position, child in enumerate(children):
                    if self.states[child] == _WAITING and not composite.needs[position]:
                        self.start(child)
                    elif self.states[child] == _RUNNING:
                        self.resume(child)
        self._changed.setdefault(node, []).extend(children)

    def reset(self, node: int, renewed: list[int]) -> None:
        """Put back a node that came to no good end, and what in it did not; the jobs among them go to `renewed`."""
        composite = self.graph.composite(node)
        letter = self.states[node]
        if composite is None:
            if letter in BAD or letter == _SKIPPED:
                self.states[node] = _WAITING
                renewed.append(node)
            return
        if letter in GOOD or letter == _WAITING:
            return
        members_end = composite.first + composite.members
        called = any(self.states[child] not in (_WAITING, ord("x")) for child in range(members_end, composite.end))
        # A batch whose callbacks were fired has had its members, whatever became of them; only the callbacks are at issue.
        redone = range(members_end if composite.kind == "batch" and called else composite.first, composite.end)
        for child in redone:
            if called and composite.kind == "batch" and self.states[child] == _SKIPPED:
                continue
            self.reset(child, renewed)
        begun = any(letter != _WAITING for letter in self.states[composite.first : composite.end])
        self.states[node] = _RUNNING if begun else _WAITING

    # One rule for each kind

    def _chain(self, chain: Composite, children: list[int]) -> None:
        for child in children:
            letter = self.states[child]
            if letter in BAD:
                for later in range(child + 1, chain.end):
                    self.cancel(later)
                self._finish(chain, _F)
                return
            following = child + 1
            if letter in GOOD and following < chain.end and self.states[following] == _WAITING:
                self.start(following)
        if self.states[chain.end - 1] in GOOD:
            self._finish(chain, _C)

    def _group(self, group: Composite) -> None:
        members = self._members(group)
        if not _open(members):
            self._finish(group, _F if _any_bad(members) else _C)

    def _batch(self, batch: Composite) -> None:
        members = self._members(batch)
        if _open(members):
            return
        callbacks = range(batch.first + batch.members, batch.end)
        for callback in callbacks:
            if self.states[callback] == _WAITING:
                self._call_back(batch, callback, members)
        ended = bytes(self.states[callbacks.start : callbacks.stop])
        if not _open(ended):
            self._finish(batch, _F if _any_bad(ended) else _C)

    def _dag(self, dag: Composite, children: list[int]) -> None:
        dependents = self.graph.dependents(dag)
        look = [dependent for child in children for dependent in dependents[child - dag.first]]
        while look:
            position = look.pop()
            node = dag.first + position
            if self.states[node] == _WAITING and self._judge(dag, position):
                # Cancelled or skipped: that is all that those behind it need to know.
                look.extend(dependents[position])
        if not _open(bytes(self.states[dag.first : dag.end])):
            self._finish(dag, _F if self._unhandled(dag) else _C)

    def _judge(self, dag: Composite, position: int) -> bool:
        """Start a step whose time has come; whether it has ended without."""
        node = dag.first + position
        # Most steps end in order, so the last one is the likeliest to be missing.
        needs = bytes(self.states[dag.first + need] for need in reversed(dag.needs[position]))
        if dag.role(position) is not None:
            if not _open(needs):
                self._call_back(dag, node, needs)
        elif _any_bad(needs):
            self.cancel(node)
        elif _SKIPPED in needs:
            if not _open(needs):
                self._skip(node)
        elif all(letter in GOOD for letter in needs):
            self.start(node)
        return self.states[node] in DONE

    def _call_back(self, composite: Composite, node: int, members: bytes) -> None:
        wanted = {"on_complete": True, "on_success": not _any_bad(members), "on_failure": _any_bad(members)}
        role = composite.role(node - composite.first)
        assert role is not None
        if wanted[role]:
            self.start(node)
        else:
            self.states[node] = _SKIPPED

    def _skip(self, node: int) -> None:
        """A node is not called for; nor is anything in it."""
        self.states[node] = _SKIPPED
        composite = self.graph.composite(node)
        if composite is not None:
            for child in range(composite.first, composite.end):
                self._skip(child)

    def _unhandled(self, dag: Composite) -> bool:
        handled = {need for position in range(dag.members, dag.size) for need in dag.needs[position]}
        return any(self.states[dag.first + position] in BAD and position not in handled for position in range(dag.size))

    def _finish(self, composite: Composite, letter: int) -> None:
        self.states[composite.node] = letter
        self.ended.append(composite)
        if composite.node:
            self._note(composite.node)

    def _note(self, node: int) -> None:
        self._changed.setdefault(self.graph.parent(node).node, []).append(node)

    def _members(self, composite: Composite) -> bytes:
        return bytes(self.states[composite.first : composite.first + composite.members])


def _open(letters: bytes) -> bool:
    """Whether some of the nodes haven't ended."""
    return b"." in letters or b"q" in letters or b"R" in letters


def _any_bad(letters: bytes) -> bool:
    return any(letter in letters for letter in BAD)
