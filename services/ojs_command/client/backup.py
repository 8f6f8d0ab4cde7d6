"""`ojs-nats backup`."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ojs_command.client.on_nats import Progress, add_nats_options, commands, namespace_of, on_nats
from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session
from ojs_engine.jetstream.grants import BACKUP

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
        from ojs_features.all import BACKUPS  # noqa: PLC0415

        with ExitStack() as close:
            tell = Progress(session, close).tell
            done = await commands().back_up(nats, config_of(namespace_of(given)), given.folder, tell, BACKUPS)
    if done.warning is not None:
        session.out.note(done.warning)
    if session.out.as_json:
        session.out.json_line(done.answer)
        return
    for line in done.lines:
        session.out.text(line)
