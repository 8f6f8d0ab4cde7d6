"""`ojs-nats backup`."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ojs_command.client.on_nats import Progress, add_nats_options, namespace_of, on_nats
from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session
from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.grants import BACKUP

if TYPE_CHECKING:
    from ojs_engine.jetstream.connection import Connection
    from ojs_engine.jetstream.subjects import StoreConfig

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
        from ojs_engine.jetstream.subjects import config_of  # noqa: PLC0415  # takes what only a server needs
        from ojs_engine.store.backup.taking import take_backup  # noqa: PLC0415
        from ojs_features.all import BACKUPS  # noqa: PLC0415

        config = config_of(namespace_of(given))
        with ExitStack() as close:
            taken = await take_backup(nats, config, given.folder, Progress(session, close).tell, BACKUPS)
        unnoted = await _note(nats, config, taken.taken_at)
    if unnoted is not None:
        session.out.note(unnoted)
    if session.out.as_json:
        session.out.json_line(taken)
        return
    session.out.text(
        f"backed up {taken.records:,} records, {taken.events:,} events and {taken.audit:,} entries of the audit "
        f"in {taken.seconds:,.1f} s: {given.folder} ({taken.bytes:,} bytes)"
    )


async def _note(nats: Connection, config: StoreConfig, at: int) -> str | None:
    """Store when the backup was made. Return a warning where that failed: the backup is whole all the same."""
    from ojs_engine.jetstream.api import Denied  # noqa: PLC0415  # as above
    from ojs_engine.store.backup.last import note_backup  # noqa: PLC0415

    try:
        await note_backup(nats, config, at)
    except Denied:
        return (
            "warning: the backup is whole, but this NATS user may not note when it was made: "
            "print the users again with 'ojs-nats nats-conf --users' (docs/nats-users.md)."
        )
    except OjsError as error:
        return f"warning: the backup is whole, but NATS didn't note when it was made: {error.message}."
    return None
