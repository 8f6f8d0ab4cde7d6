"""What keeps a process from starting, worded for the person who started it."""

from __future__ import annotations

from typing import Final

CANNOT_START: Final = 1
"""The exit code of a process that had a problem of these."""
WRONG_USE: Final = 2
"""The exit code of a process whose command line was wrong."""


class StartupProblem(Exception):
    """A process can't start; the message is plain words with the remedy.

    The command prints the message without a traceback and exits with status 1.
    """


class WrongCommandLine(StartupProblem):
    """The command line is wrong: the command exits with status 2."""


class Unreachable(StartupProblem):
    """NATS can't be reached, or has no leader yet: worth another try until `--connect-timeout` has passed."""
