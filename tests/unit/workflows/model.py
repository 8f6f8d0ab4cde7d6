"""What the state of every step has to be, worked out anew from what became of the jobs: no history, no shortcuts."""

from __future__ import annotations

from collections.abc import Mapping

from ojs_features.workflows.graph import Composite, Graph

GOOD, BAD, SKIPPED, OPEN, WAITING, CANCELLED = "good", "bad", "skipped", "open", "waiting", "cancelled"
ENDED = {GOOD, BAD, SKIPPED, CANCELLED}
_LETTERS = {GOOD: "c", BAD: "f", SKIPPED: "s", OPEN: "q", WAITING: ".", CANCELLED: "x"}
_NESTED = {GOOD: "C", BAD: "F", OPEN: "R", WAITING: ".", CANCELLED: "X", SKIPPED: "s"}


class Model:
    """`ends` says of jobs that have ended whether well."""

    def __init__(self, graph: Graph, ends: Mapping[int, bool]) -> None:
        self.graph = graph
        self.ends = ends
        self.states: dict[int, str] = {}
        self.judge(0)

    @property
    def letters(self) -> str:
        letters = ""
        for node in range(self.graph.size):
            nested = self.graph.composite(node) is not None
            letters += (_NESTED if nested else _LETTERS)[self.states[node]]
        return letters

    def judge(self, node: int) -> str:
        """The state of a node that was begun."""
        composite = self.graph.composite(node)
        if composite is None:
            state = OPEN if node not in self.ends else GOOD if self.ends[node] else BAD
        elif composite.kind == "chain":
            state = self.chain(composite)
        elif composite.kind == "dag":
            state = self.dag(composite)
        else:
            members = [self.judge(composite.first + position) for position in range(composite.members)]
            state = self.parallel(composite, members)
        self.states[node] = state
        return state

    def leave(self, node: int, state: str) -> str:
        """A node that was not begun, and all in it."""
        composite = self.graph.composite(node)
        self.states[node] = state
        if composite is not None:
            for child in range(composite.first, composite.end):
                self.leave(child, state)
        return state

    def chain(self, chain: Composite) -> str:
        state = GOOD
        for child in range(chain.first, chain.end):
            if state == GOOD:
                state = self.judge(child)
            else:
                self.leave(child, CANCELLED if state == BAD else WAITING)
        return state

    def parallel(self, composite: Composite, members: list[str]) -> str:
        called = range(composite.first + composite.members, composite.end)
        if OPEN in members:
            for child in called:
                self.leave(child, WAITING)
            return OPEN
        failed = BAD in members
        if composite.kind == "group":
            return BAD if failed else GOOD
        ends = []
        for child in called:
            role = composite.role(child - composite.first)
            fires = role == "on_complete" or (role == "on_failure") == failed
            ends.append(self.judge(child) if fires else self.leave(child, SKIPPED))
        return OPEN if OPEN in ends else BAD if BAD in ends else GOOD

    def dag(self, dag: Composite) -> str:
        states: dict[int, str] = {}

        def of(position: int) -> str:
            if position not in states:
                needs = [of(need) for need in dag.depends_on(position)]
                states[position] = self.step(dag, position, needs)
            return states[position]

        ends = [of(position) for position in range(dag.size)]
        if any(end in {OPEN, WAITING} for end in ends):
            return OPEN
        handled = {need for position in range(dag.members, dag.size) for need in dag.depends_on(position)}
        return BAD if any(end in {BAD, CANCELLED} and p not in handled for p, end in enumerate(ends)) else GOOD

    def step(self, dag: Composite, position: int, needs: list[str]) -> str:
        node = dag.first + position
        role = dag.role(position)
        if role is None:
            if {BAD, CANCELLED} & set(needs):
                return self.leave(node, CANCELLED)
            if SKIPPED in needs and all(need in ENDED for need in needs):
                return self.leave(node, SKIPPED)
            return self.judge(node) if all(need == GOOD for need in needs) else self.leave(node, WAITING)
        if not all(need in ENDED for need in needs):
            return self.leave(node, WAITING)
        failed = bool({BAD, CANCELLED} & set(needs))
        return self.judge(node) if role == "on_complete" or (role == "on_failure") == failed else self.leave(node, SKIPPED)
