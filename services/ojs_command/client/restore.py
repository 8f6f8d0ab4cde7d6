"""`ojs-nats restore`."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from ojs_command.client.arguments import positive
from ojs_command.client.on_nats import Progress, add_nats_options, commands, namespace_of, on_nats
from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session
from ojs_engine.jetstream.grants import RESTORE

_EXAMPLES: Final = """\
  ojs-nats restore /var/backups/ojs/2026-11-26 --nats nats://127.0.0.1:4222
  ojs-nats restore /var/backups/ojs/2026-11-26 --nats nats://n1:4222,nats://n2:4222,nats://n3:4222 --replicas 3
  ojs-nats restore /var/backups/ojs/2026-11-26 --nats nats://127.0.0.1:4222 --namespace rehearsal

Stop all services first, and start them afterwards. What is interrupted is begun anew by the same command.

In another namespace than that of the backup the system waits: no job is handed out, no cron fires, no webhook is
called until 'ojs-nats release'. --live lets it act at once; --quiet has it wait in its own namespace, too.
"""


def define(parser: CommandParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder of a backup")
    add_nats_options(parser)
    parser.add_argument("--replicas", type=positive, default=1, metavar="N", help="how many servers keep each stream [1]")
    acting = parser.add_mutually_exclusive_group()
    acting.add_argument("--quiet", action="store_true", help="have the system wait for 'ojs-nats release'")
    acting.add_argument("--live", action="store_true", help="let the system act once its services run")
    parser.does(_restore, examples=_EXAMPLES)


async def _restore(session: Session, given: argparse.Namespace) -> None:
    async with on_nats(given, RESTORE) as nats:
        from ojs_engine.store.backup import Target  # noqa: PLC0415  # takes what only a server needs
        from ojs_features.all import BACKUPS  # noqa: PLC0415

        quiet = True if given.quiet else False if given.live else None
        target = Target(namespace_of(given), given.replicas, quiet)
        with ExitStack() as close:
            done = await commands().restore(nats, target, given.folder, Progress(session, close).tell, BACKUPS)
    if session.out.as_json:
        session.out.json_line(done.answer)
        return
    for line in done.lines:
        session.out.text(line)
