"""Workflows: `chain(fetch.job(url), group(resize.job(1), resize.job(2)), publish.job())` (docs/workflows.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Literal, Self, TypeVar, overload

import msgspec

from ojs_nats._requests import check_is_job
from ojs_nats.jobs import JobRequest

__all__ = ["Batch", "Chain", "Dag", "Flow", "Group", "Node", "Step", "When", "batch", "chain", "group"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

When = Literal["complete", "success", "failure"]


class Flow(Generic[R_co]):
    """A workflow to start, or a step of another workflow. `R` is the type of its result.

    Attributes:
        name: The name that lists and the dashboard show. "" if it has none.
    """

    name: str = ""

    def named(self, name: str) -> Self:
        """Give the workflow a name, for lists and the dashboard, and return it."""
        self.name = name
        return self


Step = JobRequest[R] | Flow[R]
"""The steps of workflows: a job, as `a.job(1)` makes it, or a workflow."""


class Chain(Flow[R_co]):
    """A workflow whose steps run one after the other. Its result is that of the last step. `chain(…)` makes one.

    Attributes:
        steps: The steps, in order.
    """

    def __init__(self, steps: Sequence[Step[Any]]) -> None:
        self.steps = _some(steps, "chain")


class Group(Flow[list[R]]):
    """A workflow whose steps run at once. Its result is the list of theirs, in order. `group(…)` makes one.

    Attributes:
        steps: The steps, in the order of their results.
    """

    def __init__(self, steps: Sequence[Step[R]]) -> None:
        self.steps = _some(steps, "group")


class Batch(Group[R | None]):
    """A group with callbacks: jobs that run after its steps. The result of a step that failed is None. `batch(…)` makes
    one.

    Attributes:
        steps: The steps, in the order of their results.
        callbacks: The jobs that run after them, by `"on_complete"`, `"on_success"` or `"on_failure"`.
    """

    def __init__(self, steps: Sequence[Step[R | None]], callbacks: dict[str, JobRequest[Any]]) -> None:
        super().__init__(steps)
        for name, job in callbacks.items():
            check_is_job(job, f"{name} is a job, as send_email.job(…) makes it")
        self.callbacks = callbacks


class Node(msgspec.Struct, frozen=True):
    """A step of a `Dag`, to name in `after=` of later steps.

    Attributes:
        id: The id of the step.
        step: The job or workflow.
        after: The ids of the steps before it.
        when: When it is called back. None if it isn't a callback.
    """

    id: str
    step: Step[Any]
    after: tuple[str, ...] = ()
    when: When | None = None


class Dag(Flow[dict[str, Any]]):
    """A workflow whose steps run when the steps before them have completed. Its result is a dict of theirs, by step id.

    Args:
        name: The name that lists and the dashboard show.

    Attributes:
        nodes: The steps by their ids, in the order in which they were added.

    Example:
        >>> from ojs_nats.jobs import JobRequest
        >>> flow = Dag("report")
        >>> pages = [flow.add(JobRequest("page.fetch", (url,))) for url in ("/a", "/b")]
        >>> report = flow.add(JobRequest("page.summarise"), after=pages, id="report")
        >>> flow.add(JobRequest("page.alert"), after=[report], when="failure").id
        '3'
    """

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.nodes: dict[str, Node] = {}

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
        known = id or str(len(self.nodes))
        if known in self.nodes:
            raise ValueError(f"there is a step {known!r} already")
        if strange := [node.id for node in after if node.id not in self.nodes]:
            raise ValueError(f"{strange[0]!r} is no step of this workflow")
        if when is not None and isinstance(step, Flow):
            raise ValueError("what is called back must be a job, not a workflow")
        node = self.nodes[known] = Node(known, step, tuple(each.id for each in after), when)
        return node


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
        >>> [step.type for step in flow.steps]
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
        check_is_job(step, f"a step of a {kind} is a job, as send_email.job(…) makes it, or a workflow")
