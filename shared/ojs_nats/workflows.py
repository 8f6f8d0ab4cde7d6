"""Workflows by composition: `chain(fetch.job(url), group(resize.job(1), resize.job(2)), publish.job())` (docs/workflows.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar, overload

import msgspec

from ojs_nats._hooks import ClientHooks
from ojs_nats._results import Results
from ojs_nats.errors import OjsError
from ojs_nats.jobs import JobRequest, a_job
from ojs_nats.models.workflows import WorkflowStep

R = TypeVar("R")
F = TypeVar("F", bound="Flow[Any]")

When = Literal["complete", "success", "failure"]


class Flow(ABC, Generic[R]):
    """A workflow that is yet to be started, which may be a step of another. R is what its result is."""

    name: str = ""

    @abstractmethod
    def wire(self) -> dict[str, Any]:
        """As the server is told of it."""

    @abstractmethod
    async def prepared(self, hooks: ClientHooks) -> Flow[R]:
        """The same, of jobs as they are to be pushed."""

    @abstractmethod
    def read(self, steps: Sequence[WorkflowStep], results: Results) -> R:
        """Its result from those of its steps, all of which have ended."""

    def named(self, name: str) -> Flow[R]:
        """The same with a name, for those who look at it."""
        self.name = name
        return self

    def _renamed(self, copy: F) -> F:
        copy.name = self.name
        return copy

    def _said(self, members: dict[str, Any]) -> dict[str, Any]:
        return members | ({"name": self.name} if self.name else {})


Step = JobRequest[R] | Flow[R]
"""What a workflow is made of: a job, as `a.job(1)` makes it, or a workflow."""


class Chain(Flow[R]):
    """Steps that run one after the other; its result is that of the last."""

    def __init__(self, steps: Sequence[Step[Any]]) -> None:
        self._steps = _some(steps, "chain")

    def wire(self) -> dict[str, Any]:
        return self._said({"type": "chain", "steps": [_wire(step) for step in self._steps]})

    async def prepared(self, hooks: ClientHooks) -> Chain[R]:
        return self._renamed(Chain([await _prepared(step, hooks) for step in self._steps]))

    def read(self, steps: Sequence[WorkflowStep], results: Results) -> R:
        result: R = _read(self._steps[-1], steps[-1], results)
        return result


class Group(Flow[list[Any]]):
    """Steps that run at once; its result has theirs, in the order of their definition."""

    def __init__(self, steps: Sequence[Step[Any]]) -> None:
        self._steps = _some(steps, "group")

    def wire(self) -> dict[str, Any]:
        return self._said({"type": "group", "jobs": [_wire(step) for step in self._steps]})

    async def prepared(self, hooks: ClientHooks) -> Group:
        return self._renamed(Group([await _prepared(step, hooks) for step in self._steps]))

    def read(self, steps: Sequence[WorkflowStep], results: Results) -> list[Any]:
        return [_read(step, told, results) for step, told in zip(self._steps, steps, strict=True)]


class Batch(Group):
    """A group with jobs that are called back; of a step that failed the result is None."""

    def __init__(self, steps: Sequence[Step[Any]], callbacks: dict[str, JobRequest[Any]]) -> None:
        super().__init__(steps)
        for name, job in callbacks.items():
            a_job(job, f"{name} is a job, as send_email.job(…) makes it")
        self._callbacks = callbacks

    async def prepared(self, hooks: ClientHooks) -> Batch:
        called = {name: await hooks.prepared(job) for name, job in self._callbacks.items()}
        return self._renamed(Batch([await _prepared(step, hooks) for step in self._steps], called))

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
    pages = [flow.add(fetch.job(url)) for url in urls]
    report = flow.add(summarise.job(), after=pages, id="report")
    flow.add(page_someone.job(), after=[report], when="failure")
    ```
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._steps: dict[str, Step[Any]] = {}
        self._after: dict[str, list[str]] = {}
        self._called: dict[str, When] = {}

    def add(self, step: Step[Any], *, after: Sequence[Node] = (), id: str | None = None, when: When | None = None) -> Node:
        """`when` makes the step, which must be a job, one that is called back for those that it comes after, which then may
        fail: when all have ended, have completed, or one has failed. Raises ValueError for an id that is taken, a step of
        another workflow, or such a step that is a workflow.
        """
        _check_step(step, "dag")
        known = id or str(len(self._steps))
        if known in self._steps:
            raise ValueError(f"there is a step {known!r} already")
        if strange := [node.id for node in after if node.id not in self._steps]:
            raise ValueError(f"{strange[0]!r} is no step of this workflow")
        if when is not None:
            if isinstance(step, Flow):
                raise ValueError("what is called back must be a job, not a workflow")
            self._called[known] = when
        self._after[known] = [node.id for node in after]
        self._steps[known] = step
        return Node(known)

    async def prepared(self, hooks: ClientHooks) -> Dag:
        flow = Dag(self.name)
        for name, step in self._steps.items():
            after = [Node(earlier) for earlier in self._after[name]]
            flow.add(await _prepared(step, hooks), after=after, id=name, when=self._called.get(name))
        return flow

    def wire(self) -> dict[str, Any]:
        _some(list(self._steps.values()), "dag")
        return self._said({"steps": [self._wire(name, step) for name, step in self._steps.items()]})

    def _wire(self, name: str, step: Step[Any]) -> dict[str, Any]:
        wire = _wire(step) | {"id": name}
        if after := self._after[name]:
            wire["depends_on"] = after
        if (when := self._called.get(name)) is not None:
            wire["options"] = wire["options"] | {"callback_type": f"on_{when}"}
        return wire

    def read(self, steps: Sequence[WorkflowStep], results: Results) -> dict[str, Any]:
        told = {step.id: step for step in steps}
        return {name: _read(step, told[name], results) for name, step in self._steps.items() if name not in self._called}


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
    on_complete: JobRequest[Any] | None = None,
    on_success: JobRequest[Any] | None = None,
    on_failure: JobRequest[Any] | None = None,
) -> Batch:
    """All at once, then the jobs that are called back: when all have ended, have completed, or one has failed. It fails only if
    such a job fails. At least one is needed: raises ValueError.
    """
    named = {"on_complete": on_complete, "on_success": on_success, "on_failure": on_failure}
    callbacks = {name: job for name, job in named.items() if job is not None}
    if not callbacks:
        raise ValueError("a batch needs on_complete, on_success or on_failure; without them it is a group")
    return Batch(steps, callbacks)


def _some(steps: Sequence[Step[Any]], kind: str) -> Sequence[Step[Any]]:
    if not steps:
        raise ValueError(f"a {kind} needs at least one step")
    for step in steps:
        _check_step(step, kind)
    return steps


def _check_step(step: Any, kind: str) -> None:
    if not isinstance(step, Flow):
        a_job(step, f"a step of a {kind} is a job, as send_email.job(…) makes it, or a workflow")


def _wire(step: Step[Any]) -> dict[str, Any]:
    return step.wire() if isinstance(step, Flow) else step.template()


async def _prepared(step: Step[Any], hooks: ClientHooks) -> Step[Any]:
    return await step.prepared(hooks) if isinstance(step, Flow) else await hooks.prepared(step)


def _read(step: Step[Any], told: WorkflowStep, results: Results) -> Any:
    if isinstance(step, Flow):
        if len(told.steps) < (told.steps_total or told.jobs_total or 0):
            raise OjsError("the workflow has more steps nested in it than one answer has: read the results of its jobs")
        return step.read(told.steps, results)
    return None if told.state != "completed" else results.read(told.job_id or told.id, told.result, step.returns)
