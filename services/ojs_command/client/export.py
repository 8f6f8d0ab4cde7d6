"""`ojs-nats export`: jobs as lines of JSON."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from ojs_command.client.arguments import positive
from ojs_command.client.jobs.listing import add_filters, filters_of
from ojs_command.client.parser import CommandParser
from ojs_command.client.problems import CommandFailed
from ojs_command.client.session import Session
from ojs_nats._operations import Operation, Request
from ojs_nats._transport import Transport
from ojs_nats.operations._subject import parameters, part

_EXAMPLES: Final = """\
  ojs-nats export jobs.ndjson                                       all jobs, the oldest first
  ojs-nats export failed.ndjson --state discarded --queue email --since 24h
  ojs-nats export --state available | jq -c '{id, type, args}'

A line is a job as the server answers it. 'ojs-nats import' pushes them to another server.
"""
_LIST: Final = Operation("listJobs", "GET", "/jobs")
_PAGE: Final = 200


class _Pagination(msgspec.Struct):
    next_cursor: str | None = None


class _Page(msgspec.Struct):
    jobs: list[msgspec.Raw]
    pagination: _Pagination
    partial: bool = False


def define(parser: CommandParser) -> None:
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", help="a new file for them, or - [standard output]")
    add_filters(parser)
    parser.add_argument("--limit", type=positive, metavar="N", help="at most so many [all]")
    parser.does(_export, examples=_EXAMPLES)


async def _export(session: Session, given: argparse.Namespace) -> None:
    filters = filters_of(given)
    asked = parameters(**{name: value for name, value in filters.items() if name != "meta"}, order="asc")
    asked |= {f"meta.{name}": value for name, value in filters["meta"].items()}
    written = 0
    with _opened(given.file) as file, session.out.progress("exporting", given.limit) as bar:
        async for page in _pages(session.client._inside.transport, asked, filters["queue"]):
            jobs = page if given.limit is None else page[: given.limit - written]
            file.write(b"".join(bytes(job) + b"\n" for job in jobs))
            written += len(jobs)
            bar.by(len(jobs))
            if written == given.limit:
                break
        file.flush()
    session.out.note(f"exported {written:,} jobs")


async def _pages(transport: Transport, asked: dict[str, str], queue: str | None) -> AsyncIterator[list[msgspec.Raw]]:
    where = {"offset": "0"}
    while True:
        request = Request(_LIST, {**asked, **where, "limit": str(_PAGE)}, queue=queue)
        page = part(await transport.send(request), _Page)
        if page.partial:
            raise CommandFailed("The server's index is being built, so the list isn't whole: try again when that is done.")
        yield page.jobs
        if page.pagination.next_cursor is None:
            return
        where = {"cursor": page.pagination.next_cursor}


@contextmanager
def _opened(file: Path | None) -> Iterator[IO[Any]]:
    """The file, for its owner alone; one that is there isn't written over. It has its name once it is whole."""
    if file is None or str(file) == "-":
        yield sys.stdout.buffer
        return
    if file.exists():
        raise CommandFailed(f"{file} is there already: name another file.")
    partial = file.with_name(f".{file.name}.partial-{os.getpid()}")
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            yield opened
            opened.flush()
            os.fsync(opened.fileno())
        partial.rename(file)
    except OSError as error:
        raise CommandFailed(f"{file} can't be written ({error.strerror}): make room, or name another file.") from None
    finally:
        partial.unlink(missing_ok=True)
