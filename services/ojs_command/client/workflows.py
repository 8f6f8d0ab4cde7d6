"""`ojs-nats workflows`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final, get_args

from rich.text import Text
from rich.tree import Tree

from ojs_api import words
from ojs_command.client.arguments import positive
from ojs_command.client.output import at, clean, shown
from ojs_command.client.parser import CommandParser, add_action, add_actions
from ojs_command.client.session import Session
from ojs_nats.models.workflows import Workflow, WorkflowHead, WorkflowStep

_COLUMNS: Final = ("id", "name", "type", "state", "done", "created")
_STATES: Final = get_args(words.WorkflowState)
_MARKS: Final = {"completed": "✓", "failed": "✗", "cancelled": "⊘", "running": "▶", "active": "▶"}


def define(parser: CommandParser) -> None:
    actions = parser.actions("list")
    listed = add_action(
        actions, "list", "list workflows, the newest first", _list, examples="  ojs-nats workflows --state running\n"
    )
    listed.add_argument("--state", choices=_STATES)
    listed.add_argument("--limit", type=positive, default=50, metavar="N", help="at most so many [50]")
    add_actions(
        actions, "ID", "ID",
        ("get", "show one, with its steps as a tree", _get),
        ("cancel", "cancel its jobs that wait", _cancel),
        ("retry", "go on where it failed or was cancelled", _retry),
    )  # fmt: skip


async def _list(session: Session, given: argparse.Namespace) -> None:
    found = [flow async for flow in session.client.workflows.list(state=given.state, limit=given.limit)]
    session.out.listed(found, _COLUMNS, _row, empty="No workflows fit that.")


def _row(flow: WorkflowHead) -> tuple[object, ...]:
    done, total = (flow.steps_completed, flow.steps_total) if flow.steps_total else (flow.jobs_completed, flow.jobs_total)
    return (flow.id, flow.name, flow.type, flow.state, f"{done or 0}/{total or 0}", flow.created_at)


async def _get(session: Session, given: argparse.Namespace) -> None:
    flow = await session.client.workflows.get(given.id)
    if session.out.as_json:
        session.out.json(flow)
        return
    numbers = flow.metadata
    session.out.members(
        [
            ("id", flow.id),
            ("name", flow.name),
            ("type", flow.type),
            ("state", flow.state),
            ("jobs", numbers.job_count),
            ("completed jobs", numbers.completed_count),
            ("failed jobs", numbers.failed_count or None),
            ("cancelled jobs", numbers.cancelled_count or None),
            ("retries", flow.retries or None),
            ("created", at(flow.created_at)),
            ("completed", at(flow.completed_at)),
            ("cancelled", at(flow.cancelled_at)),
        ]
    )
    session.out.text()
    session.out.tree(tree(flow))
    if flow.errors:
        session.out.heading("Errors")
        rows = [(error.step_id, error.job_id, error.attempt, error.code, error.message) for error in flow.errors]
        session.out.table(("step", "job", "attempt", "code", "message"), rows, whole=True)


def tree(flow: Workflow) -> Tree:
    """Its steps: what they are, what has become of them, and after which others they come."""
    root = Tree(Text.assemble(clean(flow.name or flow.id), " ", shown(flow.state)))
    _grow(root, flow.steps)
    for when, step in flow.callbacks.items():
        _grow(root, [step], f"{when}: ")
    return root


def _grow(node: Tree, steps: Sequence[WorkflowStep], prefix: str = "") -> None:
    for step in steps:
        label = Text.assemble(
            f"{_MARKS.get(step.state, '·')} {prefix}{clean(step.name or step.id)} {clean(step.type)} ", shown(step.state)
        )
        if step.depends_on:
            label.append(clean(f" after {', '.join(step.depends_on)}"), "dim")
        if step.job_id:
            label.append(f" {step.job_id}", "dim")
        if step.error:
            label.append(clean(f" {step.error.message}"), "red")
        below = node.add(label)
        _grow(below, step.steps)
        for when, callback in step.callbacks.items():
            _grow(below, [callback], f"{when}: ")


async def _cancel(session: Session, given: argparse.Namespace) -> None:
    answer = await session.client.workflows.cancel(given.id)
    said = f"Workflow {given.id} is cancelled: {answer.steps_cancelled} steps, {answer.steps_already_completed} had completed."
    session.out.done(said, answer)


async def _retry(session: Session, given: argparse.Namespace) -> None:
    flow = await session.client.workflows.retry(given.id)
    session.out.done(f"Workflow {given.id} is {flow.state} again.", flow)
