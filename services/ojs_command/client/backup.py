"""`ojs-nats backup`."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ojs_command.client.on_nats import add_nats_options, namespace_of, on_nats, progress
from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session
from ojs_core.jetstream.grants import BACKUP

_EXAMPLES: Final = """\
  ojs-nats backup /var/backups/ojs/2026-11-26 --nats nats://127.0.0.1:4222
  ojs-nats backup /var/backups/ojs-shop --nats nats://127.0.0.1:4222 --namespace shop --json

Services work on meanwhile. The folder holds what jobs carry and the secrets of webhooks: keep it as you keep those.
"""


def define(parser: CommandParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a new folder for it")
    add_nats_options(parser)
    parser.does(_backup, examples=_EXAMPLES)


async def _backup(session: Session, given: argparse.Namespace) -> None:
    async with on_nats(given, BACKUP) as nats:
        from ojs_core.jetstream.subjects import config_of  # noqa: PLC0415  # takes what only a server needs
        from ojs_core.store.backup.taking import take_backup  # noqa: PLC0415

        config = config_of(namespace_of(given))
        with ExitStack() as close:
            taken = await take_backup(nats, config, given.folder, progress(session.out, close))
    if session.out.as_json:
        session.out.json_line(taken)
        return
    session.out.text(
        f"backed up {taken.records:,} records, {taken.events:,} events and {taken.audit:,} entries of the audit "
        f"in {taken.seconds:,.1f} s: {given.folder} ({taken.bytes:,} bytes)"
    )
