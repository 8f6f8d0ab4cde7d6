"""`ojs-nats import`: jobs from lines of JSON, as `export` writes them."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final, NamedTuple
from uuid import uuid4

import msgspec

from ojs_api.bulk import PUSH_EACH
from ojs_api.jobs import ENDED
from ojs_command.client.parser import CommandParser
from ojs_command.client.problems import CommandFailed
from ojs_command.client.session import Session
from ojs_nats._json import decoded
from ojs_nats._operations import Request
from ojs_nats.errors import NotFoundError
from ojs_nats.models.jobs import BulkPushed
from ojs_nats.operations._subject import part

_EXAMPLES: Final = """\
  ojs-nats import jobs.ndjson --dry-run                 says what would become of each line
  ojs-nats import jobs.ndjson
  ojs-nats export --state available --queue email | ojs-nats import - --server https://other.example.org

Jobs keep their ids: one that is there already is left alone, so an import may be repeated. They begin anew, at their first
attempt. Those that have ended are left out, unless --again is given, and so are members of workflows.
"""
_AT_ONCE: Final = 200
_BYTES: Final = 262_144
"""The text of the jobs in one push, unless one job is longer: servers may take bodies of a megabyte alone."""
_LOOKS: Final = 16
_TOLD: Final = 20
_REFUSED: Final = 422
_STDIN: Final = "-"

_WORDS: Final = {
    "pushed": "pushed",
    "there": "were there already",
    "ended": "had ended, and are left out",
    "member": "are members of workflows, and are left out",
    "refused": "were refused",
}


class _Line(NamedTuple):
    number: int
    job: dict[str, Any]


class Imported(msgspec.Struct, frozen=True):
    """Outcomes of the lines. In a dry run `pushed` says how many would be."""

    pushed: int
    there: int
    ended: int
    member: int
    refused: int
    dry_run: bool


def define(parser: CommandParser) -> None:
    parser.add_argument("file", metavar="FILE", help="what export has written; '-' is standard input")
    parser.add_argument("--dry-run", action="store_true", help="push nothing, and say what would become of the lines")
    parser.add_argument("--again", action="store_true", help="with those that have ended: they run once more")
    parser.does(_import, examples=_EXAMPLES)


async def _import(session: Session, given: argparse.Namespace) -> None:
    found: Counter[str] = Counter()
    with _opened(given.file) as file, session.out.progress("importing", None) as bar:
        for lines in _chunks(file):
            wanted = [line for line in lines if _is_wanted(line, found, again=given.again)]
            if wanted:
                await (_look(session, wanted, found) if given.dry_run else _push(session, wanted, found))
            bar.by(len(lines))
    done = Imported(**{word: found[word] for word in _WORDS}, dry_run=given.dry_run)
    if session.out.as_json:
        session.out.json(done)
    else:
        would = "would be pushed" if given.dry_run else "pushed"
        said = [f"{found[word]:,} {would if word == 'pushed' else told}" for word, told in _WORDS.items()]
        session.out.text("; ".join(line for line in said if not line.startswith("0 ")) or "nothing to import")
    if done.refused:
        raise CommandFailed(f"{done.refused:,} lines were refused; the others were pushed.")


def _is_wanted(line: _Line, found: Counter[str], *, again: bool) -> bool:
    if line.job.get("redacted"):
        redacted = line.job["redacted"]
        lacking = ", ".join(map(str, redacted)) if isinstance(redacted, list) else str(redacted)
        raise CommandFailed(
            f"Line {line.number} lacks what its job carries ({lacking}): export it with a key that has the permission payloads."
        )
    if line.job.get("workflow_id"):
        found["member"] += 1
        return False
    if line.job.get("state") in ENDED and not again:
        found["ended"] += 1
        return False
    return True


async def _look(session: Session, lines: list[_Line], found: Counter[str]) -> None:
    """Count which are there."""
    gate = asyncio.Semaphore(_LOOKS)

    async def look(line: _Line) -> None:
        async with gate:
            try:
                await session.client.jobs.get(str(line.job["id"]))
            except NotFoundError:
                found["pushed"] += 1
            else:
                found["there"] += 1

    await asyncio.gather(*map(look, lines))


async def _push(session: Session, lines: list[_Line], found: Counter[str]) -> None:
    body = {"jobs": [line.job for line in lines], "idempotency_key": str(uuid4())}
    answer = await session.client._inside.transport.send(Request(PUSH_EACH, body=body, answered_as_well=frozenset({_REFUSED})))
    for item in part(answer, BulkPushed).items:
        line = lines[item.index]
        if item.error is None or item.status == "created":
            found["pushed"] += 1
        elif item.error.details.get("existing_job_id") == line.job["id"]:
            found["there"] += 1
        else:
            found["refused"] += 1
            if found["refused"] <= _TOLD:
                session.out.note(f"line {line.number}: {item.error.message}")


def _chunks(file: IO[bytes]) -> Iterator[list[_Line]]:
    """Lines, many at a time. Raises CommandFailed for one that can't be read; those before it are done."""
    chunk: list[_Line] = []
    size = 0
    for number, text in enumerate(file, 1):
        if not text.strip():
            continue
        try:
            job = decoded(text, dict[str, Any])
        except msgspec.MsgspecError as error:
            yield chunk
            raise CommandFailed(f"Line {number} is no JSON object of a job ({error}): correct it, and import again.") from None
        if not isinstance(job.get("id"), str):
            yield chunk
            raise CommandFailed(f"Line {number} has no id: what is imported keeps its own. Push it with 'ojs-nats push'.")
        if chunk and (len(chunk) == _AT_ONCE or size + len(text) > _BYTES):
            yield chunk
            chunk, size = [], 0
        chunk.append(_Line(number, job))
        size += len(text)
    yield chunk


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    if name == _STDIN:
        yield sys.stdin.buffer
        return
    try:
        file = Path(name).open("rb")  # noqa: SIM115  # closed below
    except OSError as error:
        raise CommandFailed(f"{name} can't be read ({error.strerror}): name a file that export has written.") from None
    with file:
        yield file
