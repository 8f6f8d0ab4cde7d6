"""Workflows: start, read, wait, cancel, retry (docs/workflows.md)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Final, Generic, Literal, TypeVar

import msgspec

from ojs_nats import _deprecated
from ojs_nats._checks import misplaced
from ojs_nats._durations import Duration, milliseconds
from ojs_nats._hooks import ClientHooks
from ojs_nats._ids import new_id
from ojs_nats._operations import Operation, Request
from ojs_nats._results import Results
from ojs_nats._transport import Transport
from ojs_nats.errors import DuplicateError, RefusedError, WaitTimeoutError, WorkflowCancelled, WorkflowFailed
from ojs_nats.jobs import Job
from ojs_nats.models.workflows import CancelledWorkflow, Workflow, WorkflowHead, WorkflowProgress, WorkflowStep
from ojs_nats.operations.events import Events
from ojs_nats.operations.jobs import Jobs
from ojs_nats.operations.subject import Subject, body, parameters
from ojs_nats.options import Options, checked, wire
from ojs_nats.workflows import Flow

R = TypeVar("R")

_CREATE: Final = Operation("createWorkflow", "POST", "/workflows")
_LIST: Final = Operation("listWorkflows", "GET", "/workflows")
_GET: Final = Operation("getWorkflow", "GET", "/workflows/{workflow_id}")
_PROGRESS: Final = Operation("getWorkflowProgress", "GET", "/workflows/{workflow_id}/progress")
_CANCEL: Final = Operation("cancelWorkflow", "DELETE", "/workflows/{workflow_id}")
_RETRY: Final = Operation("retryWorkflow", "POST", "/workflows/{workflow_id}/retry")

_STEPS: Final = 1_000
"""The most that one answer has."""
_LISTEN_S: Final = 30.0
"""How long a workflow's end is listened for before it is looked at again."""
_ENDS: Final = ("workflow.completed", "workflow.failed", "workflow.cancelled")


class Workflows(Subject):
    """`client.workflows`. What is about one workflow raises NotFoundError."""

    def __init__(self, transport: Transport, events: Events, jobs: Jobs, hooks: ClientHooks) -> None:
        super().__init__(transport)
        self.hooks = hooks
        self._events = events
        self._jobs = jobs
        self.result_of = jobs.result

    async def start(self, flow: Flow[R], *, id: str | None = None, defaults: Options | None = None) -> WorkflowHandle[R]:
        """Its first jobs are in their queues when this returns. `defaults` are options of all its jobs that say nothing else.

        `id`, a UUIDv7, is made here unless you give one, so that a start that wasn't answered can be repeated: one that is
        there already is what you get. Raises InvalidRequestError for what can't run, naming the place; DuplicateError,
        QueueFullError and QueueClosedError as a push of its jobs.
        """
        if not isinstance(flow, Flow):
            raise misplaced(flow, "what is started is a workflow, as chain(a.job(), b.job()) or a Dag")
        known = id or new_id()
        told = (await flow.prepared(self.hooks)).wire()
        asked = told | {"id": known} | body(options=wire(checked(defaults, "defaults")) if defaults else None)
        try:
            await self._transport.send(Request(_CREATE, body=asked))
        except DuplicateError as error:
            if error.details.get("existing_workflow_id") != known:
                raise
        return WorkflowHandle(self, known, flow)

    def list(
        self, *, state: Literal["running", "completed", "failed", "cancelled"] | None = None, limit: int | None = None
    ) -> AsyncIterator[WorkflowHead]:
        """The newest first, without their steps."""
        return self._each(WorkflowHead, "workflows", _LIST, limit, parameters(state=state))

    async def get(self, workflow_id: str) -> Workflow:
        """With all of its direct steps, and those nested in them as far as 1,000 together go."""
        found = await self._page(workflow_id, 0)
        steps = found.steps
        while (page := found.steps_pagination) is not None and page.has_more:
            found = await self._page(workflow_id, page.offset + page.limit)
            steps = steps + found.steps
        return msgspec.structs.replace(found, steps=steps, steps_pagination=None)

    async def progress(self, workflow_id: str) -> WorkflowProgress:
        """Numbers alone."""
        return await self._asked(WorkflowProgress, Request(_PROGRESS, {"workflow_id": workflow_id}), "workflow")

    async def cancel(self, workflow_id: str) -> CancelledWorkflow:
        """Jobs that wait are cancelled, active ones may end. Raises ConflictError if it has ended."""
        return await self._asked(CancelledWorkflow, Request(_CANCEL, {"workflow_id": workflow_id}), "workflow")

    async def retry(self, workflow_id: str) -> Workflow:
        """Go on where it failed or was cancelled. Raises ConflictError in another state."""
        return await self._asked(Workflow, Request(_RETRY, {"workflow_id": workflow_id}, repeatable=False), "workflow")

    async def wait(self, workflow_id: str, timeout: Duration | None = None) -> Workflow:
        """Return the workflow once it has ended; its events are listened to. Raises WaitTimeoutError."""
        limit = None if timeout is None else milliseconds(timeout) / 1_000
        try:
            async with asyncio.timeout(limit):
                after = await self._events.cursor()
                while (await self.progress(workflow_id)).state == "running":
                    after = await self._after_an_end(workflow_id, after)
        except TimeoutError:
            raise WaitTimeoutError(f"workflow {workflow_id} hadn't ended after {timeout}") from None
        return await self.get(workflow_id)

    async def jobs(self, workflow_id: str) -> AsyncIterator[Job]:
        """Those that there are by now, in the order of their steps."""
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
            async with asyncio.timeout(_LISTEN_S):
                async with aclosing(self._events(types=_ENDS, workflow_id=workflow_id, after=after)) as events:
                    async for event in events:
                        return event.cursor
        except TimeoutError:
            pass
        return after

    async def _page(self, workflow_id: str, offset: int) -> Workflow:
        asked = {"workflow_id": workflow_id, **parameters(offset=offset, limit=_STEPS)}
        return await self._asked(Workflow, Request(_GET, asked), "workflow")


class WorkflowHandle(Generic[R]):
    """A workflow that was started."""

    def __init__(self, workflows: Workflows, workflow_id: str, flow: Flow[R]) -> None:
        self._workflows = workflows
        self.id = workflow_id
        self._flow = flow

    def __repr__(self) -> str:
        return f"WorkflowHandle({self.id})"

    async def state(self) -> str:
        """`running`, `completed`, `failed` or `cancelled`."""
        return (await self.progress()).state

    async def progress(self) -> WorkflowProgress:
        return await self._workflows.progress(self.id)

    async def cancel(self) -> CancelledWorkflow:
        """Raises ConflictError if it has ended."""
        return await self._workflows.cancel(self.id)

    async def retry(self) -> Workflow:
        """Go on where it failed or was cancelled. Raises ConflictError in another state."""
        return await self._workflows.retry(self.id)

    def jobs(self) -> AsyncIterator[Job]:
        """Those that there are by now, in the order of their steps."""
        return self._workflows.jobs(self.id)

    async def result(self, timeout: Duration | None = None) -> R:
        """Of a chain the last step's, of a group or batch a list, of a `Dag` those of its steps by id.

        Raises WorkflowFailed, WorkflowCancelled, WaitTimeoutError; ResultGone if one of them isn't kept any more, OjsError
        if one isn't of the type that its definition names.
        """
        found = await self._workflows.wait(self.id, timeout)
        if found.state == "cancelled":
            raise WorkflowCancelled(f"workflow {self.id} has been cancelled")
        if found.state != "completed":
            said = f": {found.errors[0].message}" if found.errors else ""
            raise WorkflowFailed(f"workflow {self.id} has failed{said}", found.errors)
        results = Results(self._workflows.hooks)
        read = self._flow.read(found.steps, results)
        await results.settled(self._workflows.result_of)
        return read


def _leaves(steps: Sequence[WorkflowStep]) -> Sequence[WorkflowStep]:
    """The steps that are jobs, nested ones in their place."""
    found: list[Any] = []
    for step in steps:
        inner = [*step.steps, *step.callbacks.values()]
        found += _leaves(inner) if inner else [step]
    return found


_deprecated.methods(Workflows, ended="wait")
