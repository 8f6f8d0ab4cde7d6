"""What a command works with: a client, its output, and the person at the terminal."""

from __future__ import annotations

import select
import sys

from ojs_command.client.context_file import Target
from ojs_command.client.output import Output
from ojs_command.client.problems import CommandFailed
from ojs_link.timings import Timings
from ojs_nats import Client


class CommandTimings(Timings, frozen=True, kw_only=True):
    """How long a command tries, and how often it checks, and writes."""

    retry_s: float = 10.0
    """For how long a request is tried while no server answers."""
    look_up_s: float = 0.2
    """A Ctrl-C that comes just before a read begins doesn't end the read: so often Python sees to its handlers."""
    follow_s: float = 1.0
    """Between two looks for new entries of the audit."""
    progress_s: float = 2.0
    """Between two lines of progress where there is no terminal."""


class Session:
    """One run of a command."""

    def __init__(self, client: Client, out: Output, target: Target, timings: CommandTimings = CommandTimings()) -> None:
        self.timings = timings
        self.client = client
        self.out = out
        self.target = target

    def confirm(self, question: str, *, confirmed: bool) -> None:
        """Ask before what can't be undone. Raises CommandFailed for no, and where nobody can be asked."""
        if confirmed:
            return
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise CommandFailed(f"{question} Nobody can be asked here: add --yes if you mean it.")
        sys.stderr.write(f"{question} [y/N] ")
        sys.stderr.flush()
        while not select.select([sys.stdin], [], [], self.timings.look_up_s)[0]:
            pass
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise CommandFailed("Nothing was changed.")
