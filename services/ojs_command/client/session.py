"""What a command works with: a client, its output, and the person at the terminal."""

from __future__ import annotations

import select
import sys
from typing import Final

from ojs_command.client.context_file import Target
from ojs_command.client.output import Output
from ojs_command.client.problems import CommandFailed
from ojs_nats import Client

_LOOK_UP_S: Final = 0.2
"""A Ctrl-C that comes just before a read begins doesn't end the read: so often Python sees to its handlers."""


class Session:
    """One run of a command."""

    def __init__(self, client: Client, out: Output, target: Target) -> None:
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
        while not select.select([sys.stdin], [], [], _LOOK_UP_S)[0]:
            pass
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            raise CommandFailed("Nothing was changed.")
