"""`ojs-nats events`."""

from __future__ import annotations

import argparse
from contextlib import aclosing
from typing import Final

from rich.text import Text

from ojs_command.client.arguments import positive, words
from ojs_command.client.output import clean, json_text
from ojs_command.client.parser import CommandParser
from ojs_command.client.problems import UsageProblem
from ojs_command.client.session import Session
from ojs_nats.models.events import Event

_EXAMPLES: Final = """\
  ojs-nats events                                                the last 50 that are kept
  ojs-nats events --type 'job.failed,job.discarded' --limit 200
  ojs-nats events --follow --queue email
  ojs-nats events --follow --type 'job.*' --job-type email.send
  ojs-nats events --follow --job ID                              of one job, until it ends
  ojs-nats events --follow --json | jq -c 'select(.type == "job.failed")'

Connections that break are made anew without losing an event.
"""
_COLOURS: Final = {
    "completed": "green", "failed": "red", "discarded": "red", "dead": "red", "cancelled": "dim", "started": "yellow",
    "retrying": "magenta", "enqueued": "cyan",
}  # fmt: skip
_SHOWN: Final = ("queue", "job_type", "attempt", "worker_id", "reason")
_PAGE: Final = 1_000


def define(parser: CommandParser) -> None:
    parser.add_argument("--type", type=words, default=[], metavar="TYPES", help="by commas; each may end in '.*'")
    parser.add_argument("--queue", metavar="NAME")
    parser.add_argument("--job-type", metavar="TYPE")
    parser.add_argument("--job", metavar="ID", help="of one job, until it ends")
    parser.add_argument("--workflow", metavar="ID", help="of one workflow")
    parser.add_argument("--limit", type=positive, metavar="N", help="end after so many")
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what happens from now on")
    parser.does(_events, examples=_EXAMPLES)


async def _events(session: Session, given: argparse.Namespace) -> None:
    if given.follow:
        await _follow(session, given)
        return
    if given.job or given.workflow:
        raise UsageProblem("--job and --workflow need --follow; what has happened to a job is told by 'ojs-nats get ID'.")
    for event in await _last(session, given, given.limit or 50):
        session.out.streamed(event, line)


async def _last(session: Session, given: argparse.Namespace, number: int) -> list[Event]:
    """The last so many that fit, the oldest first."""
    events = session.client.events
    if len(given.type) <= 1 and not given.job_type and not "".join(given.type).endswith("*"):
        newest = await events.recent(type=given.type[0] if given.type else None, queue=given.queue, limit=number)
        return newest[::-1]
    # Only pages that begin with the oldest take more filters.
    found: list[Event] = []
    after = "0"
    while True:
        page = await events.poll(after=after, types=given.type, queue=given.queue, job_type=given.job_type, limit=_PAGE)
        found = [*found, *page.events][-number:]
        after = page.cursor
        if not page.has_more:
            return found


async def _follow(session: Session, given: argparse.Namespace) -> None:
    seen = 0
    told = session.client.events(
        types=given.type, queue=given.queue, job_type=given.job_type, job_id=given.job, workflow_id=given.workflow
    )
    async with aclosing(told) as events:
        async for event in events:
            session.out.streamed(event, line)
            seen += 1
            if seen == given.limit:
                return


def line(event: Event) -> Text:
    """An event in a line: when, what, of whom, and what matters of its data."""
    about = [f"{name}={clean(str(event.data[name]))}" for name in _SHOWN if event.data.get(name) is not None]
    if error := event.data.get("error"):
        about.append(f"error={clean(str(error.get('message', error)) if isinstance(error, dict) else json_text(error))}")
    colour = _COLOURS.get(event.type.rpartition(".")[2], "")
    return Text.assemble(
        (f"{event.time:%H:%M:%S.%f}"[:-3], "dim"), "  ", (f"{clean(event.type):<18}", colour), "  ", clean(event.subject), "  ",
        (" ".join(about), "dim"),
    )  # fmt: skip
