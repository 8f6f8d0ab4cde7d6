"""Why a command can't go on, in a sentence that says what to do."""

from __future__ import annotations


class UsageProblem(Exception):
    """What was asked can't be understood, or a file of settings can't."""


class CommandFailed(Exception):
    """A command can't do what was asked. Without a message, what was printed says it all."""
