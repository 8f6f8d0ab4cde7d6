"""Workflows: `chain(fetch.job(url), group(resize.job(1), resize.job(2)), publish.job())` (docs/workflows.md)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Generic, Literal, Self, TypeVar, overload

import msgspec

from ojs_nats._hooks import ClientHooks
from ojs_nats._results import Results
from ojs_nats.errors import OjsError
from ojs_nats.jobs import JobRequest, a_job
from ojs_nats.models.workflows import WorkflowStep

__all__ = ["Batch", "Chain", "Dag", "Flow", "Group", "Node", "Step", "When", "batch", "chain", "group"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
F = TypeVar("F", bound="Flow[Any]")

When = Literal["complete", "success", "failure"]


class Flow(ABC, Generic[R_co]):
    """A workflow to start, or a step of another workflow. `R` is the type of its result.

    Attributes:
        name: The name that lists and the dashboard show. "" if it has none.
    """

    name: str = ""

    @abstractmethod
    def wire(self) -> dict[str, Any]:
        """Return the workflow as it is sent."""

    @abstractmethod
    async def prepared(self, hooks: ClientHooks) -> Flow[R_co]:
        """Return the workflow after its jobs have gone through the app's enqueue middleware."""

    @abstractmethod
    def read(self, steps: Sequence[WorkflowStep], results: Results) -> R_co:
        """Return the workflow's result.

        Args:
            steps: The steps as the server has them, all of which have ended.
            results: The reader of the steps' results.
        """

    def named(self, name: str) -> Self:
        """Give the workflow a name, for lists and the dashboard, and return it."""
        self.name = name
        return self

    def _renamed(self, copy: F) -> F:
        copy.name = self.name
        return copy

    def _said(self, members: dict[str, Any]) -> dict[str, Any]:
        return members | ({"name": self.name} if self.name else {})


Step = JobRequest[R] | Flow[R]
"""The steps of workflows: a job, as `a.job(1)` makes it, or a workflow."""


class Chain(Flow[R_co]):
    """A workflow whose steps run one after the other. Its result is that of the last step. `chain(…)` makes one."""

    def __init__(self, steps: Sequence[Step[Any]]) -> None:
        self._steps = _some(steps, "chain")

    def wire(self) -> dict[str, Any]:
        """Return the workflow as it is sent."""
        return self._said({"type": "chain", "steps": [_wire(step) for step in self._steps]})

    async def prepared(self, hooks: ClientHooks) -> Chain[R_co]:
        """Return the workflow after its jobs have gone through the app's enqueue middleware."""
        return self._renamed(Chain([await _prepared(step, hooks) for step in self._steps]))

    def read(self, steps: Sequence[WorkflowStep], results: Results) -> R_co:
        """Return the result of the last step."""
        result: R_co = _read(self._steps[-1], steps[-1], results)
        return result


class Group(Flow[list[R]]):
    """A workflow whose steps run at once. Its result is the list of theirs, in order. `group(…)` makes one."""

    def __init__(self, steps: Sequence[Step[R]]) -> None:
        self._steps = _some(steps, "group")

    def wire(self) -> dict[str, Any]:
        """Return the workflow as it is sent."""
        return self._said({"type": "group", "jobs": [_wire(step) for step in self._steps]})

    async def prepared(self, hooks: ClientHooks) -> Group[R]:
        """Return the workflow after its jobs have gone through the app's enqueue middleware."""
        return self._renamed(Group([await _prepared(step, hooks) for step in self._steps]))

    def read(self, steps: Sequence[WorkflowStep], results: Results) -> list[R]:
        """Return the results of the steps, in order."""
        return [_read(step, told, results) for step, told in zip(self._steps, steps, strict=True)]


class Batch(Group[R | None]):
    """A group with callbacks: jobs that run after its steps. The result of a step that failed is None. `batch(…)` makes
    one.
    """

    def __init__(self, steps: Sequence[Step[R | None]], callbacks: dict[str, JobRequest[Any]]) -> None:
        super().__init__(steps)
        for name, job in callbacks.items():
            a_job(job, f"{name} is a job, as send_email.job(…) makes it")
        self._callbacks = callbacks

    async def prepared(self, hooks: ClientHooks) -> Batch[R]:
        """Return the workflow after its jobs have gone through the app's enqueue middleware."""
        called = {name: await hooks.prepared(job) for name, job in self._callbacks.items()}
        return self._renamed(Batch([await _prepared(step, hooks) for step in self._steps], called))

    def wire(self) -> dict[str, Any]:
        """Return the workflow as it is sent."""
        called = {name: job.template() for name, job in self._callbacks.items()}
        return super().wire() | {"type": "batch", "callbacks": called}


class Node(msgspec.Struct, frozen=True):
    """A step of a `Dag`, to name in `after=` of later steps.

    Attributes:
        id: The id of the step.
    """

    id: str


class Dag(Flow[dict[str, Any]]):
    """A workflow whose steps run when the steps before them have completed. Its result is a dict of theirs, by step id.

    Args:
        name: The name that lists and the dashboard show.

    Example:
        >>> from ojs_nats.jobs import JobRequest
        >>> flow = Dag("report")
        >>> pages = [flow.add(JobRequest("page.fetch", (url,))) for url in ("/a", "/b")]
        >>> report = flow.add(JobRequest("page.summarise"), after=pages, id="report")
        >>> flow.add(JobRequest("page.alert"), after=[report], when="failure")
        Node(id='3')
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._steps: dict[str, Step[Any]] = {}
        self._after: dict[str, list[str]] = {}
        self._called: dict[str, When] = {}

    def add(self, step: Step[Any], *, after: Sequence[Node] = (), id: str | None = None, when: When | None = None) -> Node:
        """Add a step.

        Args:
            step: A job, as `fetch.job(url)` makes it, or a workflow.
            after: The steps that have to complete before this one runs. Without any, it runs at once.
            id: The step's id in results. None means its position, from `"0"`.
            when: Makes the step a callback, which also runs if steps in `after` fail: `"complete"` when they have all
                ended, `"success"` when they have all completed, `"failure"` when one has failed. A callback has to be a
                job.

        Returns:
            The step, for `after` of later ones.

        Raises:
            TypeError: `step` is neither a job nor a workflow.
            ValueError: The id is taken, a step in `after` belongs to another workflow, or a callback is a workflow.
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
        """Return the workflow after its jobs have gone through the app's enqueue middleware."""
        flow = Dag(self.name)
        for name, step in self._steps.items():
            after = [Node(earlier) for earlier in self._after[name]]
            flow.add(await _prepared(step, hooks), after=after, id=name, when=self._called.get(name))
        return flow

    def wire(self) -> dict[str, Any]:
        """Return the workflow as it is sent.

        Raises:
            ValueError: It has no steps.
        """
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
        """Return the results of the steps by their ids, without those of callbacks."""
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
def chain(_first: Step[Any], _second: Step[Any], _third: Step[Any], _fourth: Step[Any], /, *steps: Step[R]) -> Chain[R]: ...
def chain(*steps: Step[Any]) -> Chain[Any]:
    """Make a workflow whose steps run one after the other. It fails as soon as one step fails.

    A handler finds the results of earlier steps in `ctx.parent_results`.

    Args:
        *steps: Jobs, as `fetch.job(url)` makes them, or workflows.

    Raises:
        TypeError: A step is neither a job nor a workflow.
        ValueError: There are no steps.

    Example:
        >>> from ojs_nats.jobs import JobRequest
        >>> flow = chain(JobRequest("order.charge", (7,)), JobRequest("order.ship", (7,)))
        >>> [step["type"] for step in flow.wire()["steps"]]
        ['order.charge', 'order.ship']
    """
    return Chain(steps)


def group(*steps: Step[R]) -> Group[R]:
    """Make a workflow whose steps run at once. It ends when all have ended, and fails if one has failed.

    Args:
        *steps: Jobs, as `fetch.job(url)` makes them, or workflows.

    Raises:
        TypeError: A step is neither a job nor a workflow.
        ValueError: There are no steps.
    """
    return Group(steps)


def batch(
    *steps: Step[R],
    on_complete: JobRequest[Any] | None = None,
    on_success: JobRequest[Any] | None = None,
    on_failure: JobRequest[Any] | None = None,
) -> Batch[R]:
    """Make a workflow whose steps run at once, with jobs that run after them. It fails only if a callback fails.

    Args:
        *steps: Jobs, as `fetch.job(url)` makes them, or workflows.
        on_complete: The job that runs when all steps have ended. None means no such job.
        on_success: The job that runs when all steps have completed. None means no such job.
        on_failure: The job that runs when one step has failed. None means no such job.

    Raises:
        TypeError: A step or callback isn't a job.
        ValueError: There are no steps, or no callback.
    """
    named = {"on_complete": on_complete, "on_success": on_success, "on_failure": on_failure}
    callbacks = {name: job for name, job in named.items() if job is not None}
    if not callbacks:
        raise ValueError("a batch needs on_complete, on_success or on_failure; without them it is a group")
    return Batch(steps, callbacks)


def _some(steps: Sequence[Step[R]], kind: str) -> Sequence[Step[R]]:
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


async def _prepared(step: Step[R], hooks: ClientHooks) -> Step[R]:
    return await step.prepared(hooks) if isinstance(step, Flow) else await hooks.prepared(step)


def _read(step: Step[Any], told: WorkflowStep, results: Results) -> Any:
    if isinstance(step, Flow):
        if len(told.steps) < (told.steps_total or told.jobs_total or 0):
            raise OjsError("the workflow has more steps nested in it than one answer has: read the results of its jobs")
        return step.read(told.steps, results)
    return None if told.state != "completed" else results.read(told.job_id or told.id, told.result, step.returns)
