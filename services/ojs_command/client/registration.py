"""Which client commands there are."""

from __future__ import annotations

import argparse
from typing import Final

from ojs_command.client.parser import FILES, CommandParser, add_module, add_server_options

_COMMANDS: Final = (
    ("push", "push", "push jobs"),
    ("get", "jobs.get", "show a job, and what happened to it"),
    ("list", "jobs.listing", "list jobs"),
    ("cancel", "jobs.cancel", "cancel jobs"),
    ("why", "jobs.why", "say why a job is where it is"),
    ("run", "jobs.run", "run a job now that waits for its time"),
    ("priority", "jobs.priority", "give a job another priority"),
    ("retry", "jobs.retry", "give jobs that have failed or were cancelled a new life"),
    ("events", "events", "show what has happened, and follow what happens"),
    ("queues", "queues", "list, pause, set and empty queues"),
    ("workers", "workers", "list workers, quiet and end them"),
    ("dead-letter", "dead_letters", "look at jobs that have failed for good, and retry them"),
    ("cron", "crons", "jobs on a schedule"),
    ("workflows", "workflows", "look at workflows, cancel and retry them"),
    ("top", "top", "queues, rates, workers and failures, live"),
    ("audit", "audit", "show who did what, and who was refused"),
    ("doctor", "doctor.command", "say what is wrong with a server, and how to mend it"),
    ("keys", "keys", "make, list, rotate and revoke keys of the server"),
    ("backup", "backup", "back up a system in NATS, while it works"),
    ("restore", "restore", "restore a backup into an empty NATS, or into another namespace"),
    ("release", "release", "let a restored system act: hand out jobs, fire crons, call webhooks"),
    ("export", "export", "write jobs into a file, as lines of JSON"),
    ("import", "importing", "push the jobs of a file that export has written"),
    ("context", "context", "name servers, with the headers that they ask for"),
    ("completion", "completion", "let your shell complete these commands"),
)


GONE: Final = {"tail": "events --follow", "stats": "top --once"}
"""Commands of earlier versions, each with the one that took its place."""


def add_client_commands(root: argparse.ArgumentParser, commands: argparse._SubParsersAction[CommandParser]) -> None:
    """Add them to `commands`."""
    add_server_options(root)
    for name, module, purpose in _COMMANDS:
        add_module(commands, name, f"client.{module}", purpose).set_defaults(root=root, commands=commands)


def run_client(root: argparse.ArgumentParser, given: argparse.Namespace) -> int | None:
    """The exit code of a client command, None for any other."""
    if "run" in given:
        from ojs_command.client.running import run_command  # noqa: PLC0415  # services start without the client

        return run_command(given)
    if found := [name for name in ("server", "context", *FILES) if name in given]:
        root.error(f"--{found[0].replace('_', '-')}: not an option of {given.command}")
    return None
