"""The connection and the messages of commands that work on NATS itself, without a server between."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Final

from ojs_command.client.nats_address import operators_address
from ojs_command.client.output import Advance
from ojs_command.client.parser import CommandParser
from ojs_command.client.problems import CommandFailed, UsageProblem
from ojs_engine.base.errors import OjsError
from ojs_engine.base.problems import StartupProblem
from ojs_runtime.settings import NAMESPACE_ENV

if TYPE_CHECKING:
    from ojs_command.client.session import Session
    from ojs_engine.jetstream.connection import Connection
    from ojs_engine.store.backup import BackupCommands

NATS_ENV: Final = "OJS_NATS"


def add_nats_options(parser: CommandParser, purpose: str = f"where NATS is [{NATS_ENV}]") -> None:
    """Add the options that say where NATS is."""
    parser.add_argument("--nats", dest="on_nats", metavar="URL", help=purpose)
    parser.add_argument(
        "--namespace", metavar="NAME", help=f"which system there, as its services are started with [{NAMESPACE_ENV}]"
    )


def namespace_of(given: argparse.Namespace) -> str | None:
    """The namespace that was named, if one was."""
    return given.namespace or os.environ.get(NAMESPACE_ENV) or None


@contextmanager
def told_plainly() -> Iterator[None]:
    """Raise CommandFailed for what work on NATS raises."""
    try:
        yield
    except OjsError as error:
        again = error.code == "backend_unavailable"  # whose hint is for clients of the API
        raise CommandFailed(
            f"{error.message}. {'Mend that, and run the same command again.' if again else error.hint}"
        ) from None
    except (StartupProblem, ValueError) as problem:
        raise CommandFailed(str(problem)) from None


@asynccontextmanager
async def on_nats(given: argparse.Namespace, role: str) -> AsyncIterator[Connection]:
    """A connection as a role's user. Raises UsageProblem, CommandFailed, also for what fails in the block."""
    url = given.on_nats or os.environ.get(NATS_ENV)
    if not url:
        raise UsageProblem(f"where is NATS? Name it with --nats nats://host:4222, or in {NATS_ENV}.")
    with told_plainly():
        from ojs_engine.jetstream.connection import CannotConnect, Connection  # noqa: PLC0415  # takes what only a server needs
        from ojs_engine.jetstream.streams import check_server, no_way_to_nats  # noqa: PLC0415
        from ojs_engine.store.backup import BackupProblem  # noqa: PLC0415

        nats = Connection(f"ojs-nats-{role}")
        try:
            try:
                await nats.connect(operators_address(url, role))
            except CannotConnect as error:
                raise no_way_to_nats(url, error) from None
            check_server(nats)
            yield nats
        except BackupProblem as problem:
            raise CommandFailed(f"{problem}.") from None
        finally:
            await nats.close()


def commands() -> BackupCommands:
    """Return the work on backups. Raises CommandFailed where this server has none."""
    from ojs_features.all import BACKUP_COMMANDS  # noqa: PLC0415  # takes what only a server needs

    if BACKUP_COMMANDS is None:
        raise CommandFailed("This installation has no backups: its feature `backup` was left out.")
    return BACKUP_COMMANDS


class Progress:
    """Progress of a command: a bar on a terminal, lines elsewhere, and lines of JSON for programs."""

    def __init__(self, session: Session, close: ExitStack) -> None:
        self._out = session.out
        self._every_s = session.timings.progress_s
        self._close = close
        self._phase = ""
        self._last: tuple[str, int, int] | None = None
        self._bar: Advance | None = None
        self._done = 0
        self._told = 0.0

    def tell(self, phase: str, done: int, total: int) -> None:
        """Show it, if it is new enough."""
        if (phase, done, total) == self._last:
            return
        self._last = phase, done, total
        if phase != self._phase:
            self._phase, self._done = phase, 0
            if not self._out.as_json:
                self._close.close()
                self._bar = self._close.enter_context(self._out.progress(phase, total or None))
        now = asyncio.get_running_loop().time()
        if self._out.as_json or not self._out.notes_on_terminal:
            if done < total and now < self._told + self._every_s:
                return
            self._told = now
        if self._out.as_json:
            self._out.json_line({"phase": phase, "done": done, "total": total})
            self._out.flush()
        elif not self._out.notes_on_terminal:
            self._out.note(f"{phase}: {done:,} of {total:,}" if total else phase)
        elif self._bar is not None:
            self._bar.by(done - self._done, total)
        self._done = done
