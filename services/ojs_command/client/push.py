"""`ojs-nats push`: one job, or one for each line of standard input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from ojs_command.client.arguments import duration, in_help, job_args, member, positive, pushable, when
from ojs_command.client.output import json_text
from ojs_command.client.parser import CommandParser
from ojs_command.client.problems import CommandFailed, UsageProblem
from ojs_command.client.session import Session
from ojs_engine.domain.members import LABELLED, SEVERAL
from ojs_nats import Job, Retry, Unique
from ojs_nats._json import decoded
from ojs_nats.errors import RefusedError
from ojs_nats.jobs import JobRequest

_AT_ONCE: Final = 500
"""Jobs in a request."""
_TOLD: Final = 20
"""Lines that were refused and are told of one by one."""
_STDIN: Final = "-"

_EXAMPLES: Final = """\
  ojs-nats push email.send ada@example.org '{"template": "welcome"}' --queue email
  ojs-nats push report.build 2026-11 --delay 10m --retry 5 --unique --meta tenant=acme --tag monthly
  ojs-nats push report.build 2026-11 --wait --timeout 2m         prints its result; exits with 1 if the job fails
  seq 1000 | sed 's/.*/[&]/' | ojs-nats push number.add -        one job for each line
  ID=$(ojs-nats push email.send ada@example.org)                 elsewhere than on a terminal, the id is all that is printed

Each ARG is JSON; a word that isn't JSON is a string. '-' reads lines from standard input, each a JSON array: the arguments of
one job. Lines that are refused are told of, the others are pushed.
"""


class Pushed(msgspec.Struct, frozen=True):
    """A job that was pushed; with a policy of uniqueness it may be one that was there already, which isn't `created`."""

    id: str
    created: bool


class PushedLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of a line of standard input, from 1 on."""

    line: int
    id: str | None = None
    code: str | None = None
    error: str | None = None


def define(parser: CommandParser) -> None:
    parser.add_argument("type", metavar="TYPE", help="what is to be done: email.send")
    parser.add_argument("args", nargs="*", metavar="ARG", help="its arguments, in order, as JSON; or '-'")
    parser.add_argument("--queue", metavar="NAME", help="[default]")
    parser.add_argument("--priority", type=int, metavar="N", help="-100 to 100, the highest first [0]")
    later = parser.add_mutually_exclusive_group()
    later.add_argument("--delay", type=duration, metavar="TIME", help="not before that: 30s, 10m, 1h30m")
    later.add_argument("--at", type=when, metavar="WHEN", help="not before then: 2026-11-24T08:00Z")
    parser.add_argument("--retry", type=positive, metavar="N", help="attempts at most, with the first")
    parser.add_argument("--run-timeout", type=duration, metavar="TIME", help="how long an attempt may take")
    parser.add_argument("--unique", action="store_true", help="refuse it while a job of this type and arguments hasn't ended")
    parser.add_argument("--meta", action="append", type=member, default=[], metavar="NAME=VALUE", help="again for more")
    for by in LABELLED:
        several = by.field in SEVERAL
        help_text = "again for more" if several else in_help(by.about)
        parser.add_argument(f"--{by.name}", action="append" if several else "store", metavar=by.name.upper(), help=help_text)
    parser.add_argument("--id", metavar="UUID", help="a UUIDv7 [made here]")
    parser.add_argument("--wait", action="store_true", help="until it has ended, and print its result")
    parser.add_argument("--timeout", type=duration, metavar="TIME", help="how long to wait, at most")
    parser.does(_push, examples=_EXAMPLES)


async def _push(session: Session, given: argparse.Namespace) -> None:
    if given.timeout and not given.wait:
        raise UsageProblem("--timeout is how long --wait waits: give both.")
    if given.args == [_STDIN]:
        if given.wait or given.id:
            raise UsageProblem("--wait and --id are for one job, not for many from standard input.")
        await _push_lines(session, given)
        return
    new = _new(given, job_args(given.args))
    handle = await session.client.push(new)
    if given.wait:
        _tell_end(session, await session.client.jobs.wait(handle.id, given.timeout))
    elif session.out.as_json:
        session.out.json(Pushed(handle.id, created=handle.id == new.id))
    elif session.out.on_terminal:
        there = "" if handle.id == new.id else ", which was there already"
        session.out.text(f"Pushed {handle.id} to queue {given.queue or 'default'}{there}.")
    else:
        session.out.text(handle.id)


def _tell_end(session: Session, job: Job) -> None:
    if session.out.as_json:
        session.out.json(job)
    elif job.state == "completed":
        session.out.text(json_text(job.result))
    if job.state == "completed":
        return
    said = f": {job.error.message}" if job.error else ""
    raise CommandFailed(f"Job {job.id} was {job.state} after {job.attempt} attempts{said}. 'ojs-nats get {job.id}' tells more.")


async def _push_lines(session: Session, given: argparse.Namespace) -> None:
    pushed = refused = 0
    with session.out.progress("pushing", None) as bar:
        for lines in _chunks():
            found = await session.client.push_each([_new(given, args) for _, args in lines])
            for (number, _), one in zip(lines, found, strict=True):
                if isinstance(one, RefusedError):
                    refused += 1
                    _tell_refused(session, number, one, refused)
                else:
                    pushed += 1
                    _tell_pushed(session, number, one.id)
            bar.by(len(lines))
    if session.out.on_terminal and not session.out.as_json:
        session.out.text(f"Pushed {pushed:,} jobs.")
    if refused:
        raise CommandFailed(f"{refused:,} of {pushed + refused:,} lines were refused; the others were pushed.")


def _tell_pushed(session: Session, number: int, job_id: str) -> None:
    if session.out.as_json:
        session.out.json_line(PushedLine(number, id=job_id))
    elif not session.out.on_terminal:
        session.out.text(job_id)


def _tell_refused(session: Session, number: int, error: RefusedError, count: int) -> None:
    if session.out.as_json:
        session.out.json_line(PushedLine(number, code=error.code, error=str(error)))
    elif count <= _TOLD:
        session.out.note(f"line {number}: {error}")
    elif count == _TOLD + 1:
        session.out.note("… and more")


def _chunks() -> Iterator[list[tuple[int, tuple[Any, ...]]]]:
    """Numbers of lines and their arguments.

    Raises CommandFailed for a line that can't be read; those before were pushed.
    """
    chunk: list[tuple[int, tuple[Any, ...]]] = []
    for number, line in enumerate(sys.stdin.buffer, 1):
        if not line.strip():
            continue
        try:
            args = decoded(line, list[Any])
        except msgspec.MsgspecError as error:
            yield chunk
            raise CommandFailed(
                f'Line {number} is no JSON array of arguments, such as ["ada@example.org"] ({error}): correct it, and push the '
                "lines from there on."
            ) from None
        chunk.append((number, tuple(args)))
        if len(chunk) == _AT_ONCE:
            yield chunk
            chunk = []
    yield chunk


def _new(given: argparse.Namespace, args: tuple[Any, ...]) -> JobRequest[Any]:
    return pushable(
        given.type,
        args,
        given.id,
        queue=given.queue,
        priority=given.priority,
        delay=given.delay,
        scheduled_at=given.at,
        retry=None if given.retry is None else Retry(given.retry),
        timeout=given.run_timeout,
        unique=Unique() if given.unique else None,
        meta=dict(given.meta) or None,
        **{by.field: getattr(given, by.name) for by in LABELLED},
    )
