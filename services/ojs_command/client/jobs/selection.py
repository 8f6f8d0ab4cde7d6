"""Changing many jobs: those that are named, or all that fit."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from ojs_command.client.arguments import STATES, duration, member, words
from ojs_command.client.parser import CommandParser
from ojs_command.client.problems import CommandFailed, UsageProblem
from ojs_command.client.session import Session
from ojs_engine.base.wording import counted
from ojs_nats.models.jobs import ChangedItem, ChangedSelection
from ojs_nats.operations.jobs import JobFilter

_AT_ONCE: Final = 500
"""Jobs in a request."""
_TOLD: Final = 20
"""Jobs that couldn't be changed and are told of one by one."""

Change = Callable[..., Awaitable[ChangedSelection]]
"""As `cancel_many` of the client."""
ChangeNamed = Callable[[list[str]], Awaitable[list[ChangedItem]]]
"""What became of those with these ids."""


class Changed(msgspec.Struct, frozen=True):
    """What became of them: those that were changed, and the others with why."""

    changed: list[str]
    skipped: list[ChangedItem]


def add_selection(parser: CommandParser, what: str) -> None:
    """Arguments that name jobs."""
    parser.add_argument("ids", nargs="*", metavar="ID", help="of jobs")
    group = parser.add_argument_group(f"instead of ids, {what} all that fit")
    group.add_argument("--queue", metavar="NAME")
    group.add_argument("--type", metavar="TYPE", help="may end in '*'")
    group.add_argument("--state", type=words, default=[], metavar="STATES", help=f"by commas: {', '.join(STATES)}")
    group.add_argument("--meta", action="append", type=member, default=[], metavar="NAME=VALUE", help="again for more")
    group.add_argument("--older-than", type=duration, metavar="TIME", help="enqueued longer ago than that")
    group.add_argument("--yes", action="store_true", help="don't ask")


async def change_selection(
    session: Session, given: argparse.Namespace, named: ChangeNamed, fitting: Change, word: str, done: str
) -> None:
    """Change those that are named, or are fitting, and tell of it; `word` and `done` are the verb: "cancel", "cancelled"."""
    which = JobFilter(
        type=given.type, queue=given.queue, states=tuple(given.state), older_than=given.older_than, meta=dict(given.meta)
    )
    fits = which != JobFilter()
    if bool(given.ids) == fits:
        raise UsageProblem(f"Name the jobs to {word}: by their ids, or by options such as --queue and --type, not both.")
    if strange := [state for state in given.state if state not in STATES]:
        raise UsageProblem(f"--state: {strange[0]!r} is none of {', '.join(STATES)}.")
    if fits:
        changed = await _all_that_fit(session, which, fitting, word, confirmed=given.yes)
    else:
        changed = await _named(session, given.ids, named, word)
    _tell(session, changed, done)


async def _named(session: Session, ids: list[str], change: ChangeNamed, word: str) -> Changed:
    changed = Changed([], [])
    with session.out.progress(word, len(ids)) as bar:
        for first in range(0, len(ids), _AT_ONCE):
            some = ids[first : first + _AT_ONCE]
            _add(changed, await change(some))
            bar.by(len(some))
    return changed


async def _all_that_fit(session: Session, which: JobFilter, change: Change, word: str, *, confirmed: bool) -> Changed:
    first = await change(which, confirm=True, dry_run=True, limit=1)
    there = first.total_matched + (first.remaining or 0)
    changed = Changed([], [])
    if not there:
        return changed
    session.confirm(f"{word.capitalize()} {counted(there, 'job')} of {session.target.shown}?", confirmed=confirmed)
    with session.out.progress(word, there) as bar:
        cursor: str | None = None
        while True:
            answer = await change(which, confirm=True, limit=_AT_ONCE, cursor=cursor)
            _add(changed, answer.items)
            bar.by(len(answer.items))
            cursor = answer.next_cursor
            if cursor is None:
                return changed


def _add(changed: Changed, items: list[ChangedItem]) -> None:
    for item in items:
        if item.error is None and item.reason is None:
            changed.changed.append(item.job_id)
        else:
            changed.skipped.append(item)


def _tell(session: Session, changed: Changed, done: str) -> None:
    if session.out.as_json:
        session.out.json(changed)
    else:
        for item in changed.skipped[:_TOLD]:
            session.out.note(f"{item.job_id}: {_why(item)}")
        if len(changed.skipped) > _TOLD:
            session.out.note(f"… and {len(changed.skipped) - _TOLD:,} more")
        session.out.text(f"{counted(len(changed.changed), 'job')} {done}.")
    if changed.skipped:
        raise CommandFailed(f"Left as they are: {counted(len(changed.skipped), 'job')}.")


def _why(item: ChangedItem) -> Any:
    return item.error.message if item.error else item.reason
