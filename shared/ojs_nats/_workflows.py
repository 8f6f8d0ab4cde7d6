"""Workflows by composition: `chain(fetch.s(url), group(resize.s(1), resize.s(2)), publish.s())` (docs/workflows.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar, overload

import msgspec

from ojs_nats._errors import OjsError
from ojs_nats._jobs import NewJob
from ojs_nats.answers.workflows import WorkflowStep

R = TypeVar("R")

When = Literal["complete", "success", "failure"]


class Flow(ABC, Generic[R]):
    """A workflow that is yet to be started, which may be a step of another. R is what its result is."""

    name: str = ""

    @abstractmethod
    def wire(self) -> dict[str, Any]:
        """As the server is told of it."""

    @abstractmethod
    def read(self, steps: Sequence[WorkflowStep]) -> R:
        """Its result from those of its steps, all of which have ended."""

    def named(self, name: str) -> Flow[R]:
        """The same with a name, for those who look at it."""
        self.name = name
        return self

    def _said(self, members: dict[str, Any]) -> dict[str, Any]:
        return members | ({"name": self.name} if self.name else {})


Step = NewJob[R] | Flow[R]
"""What a workflow is made of: a job, as `a.s(1)` makes it, or a workflow."""


class Chain(Flow[R]):
    """Steps that run one after the other; its result is that of the last."""

    def __init__(self, steps: Sequence[Step[Any]]) -> None:
        self._steps = _some(steps, "chain")

    def wire(self) -> dict[str, Any]:
        return self._said({"type": "chain", "steps": [_wire(step) for step in self._steps]})

    def read(self, steps: Sequence[WorkflowStep]) -> R:
        result: R = _read(self._steps[-1], steps[-1])
        return result


class Group(Flow[list[Any]]):
    """Steps that run at once; its result has theirs, in the order of their definition."""

    def __init__(self, steps: Sequence[Step[Any]]) -> None:
        self._steps = _some(steps, "group")

    def wire(self) -> dict[str, Any]:
        return self._said({"type": "group", "jobs": [_wire(step) for step in self._steps]})

    def read(self, steps: Sequence[WorkflowStep]) -> list[Any]:
        return [_read(step, told) for step, told in zip(self._steps, steps, strict=True)]


class Batch(Group):
    """A group with jobs that are called back; of a step that failed the result is None."""

    def __init__(self, steps: Sequence[Step[Any]], callbacks: dict[str, NewJob[Any]]) -> None:
        super().__init__(steps)
        self._callbacks = callbacks

    def wire(self) -> dict[str, Any]:
        called = {name: job.template() for name, job in self._callbacks.items()}
        return super().wire() | {"type": "batch", "callbacks": called}


class Node(msgspec.Struct, frozen=True):
    """A step of a `Dag`, for others to come after."""

    id: str


class Dag(Flow[dict[str, Any]]):
    """Steps that run when what they come after has completed; its result has theirs by id.

    ```python
    flow = Dag()
    pages = [flow.add(fetch.s(url)) for url in urls]
    report = flow.add(summarise.s(), after=pages, id="report")
    flow.add(page_someone.s(), after=[report], when="failure")
    ```
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._steps: dict[str, Step[Any]] = {}
        self._wires: list[dict[str, Any]] = []
        self._called: set[str] = set()

    def add(self, step: Step[Any], *, after: Sequence[Node] = (), id: str | None = None, when: When | None = None) -> Node:
        """`when` makes the step, which must be a job, one that is called back for those that it comes after, which then may
        fail: when all have ended, have completed, or one has failed. Raises ValueError for an id that is taken, a step of
        another workflow, or such a step that is a workflow.
        """
        known = id or str(len(self._steps))
        if known in self._steps:
            raise ValueError(f"there is a step {known!r} already")
        if strange := [node.id for node in after if node.id not in self._steps]:
            raise ValueError(f"{strange[0]!r} is no step of this workflow")
        wire = _wire(step) | {"id": known}
        if after:
            wire["depends_on"] = [node.id for node in after]
        if when is not None:
            if isinstance(step, Flow):
                raise ValueError("what is called back must be a job, not a workflow")
            wire["options"] = wire["options"] | {"callback_type": f"on_{when}"}
            self._called.add(known)
        self._steps[known] = step
        self._wires.append(wire)
        return Node(known)

    def wire(self) -> dict[str, Any]:
        _some(self._wires, "dag")
        return self._said({"steps": self._wires})

    def read(self, steps: Sequence[WorkflowStep]) -> dict[str, Any]:
        told = {step.id: step for step in steps}
        return {name: _read(step, told[name]) for name, step in self._steps.items() if name not in self._called}


@overload
def chain(first: Step[R], /) -> Chain[R]: ...
@overload
def chain(_first: Step[Any], last: Step[R], /) -> Chain[R]: ...
@overload
def chain(_first: Step[Any], _second: Step[Any], last: Step[R], /) -> Chain[R]: ...
@overload
def chain(_first: Step[Any], _second: Step[Any], _third: Step[Any], last: Step[R], /) -> Chain[R]: ...
@overload
def chain(_first: Step[Any], _second: Step[Any], _third: Step[Any], _fourth: Step[Any], /, *steps: Step[Any]) -> Chain[Any]: ...
def chain(*steps: Step[Any]) -> Chain[Any]:
    """One after the other; each is given the results of those before it as `ctx.parent_results`. The first to fail ends it."""
    return Chain(steps)


def group(*steps: Step[Any]) -> Group:
    """All at once. Ends when all have ended; fails if one has."""
    return Group(steps)


def batch(
    *steps: Step[Any],
    on_complete: NewJob[Any] | None = None,
    on_success: NewJob[Any] | None = None,
    on_failure: NewJob[Any] | None = None,
) -> Batch:
    """All at once, then the jobs that are called back: when all have ended, have completed, or one has failed. It fails only if
    such a job fails. At least one is needed: raises ValueError.
    """
    named = {"on_complete": on_complete, "on_success": on_success, "on_failure": on_failure}
    callbacks = {name: job for name, job in named.items() if job is not None}
    if not callbacks:
        raise ValueError("a batch needs on_complete, on_success or on_failure; without them it is a group")
    return Batch(steps, callbacks)


T = TypeVar("T")


def _some(steps: Sequence[T], kind: str) -> Sequence[T]:
    if not steps:
        raise ValueError(f"a {kind} needs at least one step")
    return steps


def _wire(step: Step[Any]) -> dict[str, Any]:
    return step.wire() if isinstance(step, Flow) else step.template()


def _read(step: Step[Any], told: WorkflowStep) -> Any:
    if isinstance(step, Flow):
        if len(told.steps) < (told.steps_total or told.jobs_total or 0):
            raise OjsError("the workflow has more steps nested in it than one answer has: read the results of its jobs")
        return step.read(told.steps)
    return None if told.state != "completed" else msgspec.convert(told.result, step.returns)
