"""Workflows as they are sent, and their results."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec

from ojs_nats._hooks import ClientHooks
from ojs_nats._requests import template
from ojs_nats._results import Results
from ojs_nats.errors import OjsError
from ojs_nats.jobs import JobRequest
from ojs_nats.models.workflows import WorkflowStep
from ojs_nats.workflows import Batch, Chain, Dag, Flow, Group, Node, Step

R = TypeVar("R")


def wire(flow: Flow[Any]) -> dict[str, Any]:
    """Return a workflow as it is sent.

    Raises:
        TypeError: It isn't one of the package's workflows.
        ValueError: It has no steps.
    """
    named = {"name": flow.name} if flow.name else {}
    match flow:
        case Chain():
            return {"type": "chain", "steps": [_wire(step) for step in flow.steps], **named}
        case Batch():
            called = {name: template(job) for name, job in flow.callbacks.items()}
            return {"type": "batch", "jobs": [_wire(step) for step in flow.steps], "callbacks": called, **named}
        case Group():
            return {"type": "group", "jobs": [_wire(step) for step in flow.steps], **named}
        case Dag() if flow.nodes:
            return {"steps": [_node(node) for node in flow.nodes.values()], **named}
        case Dag():
            raise ValueError("a dag needs at least one step")
        case _:
            raise _strange(flow)


async def prepared(flow: Flow[R], hooks: ClientHooks) -> Flow[R]:
    """Return a workflow after its jobs have gone through the app's enqueue middleware."""
    changed = copy.copy(flow)
    match changed:
        case Chain() | Group():
            changed.steps = [await _prepared(step, hooks) for step in changed.steps]
        case Dag():
            changed.nodes = {
                name: msgspec.structs.replace(node, step=await _prepared(node.step, hooks))
                for name, node in changed.nodes.items()
            }
        case _:
            raise _strange(flow)
    if isinstance(changed, Batch):
        changed.callbacks = {name: await hooks.prepared(job) for name, job in changed.callbacks.items()}
    return changed


def read(flow: Flow[Any], steps: Sequence[WorkflowStep], results: Results) -> Any:
    """Return the result of a workflow.

    Args:
        flow: The workflow.
        steps: Its steps as the server has them, all of which have ended.
        results: The reader of the steps' results.
    """
    match flow:
        case Chain():
            return _read(flow.steps[-1], steps[-1], results)
        case Group():
            return [_read(step, found, results) for step, found in zip(flow.steps, steps, strict=True)]
        case Dag():
            by_id = {step.id: step for step in steps}
            return {name: _read(node.step, by_id[name], results) for name, node in flow.nodes.items() if node.when is None}
        case _:
            raise _strange(flow)


def _node(node: Node) -> dict[str, Any]:
    sent = _wire(node.step) | {"id": node.id}
    if node.after:
        sent["depends_on"] = [*node.after]
    if node.when is not None:
        sent["options"] = sent["options"] | {"callback_type": f"on_{node.when}"}
    return sent


def _wire(step: Step[Any]) -> dict[str, Any]:
    return wire(step) if isinstance(step, Flow) else template(step)


async def _prepared(step: Step[Any], hooks: ClientHooks) -> JobRequest[Any] | Flow[Any]:
    return await prepared(step, hooks) if isinstance(step, Flow) else await hooks.prepared(step)


def _read(step: Step[Any], ended: WorkflowStep, results: Results) -> Any:
    if isinstance(step, Flow):
        if len(ended.steps) < (ended.steps_total or ended.jobs_total or 0):
            raise OjsError("the workflow has more steps nested in it than one answer has: read the results of its jobs")
        return read(step, ended.steps, results)
    return None if ended.state != "completed" else results.read(ended.job_id or ended.id, ended.result, step.returns)


def _strange(flow: Flow[Any]) -> TypeError:
    return TypeError(f"a workflow is a chain, group, batch or Dag, not {type(flow).__name__}")
