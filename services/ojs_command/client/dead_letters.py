"""`ojs-nats dead-letter`."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from ojs_command.client.arguments import ago, duration, positive
from ojs_command.client.jobs.get import tell_job
from ojs_command.client.jobs.listing import COLUMNS, row
from ojs_command.client.parser import CommandParser, add_action, add_actions
from ojs_command.client.problems import CommandFailed, UsageProblem
from ojs_command.client.session import Session
from ojs_engine.base.wording import counted
from ojs_nats.errors import RefusedError
from ojs_nats.models.dead_letters import DeletedDeadLetters, RetriedDeadLetters
from ojs_nats.models.jobs import SkippedJob
from ojs_nats.operations.dead_letters import DeadLetterFilter


class Done(msgspec.Struct, frozen=True):
    """How many were retried or deleted, and the others with why."""

    done: int
    skipped: list[SkippedJob]


def define(parser: CommandParser) -> None:
    actions = parser.actions("list")
    listed = add_action(
        actions, "list", "list dead letters, the latest first", _list, examples=(
            "  ojs-nats dead-letter\n  ojs-nats dead-letter --queue email --error-type SMTPError --since 1d\n"
        ),
    )  # fmt: skip
    listed.add_argument("--limit", type=positive, default=50, metavar="N", help="at most so many [50]")
    add_actions(actions, "ID", "ID", ("get", "show one", _get))
    retry = add_action(
        actions, "retry", "give them a new life", _retry, examples=(
            "  ojs-nats dead-letter retry ID\n  ojs-nats dead-letter retry --queue email --since 1h\n"
        ),
    )  # fmt: skip
    delete = add_action(actions, "delete", "remove single ones", _delete, examples="  ojs-nats dead-letter delete ID ID\n")
    purge = add_action(
        actions, "purge", "remove all, or all that fit", _purge, examples=(
            "  ojs-nats dead-letter purge --older-than 30d                   asks first\n"
            "  ojs-nats dead-letter purge --queue email --yes\n"
        ),
    )  # fmt: skip
    retry.add_argument("ids", nargs="*", metavar="ID")
    delete.add_argument("ids", nargs="+", metavar="ID")
    for one in (listed, retry, purge):
        one.add_argument("--queue", metavar="NAME")
        one.add_argument("--type", metavar="TYPE")
        one.add_argument("--error-type", metavar="NAME")
        one.add_argument("--since", type=ago, metavar="WHEN", help="failed since then: 1h, or 2026-11-24T08:00Z")
        one.add_argument("--until", type=ago, metavar="WHEN", help="failed until then")
    for one in (retry, purge):
        one.add_argument("--older-than", type=duration, metavar="TIME")
        one.add_argument("--yes", action="store_true", help="don't ask")


async def _list(session: Session, given: argparse.Namespace) -> None:
    found = session.client.dead_letters.list(**_asked(given), limit=given.limit)
    session.out.listed([job async for job in found], COLUMNS, row, empty="No dead letters fit that.")


async def _get(session: Session, given: argparse.Namespace) -> None:
    tell_job(session, await session.client.dead_letters.get(given.id))


async def _retry(session: Session, given: argparse.Namespace) -> None:
    which = _filter(given)
    if bool(given.ids) == (which != DeadLetterFilter()):
        raise UsageProblem("Name the dead letters to retry: by their ids, or by options such as --queue and --since, not both.")
    letters = session.client.dead_letters
    if given.ids:
        done = await _each(session, given.ids, letters.retry, "retrying")
    else:
        there = await _count(session, which)
        session.confirm(f"Retry the dead letters of {session.target.shown} that fit{there}?", confirmed=given.yes)

        async def some() -> tuple[int, RetriedDeadLetters]:
            answer = await letters.retry_all(which)
            return answer.retried, answer

        done = await _all(session, some, "retrying")
    _tell(session, done, "retried")


async def _delete(session: Session, given: argparse.Namespace) -> None:
    _tell(session, await _each(session, given.ids, session.client.dead_letters.delete, "deleting"), "deleted")


async def _purge(session: Session, given: argparse.Namespace) -> None:
    which = _filter(given)
    fit = f" that fit{await _count(session, which)}" if which != DeadLetterFilter() else ""
    session.confirm(f"Delete all dead letters of {session.target.shown}{fit}?", confirmed=given.yes)

    async def some() -> tuple[int, DeletedDeadLetters]:
        answer = await session.client.dead_letters.purge(which)
        return answer.deleted, answer

    _tell(session, await _all(session, some, "deleting"), "deleted")


def _filter(given: argparse.Namespace) -> DeadLetterFilter:
    return DeadLetterFilter(**_asked(given), older_than=given.older_than)


def _asked(given: argparse.Namespace) -> dict[str, Any]:
    """Return the filters that all take."""
    return {name: getattr(given, name) for name in ("queue", "type", "error_type", "since", "until")}


async def _count(session: Session, which: DeadLetterFilter) -> str:
    """How many there are in its queue, to judge by."""
    total = (await session.client.dead_letters.stats(which.queue)).total
    where = f"queue {which.queue}" if which.queue else "all queues"
    return f" (there are {total:,} in {where})"


async def _each(session: Session, ids: list[str], change: Callable[[str], Awaitable[object]], what: str) -> Done:
    done, skipped = 0, []
    with session.out.progress(what, len(ids)) as bar:
        for job_id in ids:
            try:
                await change(job_id)
                done += 1
            except RefusedError as refusal:
                skipped.append(SkippedJob(job_id=job_id, error=str(refusal)))
            bar.by(1)
    return Done(done, skipped)


async def _all(
    session: Session, some: Callable[[], Awaitable[tuple[int, RetriedDeadLetters | DeletedDeadLetters]]], what: str
) -> Done:
    """Until none is left, or none of those that are can be changed."""
    total, skipped = 0, []
    with session.out.progress(what, None) as bar:
        while True:
            done, answer = await some()
            total += done
            skipped = answer.errors
            bar.by(done)
            if not (done and answer.remaining):
                return Done(total, skipped)


def _tell(session: Session, done: Done, word: str) -> None:
    for one in [] if session.out.as_json else done.skipped:
        session.out.note(f"{one.job_id}: {one.error}")
    session.out.done(f"{counted(done.done, 'dead letter')} {word}.", done)
    if done.skipped:
        raise CommandFailed(f"Left as they are: {counted(len(done.skipped), 'dead letter')}.")
