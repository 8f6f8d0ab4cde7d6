"""Operations on workflows: start, read, wait, cancel and retry (docs/workflows.md)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from typing import Any, Final, Generic, TypeVar

import msgspec

from ojs_api import words
from ojs_api.workflows import (
    CANCEL,
    CREATE,
    GET,
    LIST,
    MAX_STEPS,
    PROGRESS,
    RETRY,
    CancelledWorkflow,
    Workflow,
    WorkflowHead,
    WorkflowProgress,
    WorkflowStep,
)
from ojs_nats import _deprecated, _flows
from ojs_nats._checks import misplaced
from ojs_nats._durations import Duration
from ojs_nats._hooks import ClientHooks
from ojs_nats._ids import new_id
from ojs_nats._loops import limit
from ojs_nats._operations import Request
from ojs_nats._options import checked, wire
from ojs_nats._results import Ask, Results
from ojs_nats._transport import Transport
from ojs_nats.errors import DuplicateError, RefusedError, WaitTimeoutError, WorkflowCancelled, WorkflowFailed
from ojs_nats.jobs import Job
from ojs_nats.operations._subject import Subject, body, parameters
from ojs_nats.operations.events import Events
from ojs_nats.operations.jobs import Jobs
from ojs_nats.options import Options
from ojs_nats.workflows import Flow

__all__ = ["WorkflowHandle", "Workflows"]

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

_ENDS: Final = ("workflow.completed", "workflow.failed", "workflow.cancelled")


class Workflows(Subject):
    """The operations on workflows, as `client.workflows`. Those on one workflow raise NotFoundError if it doesn't
    exist.

    Example:
        ```python
        handle = await client.workflows.start(chain(fetch.job(url), publish.job()))
        print(await handle.result("1m"))
        ```
    """

    def __init__(self, transport: Transport, events: Events, jobs: Jobs, hooks: ClientHooks) -> None:
        super().__init__(transport)
        self._hooks = hooks
        self._events = events
        self._jobs = jobs

    async def start(self, flow: Flow[R], *, id: str | None = None, defaults: Options | None = None) -> WorkflowHandle[R]:
        """Start a workflow. Its first jobs are in their queues when this returns.

        Args:
            flow: The workflow, as `chain(…)`, `group(…)`, `batch(…)` or a `Dag`.
            id: A UUIDv7. If a workflow of this id exists already, its handle is returned. None makes a new id.
            defaults: Options for all jobs of the workflow that don't have them.

        Returns:
            A handle of the workflow: `await handle.result()` waits for its end.

        Raises:
            TypeError: `flow` isn't a workflow.
            InvalidRequestError: The workflow can't run. The message names the place.
            DuplicateError, QueueFullError, QueueClosedError: A job was refused, as by `Client.push`.
        """
        if not isinstance(flow, Flow):
            raise misplaced(flow, "what is started is a workflow, as chain(a.job(), b.job()) or a Dag")
        known = id or new_id()
        told = _flows.wire(await _flows.prepared(flow, self._hooks))
        asked = told | {"id": known} | body(options=wire(checked(defaults, "defaults")) if defaults else None)
        try:
            await self._transport.send(Request(CREATE, body=asked))
        except DuplicateError as error:
            if error.details.get("existing_workflow_id") != known:
                raise
        return WorkflowHandle(self, known, flow, results=lambda: Results(self._hooks), ask=self._jobs.result)

    def list(self, *, state: words.WorkflowState | None = None, limit: int | None = None) -> AsyncIterator[WorkflowHead]:
        """List workflows without their steps, the newest first.

        Args:
            state: The state. None means all states.
            limit: How many at most. None means all.
        """
        return self._each(WorkflowHead, "workflows", LIST, limit, parameters(state=state))

    async def get(self, workflow_id: str) -> Workflow:
        """Return a workflow with all of its own steps, and up to 1,000 steps nested in them.

        Raises:
            NotFoundError: There is no such workflow.
        """
        found = await self._page(workflow_id, 0)
        steps = found.steps
        while (page := found.steps_pagination) is not None and page.has_more:
            found = await self._page(workflow_id, page.offset + page.limit)
            steps = steps + found.steps
        return msgspec.structs.replace(found, steps=steps, steps_pagination=None)

    async def progress(self, workflow_id: str) -> WorkflowProgress:
        """Return how far a workflow is, without its steps' results.

        Raises:
            NotFoundError: There is no such workflow.
        """
        return await self._asked(WorkflowProgress, Request(PROGRESS, {"workflow_id": workflow_id}), "workflow")

    async def cancel(self, workflow_id: str) -> CancelledWorkflow:
        """Cancel a workflow. Jobs that wait are cancelled, active ones may end.

        Raises:
            NotFoundError: There is no such workflow.
            ConflictError: The workflow has ended.
        """
        return await self._asked(CancelledWorkflow, Request(CANCEL, {"workflow_id": workflow_id}), "workflow")

    async def retry(self, workflow_id: str) -> Workflow:
        """Let a workflow go on where it failed or was cancelled.

        Raises:
            NotFoundError: There is no such workflow.
            ConflictError: The workflow is in another state.
        """
        return await self._asked(Workflow, Request(RETRY, {"workflow_id": workflow_id}, repeatable=False), "workflow")

    async def wait(self, workflow_id: str, timeout: Duration | None = None) -> Workflow:
        """Wait for a workflow's end, and return the workflow. It listens to events, and doesn't poll.

        Args:
            workflow_id: The workflow's id.
            timeout: How long to wait, in seconds or as `"1m"`. None waits without a limit.

        Raises:
            NotFoundError: There is no such workflow.
            WaitTimeoutError: The workflow hadn't ended after `timeout`.
        """
        try:
            async with limit(timeout):
                after = await self._events.cursor()
                while (await self.progress(workflow_id)).state == "running":
                    after = await self._after_an_end(workflow_id, after)
        except TimeoutError:
            raise WaitTimeoutError(f"workflow {workflow_id} hadn't ended after {timeout}") from None
        return await self.get(workflow_id)

    async def jobs(self, workflow_id: str) -> AsyncIterator[Job]:
        """List the jobs that a workflow has pushed so far, in the order of its steps.

        Raises:
            NotFoundError: There is no such workflow.
        """
        found = await self.get(workflow_id)
        for step in _leaves([*found.steps, *found.callbacks.values()]):
            if step.job_id is not None:
                try:
                    yield await self._jobs.get(step.job_id)
                except RefusedError as error:
                    if error.code != "not_found":  # it has left before its workflow
                        raise

    async def _after_an_end(self, workflow_id: str, after: str) -> str:
        """Until it, or a workflow nested in it, has ended, or it was listened for long enough. The cursor behind that."""
        try:
            async with asyncio.timeout(self._transport.timings.listen_s):
                async with aclosing(self._events(types=_ENDS, workflow_id=workflow_id, after=after)) as events:
                    async for event in events:
                        return event.cursor
        except TimeoutError:
            pass
        return after

    async def _page(self, workflow_id: str, offset: int) -> Workflow:
        asked = {"workflow_id": workflow_id, **parameters(offset=offset, limit=MAX_STEPS)}
        return await self._asked(Workflow, Request(GET, asked), "workflow")


class WorkflowHandle(Generic[R_co]):
    """A handle of a started workflow. `client.workflows.start` returns one.

    Attributes:
        id: The workflow's id.
    """

    def __init__(
        self, workflows: Workflows, workflow_id: str, flow: Flow[R_co], *, results: Callable[[], Results], ask: Ask
    ) -> None:
        self._workflows = workflows
        self.id = workflow_id
        self._flow = flow
        self._results = results
        self._ask = ask

    def __repr__(self) -> str:
        return f"WorkflowHandle({self.id})"

    async def state(self) -> str:
        """Return the workflow's state: `running`, `completed`, `failed` or `cancelled`."""
        return (await self.progress()).state

    async def progress(self) -> WorkflowProgress:
        """Return how far the workflow is."""
        return await self._workflows.progress(self.id)

    async def cancel(self) -> CancelledWorkflow:
        """Cancel the workflow. Jobs that wait are cancelled, active ones may end.

        Raises:
            ConflictError: The workflow has ended.
        """
        return await self._workflows.cancel(self.id)

    async def retry(self) -> Workflow:
        """Let the workflow go on where it failed or was cancelled.

        Raises:
            ConflictError: The workflow is in another state.
        """
        return await self._workflows.retry(self.id)

    def jobs(self) -> AsyncIterator[Job]:
        """List the jobs that the workflow has pushed so far, in the order of its steps."""
        return self._workflows.jobs(self.id)

    async def result(self, timeout: Duration | None = None) -> R_co:
        """Wait for the workflow's end, and return its result.

        Args:
            timeout: How long to wait, in seconds or as `"1m"`. None waits without a limit.

        Returns:
            For a chain the result of its last step, for a group or batch the list of its steps' results, for a `Dag` a
            dict of its steps' results by id.

        Raises:
            WorkflowFailed: The workflow has failed.
            WorkflowCancelled: The workflow was cancelled.
            WaitTimeoutError: The workflow hadn't ended after `timeout`.
            ResultGone: The result of a step isn't kept any more.
            OjsError: A result isn't of the type that its definition's hint says.
        """
        found = await self._workflows.wait(self.id, timeout)
        if found.state == "cancelled":
            raise WorkflowCancelled(f"workflow {self.id} has been cancelled")
        if found.state != "completed":
            said = f": {found.errors[0].message}" if found.errors else ""
            raise WorkflowFailed(f"workflow {self.id} has failed{said}", found.errors)
        results = self._results()
        read: R_co = _flows.read(self._flow, found.steps, results)
        await results.settled(self._ask)
        return read


def _leaves(steps: Sequence[WorkflowStep]) -> Sequence[WorkflowStep]:
    """The steps that are jobs, nested ones in their place."""
    found: list[Any] = []
    for step in steps:
        inner = [*step.steps, *step.callbacks.values()]
        found += _leaves(inner) if inner else [step]
    return found


_deprecated.methods(Workflows, ended="wait")
