"""`ojs-nats workers`."""

from __future__ import annotations

import argparse
from typing import Final, get_args

from ojs_api import words
from ojs_command.client.arguments import positive
from ojs_command.client.output import at
from ojs_command.client.parser import CommandParser, add_action, add_actions
from ojs_command.client.problems import UsageProblem
from ojs_command.client.session import Session
from ojs_engine.base.wording import counted
from ojs_nats.models.workers import Worker
from ojs_nats.operations.workers import Directive

WORKER_COLUMNS: Final = ("worker", "state", "jobs", "queues", "host", "pid", "last heartbeat")
_STATES: Final = get_args(words.WorkerState)


def define(parser: CommandParser) -> None:
    actions = parser.actions("list")
    listed = add_action(
        actions, "list", "list workers", _list, examples="  ojs-nats workers\n  ojs-nats workers --state stale\n"
    )
    listed.add_argument("--state", choices=_STATES)
    listed.add_argument("--limit", type=positive, metavar="N", help="at most so many")
    add_actions(actions, "WORKER", "ID", ("get", "show one worker and the jobs that it holds", _get))
    told: tuple[tuple[str, str, Directive], ...] = (
        ("quiet", "have a worker fetch no more, and go on with what it runs", "quiet"),
        ("resume", "have it fetch again", "running"),
        ("terminate", "have it end once its jobs have, or its grace period is over", "terminate"),
    )
    for name, purpose, directive in told:
        examples = f"  ojs-nats workers {name} WORKER\n  ojs-nats workers {name} --all\n"
        action = add_action(actions, name, purpose, _direct, examples=f"{examples}\nIt hears of it with its next heartbeat.\n")
        action.add_argument("workers", nargs="*", metavar="WORKER")
        action.add_argument("--all", action="store_true", help="all that are there now")
        action.add_argument("--yes", action="store_true", help="don't ask about all")
        action.set_defaults(directive=directive)


async def _list(session: Session, given: argparse.Namespace) -> None:
    found = [worker async for worker in session.client.workers.list(state=given.state, limit=given.limit)]
    session.out.listed(found, WORKER_COLUMNS, worker_row, empty="No workers: start one with 'ojs-nats worker MODULE'.")


def worker_row(worker: Worker) -> tuple[object, ...]:
    """Of the table; a worker that was told something it hasn't done yet shows that, too."""
    told = {"running": "running", "quiet": "quiet", "terminate": "terminate"}.get(worker.directive)
    state = worker.state if told in (None, "running", worker.state) else f"{worker.state}, told {told}"
    jobs = f"{worker.active_jobs}/{worker.concurrency}" if worker.concurrency else worker.active_jobs
    return (worker.id, state, jobs, worker.queues, worker.hostname, worker.pid, worker.last_heartbeat_at)


async def _get(session: Session, given: argparse.Namespace) -> None:
    worker = await session.client.workers.get(given.worker)
    if session.out.as_json:
        session.out.json(worker)
        return
    session.out.members(
        [
            ("worker", worker.id),
            ("state", worker.state),
            ("told", worker.directive),
            ("host", worker.hostname),
            ("pid", worker.pid),
            ("queues", worker.queues),
            ("concurrency", worker.concurrency),
            ("handlers", [f"{one.type} {one.versions}" for one in worker.handlers] or None),
            ("started", worker.started_at),
            ("last heartbeat", at(worker.last_heartbeat_at)),
        ]
    )
    session.out.heading("Jobs")
    jobs = [(job.id, job.type, job.queue, job.attempt, job.started_at) for job in worker.jobs]
    session.out.table(("id", "type", "queue", "attempt", "started"), jobs, empty="It holds none.")


async def _direct(session: Session, given: argparse.Namespace) -> None:
    if given.all == bool(given.workers):
        raise UsageProblem(f"Name workers to {given.action}, or --all.")
    if given.all:
        session.confirm(f"{given.action.capitalize()} all workers of {session.target.shown}?", confirmed=given.yes)
        answer = await session.client.workers.send_directive_to_all(given.directive)
        session.out.done(f"Told {counted(answer.workers, 'worker')} to {given.action}.", answer)
        return
    told = [await session.client.workers.send_directive(worker, given.directive) for worker in given.workers]
    session.out.done(f"Told {counted(len(told), 'worker')} to {given.action}.", told)
