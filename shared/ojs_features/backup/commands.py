"""The work of the commands `backup`, `restore` and `release`, and what they say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, to_builtins

from ojs_engine.base.errors import OjsError
from ojs_engine.base.wording import counted
from ojs_engine.jetstream.api import Denied
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.backup import Agree, BackupCommands, FeatureBackup, Outcome, Target, Tell
from ojs_features.backup.archive import Archive
from ojs_features.backup.last import note_backup
from ojs_features.backup.release import Held, Release
from ojs_features.backup.restoring import Restore, Restored
from ojs_features.backup.taking import take_backup


async def _back_up(
    nats: Connection, config: StoreConfig, folder: Path, tell: Tell, features: Sequence[FeatureBackup]
) -> Outcome:
    """Write a backup into a new folder, and note when it was made."""
    taken = await take_backup(nats, config, folder, tell, features)
    said = (
        f"backed up {taken.records:,} records, {taken.events:,} events and {taken.audit:,} entries of the audit "
        f"in {taken.seconds:,.1f} s: {folder} ({taken.bytes:,} bytes)"
    )
    return Outcome(taken, [said], await _note(nats, config, taken.taken_at))


async def _note(nats: Connection, config: StoreConfig, at: int) -> str | None:
    """Store when the backup was made. Return a warning where that failed: the backup is whole all the same."""
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


async def _restore(nats: Connection, target: Target, folder: Path, tell: Tell, features: Sequence[FeatureBackup]) -> Outcome:
    """Restore a backup into a system that isn't there."""
    archive = Archive.open(folder)
    config = StoreConfig(namespace=target.namespace or archive.manifest.namespace, replicas=target.replicas)
    done = await Restore(nats, config, archive, tell, features, quiet=target.quiet).run()
    return Outcome(_flat(done), list(_of_restore(done, features)))


def _of_restore(done: Restored, features: Sequence[FeatureBackup]) -> Iterator[str]:
    workflows, crons = (done.features.get(name, 0) for name in ("workflows", "crons"))
    yield (
        f"restored {done.jobs:,} jobs ({done.waiting:,} wait to be fetched, {done.requeued:,} of them ran when the backup was "
        f"made), {workflows:,} workflows, {crons:,} crons, {done.events:,} events in {done.seconds:,.1f} s"
    )
    remarks = [(name, one.remark) for feature in features for name, one in feature.counted.items() if one.remark is not None]
    for number, what in (
        *((done.features[name], remark) for name, remark in remarks),
        (done.ended, "records had ended their time, and are left out"),
        (done.unreadable, "records can't be read, and are restored as they are: GET /admin/unreadable lists them"),
    ):
        if number:
            yield f"{number:,} {what}"
    if not done.keys:
        yield "it has no keys: everybody who reaches a gateway may do everything, until one is made"
    if done.waits_for_release:
        yield (
            "it hands out no job, fires no cron and calls no webhook until "
            f"'ojs-nats release --namespace {done.namespace}': start the services, and check it"
        )
    else:
        yield "start the services now: it hands out jobs, fires crons and calls webhooks at once"


async def _release(nats: Connection, config: StoreConfig, agree: Agree, features: Sequence[FeatureBackup]) -> Outcome:
    """Release a restored system, if it waits for that and `agree` says so to what begins to act then."""
    release = await Release.of(nats, config, features)
    held = await release.held()
    acted = False
    if held is not None and agree(list(_of_held(config.namespace, held, features))):
        await release.run()
        acted = True
    answer = {"namespace": config.namespace, "released": acted, "held": None if held is None else _flat(held)}
    if held is None:
        return Outcome(answer, [f"namespace {config.namespace} doesn't wait for a release"])
    return Outcome(answer, ["released" if acted else "nothing was changed: this is a dry run"])


def _of_held(namespace: str, held: Held, features: Sequence[FeatureBackup]) -> Iterator[str]:
    stay = f" ({counted(held.paused, 'more queue')} with jobs {'stays' if held.paused == 1 else 'stay'} paused)"
    yield f"namespace {namespace}: {held.mark.said}. Then these act:"
    nouns: Mapping[str, str] = {name: one.noun for feature in features for name, one in feature.counted.items()}
    for name, number in held.features.items():
        yield f"  {counted(number, nouns[name])}"
    waiting = f"{counted(held.queues, 'queue')} with {counted(held.jobs, 'job')} that wait"
    yield f"  {waiting}{stay if held.paused else ''}"
    yield f"  {counted(held.due, 'delayed job')} that are due"
    if held.outlived:
        yield f"  {counted(held.outlived, 'job')} past `expires_at` or another limit of time, to be discarded"
    if held.maintenance:
        yield "There is maintenance besides, which goes on: end it when jobs may start."


def _flat(counts: Struct) -> dict[str, Any]:
    """Return the members of counts, with the counts of features among them."""
    members: dict[str, Any] = to_builtins(counts)
    of_features: dict[str, int] = members.pop("features")
    return members | of_features


COMMANDS: Final = BackupCommands(back_up=_back_up, restore=_restore, release=_release)
