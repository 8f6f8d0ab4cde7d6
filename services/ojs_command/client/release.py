"""`ojs-nats release`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from ojs_command.client.on_nats import add_nats_options, commands, namespace_of, on_nats
from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session
from ojs_engine.jetstream.grants import RESTORE

_EXAMPLES: Final = """\
  ojs-nats release --nats nats://127.0.0.1:4222 --namespace rehearsal --dry-run
  ojs-nats release --nats nats://127.0.0.1:4222 --namespace rehearsal

A system that was restored into another namespace than that of its backup, or with --quiet, waits for this.
"""


def define(parser: CommandParser) -> None:
    add_nats_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="count what would begin to act, and change nothing")
    parser.add_argument("--yes", action="store_true", help="don't ask")
    parser.does(_release, examples=_EXAMPLES)


async def _release(session: Session, given: argparse.Namespace) -> None:
    async with on_nats(given, RESTORE) as nats:
        from ojs_engine.jetstream.subjects import config_of  # noqa: PLC0415  # takes what only a server needs
        from ojs_features.all import BACKUPS  # noqa: PLC0415

        config = config_of(namespace_of(given))

        def agree(lines: Sequence[str]) -> bool:
            for line in () if session.out.as_json else lines:
                session.out.text(line)
            if not given.dry_run:
                session.confirm(f"Release namespace {config.namespace}?", confirmed=given.yes)
            return not given.dry_run

        done = await commands().release(nats, config, agree, BACKUPS)
    if session.out.as_json:
        session.out.json(done.answer)
        return
    for line in done.lines:
        session.out.text(line)
