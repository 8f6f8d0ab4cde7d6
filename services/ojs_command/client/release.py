"""`ojs-nats release`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ojs_command.client.on_nats import add_nats_options, namespace_of, on_nats
from ojs_command.client.parser import CommandParser
from ojs_command.client.session import Session
from ojs_engine.base.wording import counted
from ojs_engine.jetstream.grants import RESTORE

if TYPE_CHECKING:
    from ojs_engine.store.backup.feature import FeatureBackup
    from ojs_engine.store.backup.release import Held

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
        from ojs_engine.store.backup.feature import flat  # noqa: PLC0415
        from ojs_engine.store.backup.release import Release  # noqa: PLC0415
        from ojs_features.all import BACKUPS  # noqa: PLC0415

        config = config_of(namespace_of(given))
        release = await Release.of(nats, config, BACKUPS)
        held = await release.held()
        if held is not None:
            _show(session, config.namespace, held, BACKUPS)
            if not given.dry_run:
                session.confirm(f"Release namespace {config.namespace}?", confirmed=given.yes)
                await release.run()
    if session.out.as_json:
        acted = held is not None and not given.dry_run
        shown = None if held is None else flat(held)
        session.out.json({"namespace": config.namespace, "released": acted, "held": shown})
    elif held is None:
        session.out.text(f"namespace {config.namespace} doesn't wait for a release")
    else:
        session.out.text("nothing was changed: this is a dry run" if given.dry_run else "released")


def _show(session: Session, namespace: str, held: Held, features: Sequence[FeatureBackup]) -> None:
    if session.out.as_json:
        return
    stay = f" ({counted(held.paused, 'more queue')} with jobs {'stays' if held.paused == 1 else 'stay'} paused)"
    session.out.text(f"namespace {namespace}: {held.mark.said}. Then these act:")
    nouns = {name: one.noun for feature in features for name, one in feature.counted.items()}
    for name, number in held.features.items():
        session.out.text(f"  {counted(number, nouns[name])}")
    waiting = f"{counted(held.queues, 'queue')} with {counted(held.jobs, 'job')} that wait"
    session.out.text(f"  {waiting}{stay if held.paused else ''}")
    session.out.text(f"  {counted(held.due, 'delayed job')} that are due")
    if held.outlived:
        outlived = counted(held.outlived, "job")
        session.out.text(f"  {outlived} past `expires_at` or another limit of time, to be discarded")
    if held.maintenance:
        session.out.text("There is maintenance besides, which goes on: end it when jobs may start.")
