"""`ojs-nats queues`."""

from __future__ import annotations

import argparse
from typing import Any, Final, cast, get_args

import msgspec

from ojs_api.words import Overflow
from ojs_command.client.arguments import STATES, duration, positive, words
from ojs_command.client.output import at
from ojs_command.client.parser import CommandParser, add_action, add_actions
from ojs_command.client.problems import UsageProblem
from ojs_command.client.session import Session
from ojs_engine.base.wording import counted
from ojs_engine.base.wording import duration as in_words
from ojs_nats import Retry
from ojs_nats.errors import NotFoundError
from ojs_nats.models.queues import ConfiguredQueue, PurgedQueue, Queue, QueueSettings
from ojs_nats.models.statistics import Throughput
from ojs_nats.operations.queues import ALL_QUEUES, QueueOptions
from ojs_nats.options import Rate

QUEUE_COLUMNS: Final = (
    "queue", "status", "available", "active", "scheduled", "retryable", "done/min", "failed/min", "wait p95", "oldest",
)  # fmt: skip

_CONFIG_EXAMPLES: Final = """\
  ojs-nats queues config email                                   what counts for it
  ojs-nats queues config email --concurrency 20 --rate 100/1m --retry 5
  ojs-nats queues config --max-size 100000                       of all queues that say nothing else
  ojs-nats queues config email --unset rate_limit,max_size

What isn't named stays as it is. Jobs that are there keep what they have.
"""


def define(parser: CommandParser) -> None:
    actions = parser.actions("list")
    listed = add_action(actions, "list", "list queues with their numbers", _list, examples="  ojs-nats queues\n")
    listed.add_argument("--limit", type=positive, metavar="N", help="at most so many")
    add_actions(
        actions, "QUEUE", "email",
        ("get", "show one queue", _get),
        ("pause", "hand out no more of its jobs", _pause),
        ("resume", "hand them out again", _resume),
    )  # fmt: skip
    purge = add_action(
        actions, "purge", "remove jobs that wait in it, or those in other states", _purge, examples=(
            "  ojs-nats queues purge email                                    what waits in it; asks first\n"
            "  ojs-nats queues purge email --state completed --older-than 7d --yes\n"
        ),
    )  # fmt: skip
    purge.add_argument("queue", metavar="QUEUE")
    purge.add_argument("--state", type=words, metavar="STATES", help=f"by commas: {', '.join(STATES)}")
    purge.add_argument("--older-than", type=duration, metavar="TIME")
    purge.add_argument("--yes", action="store_true", help="don't ask")
    _define_config(add_action(actions, "config", "show or change its settings", _config, examples=_CONFIG_EXAMPLES))


def _define_config(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("queue", nargs="?", default=ALL_QUEUES, metavar="QUEUE", help="[all that say nothing else]")
    parser.add_argument("--max-size", type=positive, metavar="N", help="jobs that it takes")
    parser.add_argument("--overflow", choices=get_args(Overflow), help="what a push to a full queue does")
    parser.add_argument("--concurrency", type=positive, metavar="N", help="jobs that run at a time")
    parser.add_argument("--rate", type=_rate, metavar="N/TIME", help="starts within a time: 100/1m")
    parser.add_argument("--timeout", type=duration, metavar="TIME", help="of an attempt")
    parser.add_argument("--retry", type=positive, metavar="N", help="attempts at most, with the first")
    parser.add_argument("--allow", type=words, metavar="TYPES", help="of jobs, by commas; each may end in '*'")
    parser.add_argument("--unset", type=words, default=[], metavar="SETTINGS", help="what to take back, by commas")


def _rate(text: str) -> Rate:
    limit, _, period = text.partition("/")
    return Rate(positive(limit), duration(period or "1s"))


async def _list(session: Session, given: argparse.Namespace) -> None:
    found = [queue async for queue in session.client.queues.list(limit=given.limit)]
    empty = "There are no queues yet: one is made by the first push to it."
    session.out.listed(found, QUEUE_COLUMNS, queue_row, empty=empty)


def queue_row(queue: Queue) -> tuple[object, ...]:
    counts, rates = queue.counts, queue.throughput
    wait, oldest = queue.latency_ms.p95, queue.oldest_available_age_ms
    return (
        queue.name, queue.status, counts.available, counts.active, counts.scheduled, counts.retryable,
        rates.processed_per_minute, rates.failed_per_minute,
        in_words(wait / 1_000), None if oldest is None else in_words(oldest / 1_000),
    )  # fmt: skip


def a_minute(rates: Throughput) -> str:
    """Say what comes in a minute, and what becomes of it."""
    pushed, done, failed = rates.enqueued_per_minute, rates.processed_per_minute, rates.failed_per_minute
    return f"{pushed:,.1f} pushed, {done:,.1f} done, {failed:,.1f} failed"


async def _get(session: Session, given: argparse.Namespace) -> None:
    queue = await session.client.queues.get(given.queue)
    if session.out.as_json:
        session.out.json(queue)
        return
    counts = msgspec.structs.asdict(queue.counts)
    session.out.members(
        [
            ("queue", queue.name),
            ("status", queue.queue.status),
            ("paused", at(queue.paused_at)),
            *counts.items(),
            ("a minute", a_minute(queue.throughput)),
            ("wait", f"{in_words(queue.latency_ms.p50 / 1_000)} (half), {in_words(queue.latency_ms.p99 / 1_000)} (99 %)"),
            ("run", f"{in_words(queue.run_ms.p50 / 1_000)} (half), {in_words(queue.run_ms.p99 / 1_000)} (99 %)"),
            ("oldest waits since", at(queue.oldest_available_at)),
        ]
    )  # fmt: skip
    session.out.heading("Settings")
    session.out.members(_settings(queue.config))


async def _pause(session: Session, given: argparse.Namespace) -> None:
    new = await _is_new(session, given.queue)
    session.out.done(f"Queue {given.queue} is paused.", await session.client.queues.pause(given.queue))
    _note_new(session, given.queue, new=new)


async def _resume(session: Session, given: argparse.Namespace) -> None:
    new = await _is_new(session, given.queue)
    session.out.done(f"Queue {given.queue} hands out jobs.", await session.client.queues.resume(given.queue))
    _note_new(session, given.queue, new=new)


async def _is_new(session: Session, queue: str) -> bool:
    """Return whether a change is the first that anybody hears of a queue.

    That may be meant, or be a slip of the pen.
    """
    try:
        await session.client.queues.get(queue)
    except NotFoundError:
        return True
    return False


def _note_new(session: Session, queue: str, *, new: bool) -> None:
    if new:
        session.out.note(f"There was no queue {queue} before: no job has been pushed to it.")


async def _purge(session: Session, given: argparse.Namespace) -> None:
    what = f"jobs in state {', '.join(given.state)}" if given.state else "waiting jobs"
    old = f" older than {given.older_than}" if given.older_than else ""
    session.confirm(f"Remove all {what}{old} of queue {given.queue} of {session.target.shown}?", confirmed=given.yes)
    purge = session.client.queues.purge
    answer = await purge(given.queue, states=given.state, older_than=given.older_than)
    removed = answer.purged_count
    with session.out.progress("removing", removed + answer.remaining) as bar:
        bar.by(answer.purged_count)
        while answer.remaining and answer.purged_count:
            answer = await purge(given.queue, states=given.state, older_than=given.older_than)
            removed += answer.purged_count
            bar.by(answer.purged_count)
    total = PurgedQueue(queue=given.queue, purged_count=removed, remaining=answer.remaining, states=answer.states)
    session.out.done(f"Removed {counted(removed, 'job')} of queue {given.queue}.", total)


async def _config(session: Session, given: argparse.Namespace) -> None:
    asked = _asked(given)
    queues = session.client.queues
    new = bool(asked) and given.queue != ALL_QUEUES and await _is_new(session, given.queue)
    found: ConfiguredQueue = await (queues.configure(given.queue, **asked) if asked else queues.config(given.queue))
    session.out.one(found, [("queue", "all" if given.queue == ALL_QUEUES else found.name), *_settings(found.config)])
    _note_new(session, given.queue, new=new)


def _asked(given: argparse.Namespace) -> QueueOptions:
    asked: dict[str, Any] = {
        "max_size": given.max_size,
        "overflow_policy": given.overflow,
        "concurrency": given.concurrency,
        "rate_limit": given.rate,
        "default_timeout": given.timeout,
        "default_retry": None if given.retry is None else Retry(given.retry),
        "allowed_job_types": given.allow,
    }
    changed = {name: value for name, value in asked.items() if value is not None}
    known = QueueOptions.__optional_keys__
    if strange := [name for name in given.unset if name not in known]:
        raise UsageProblem(f"--unset: {strange[0]!r} is none of {', '.join(sorted(known))}.")
    unset = dict.fromkeys(given.unset)
    if both := changed.keys() & unset.keys():
        raise UsageProblem(f"--unset: {min(both)} is set by the same command.")
    return cast("QueueOptions", changed | unset)


def _settings(config: QueueSettings) -> list[tuple[str, object]]:
    """What is set, structs in a line each."""
    found = msgspec.to_builtins(config)
    return [(name, _line(value)) for name, value in found.items() if value not in (None, {}, [])]


def _line(value: object) -> object:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_line(part)}" for name, part in value.items() if part not in (None, {}, []))
    return value
