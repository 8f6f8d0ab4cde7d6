"""Making a backup of a system that works on meanwhile (docs/adr/085).

A stream is read from its first message to its last, in order. A record that is replaced meanwhile comes once more, as
its newer revision is behind all that has been read. So whoever has come to the end has of each record the revision of
that moment, though no two were read at the same time. The events are read first: no event of the backup tells of what
its records lack.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, Final

from msgspec import Struct

from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.consumers import Delivery
from ojs_engine.jetstream.contents import StreamState, stream_info
from ojs_engine.jetstream.lease import Lease
from ojs_engine.jetstream.ordered_consumer import OrderedConsumer
from ojs_engine.jetstream.streams import is_restoring
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.backup import BackupProblem, FeatureBackup, Kept, Tell
from ojs_features.backup.archive import FORMAT, Manifest, NewArchive, Part, PartManifest, new_archive
from ojs_features.backup.selection import Selection
from ojs_link.timings import Order, Timings

_BATCH: Final = 1_000
_LOOKS: Final = 3
"""So often must a stream say that nothing is left before its last messages are taken for removed: a replica may be behind."""


class BackupTimings(Timings, frozen=True, kw_only=True):
    """How long a backup waits for NATS."""

    wait_s: float = 1.0
    """How long a pull waits for messages."""
    margin_s: float = 10.0
    """How long its answer may take beyond that."""
    away_s: float = 30.0
    """How long NATS may be away before a backup is given up."""
    again_s: float = 0.5
    """The pause behind a read that failed."""
    order: ClassVar[Order] = (("margin_s", "away_s", "one late answer would end the backup"),)


class Taken(Struct, frozen=True, kw_only=True):
    """A backup that was made. `bytes` is its size on disk."""

    namespace: str
    taken_at: int
    records: int
    events: int
    audit: int
    bytes: int
    seconds: float


async def take_backup(
    nats: Connection,
    config: StoreConfig,
    folder: Path,
    tell: Tell,
    features: Sequence[FeatureBackup],
    timings: BackupTimings = BackupTimings(),
) -> Taken:
    """Write a backup of a namespace with these features into a new folder.

    Raises BackupProblem, OjsError backend_unavailable.
    """
    now = asyncio.get_running_loop().time
    began = now()
    clock = ServerClock()
    await _check_there(nats, config)
    await clock.measure(nats, config.records_stream)
    began_at = clock.now()
    selection = Selection(config, features)
    with new_archive(folder) as archive:
        relayed = (await Lease(nats, config, "events").read()).done
        events = await _copy(nats, config.events_stream, archive, "events", tell, timings)
        delivered = await _delivered(nats, config, events.last, features)
        audit = await _copy(nats, config.audit_stream, archive, "audit", tell, timings)
        records = await _copy(nats, config.records_stream, archive, "records", tell, timings, selection.keeps)
        manifest = Manifest(
            format=FORMAT,
            version=version("ojs-nats-server"),
            nats_server=nats.server_version,
            namespace=config.namespace,
            began_at=began_at,
            taken_at=clock.now(),
            parts={"records": records, "events": events, "audit": audit},
            relayed=relayed,
            delivered=delivered,
        )
        size = archive.finish(manifest)
    return Taken(
        namespace=config.namespace,
        taken_at=manifest.taken_at,
        records=records.messages,
        events=events.messages,
        audit=audit.messages,
        bytes=size,
        seconds=round(now() - began, 3),
    )


async def _check_there(nats: Connection, config: StoreConfig) -> None:
    for stream in (config.records_stream, config.events_stream, config.audit_stream):
        answer = await call(nats, f"STREAM.INFO.{stream}")
        if error := answer.get("error"):
            raise BackupProblem(
                f"there is nothing to back up in namespace {config.namespace}: stream {stream} can't be looked at "
                f"({error.get('description')}); name another --namespace, or another --nats"
            )
        if is_restoring(answer["config"]):
            raise BackupProblem(f"stream {stream} is being restored: wait until that is over, or run the restore again")


async def _copy(
    nats: Connection,
    stream: str,
    archive: NewArchive,
    part: Part,
    tell: Tell,
    timings: BackupTimings,
    keeps: Callable[[str], bool] = lambda _subject: True,
) -> PartManifest:
    """Write what a stream holds into a file."""
    state = (await stream_info(nats, stream)).state
    writer = archive.part(part)
    seen = 0
    tell(part, 0, state.messages)
    async for batch in _read(nats, stream, state, timings):
        for one in batch:
            subject = one.message.subject.decode()
            if keeps(subject) and (one.message.data or not subject.startswith("$KV.")):  # a record without a body is a marker
                writer.add(Kept(one.sequence, one.at, subject, one.message.headers or b"", one.message.data))
        seen += len(batch)
        tell(part, seen, seen + batch[-1].pending)
    tell(part, seen, seen)
    return writer.finish(state.last_seq)


async def _read(
    nats: Connection,
    stream: str,
    state: StreamState,
    timings: BackupTimings,
) -> AsyncIterator[list[Delivery]]:
    """Read a stream until nothing is left, and at least all that there was in its `state`."""
    consumer = OrderedConsumer(nats, stream, f"backup-{secrets.token_hex(4)}", [], _BATCH)
    loop = asyncio.get_running_loop()
    following, late, looks = max(1, state.first_seq), loop.time() + timings.away_s, 0
    try:
        while True:
            try:
                if not consumer.live:
                    start = {"deliver_policy": "by_start_sequence", "opt_start_seq": following}
                    if not await consumer.begin(start):
                        looks += 1
                        if following > state.last_seq or looks == _LOOKS:
                            return
                        await asyncio.sleep(timings.again_s)
                        consumer.drop()
                        continue
                found = consumer.take(await consumer.pull(timings.wait_s, timings.margin_s))
            except OjsError:
                if loop.time() > late:
                    raise
                consumer.drop()
                await asyncio.sleep(timings.again_s)
                continue
            late = loop.time() + timings.away_s
            if not found:  # what was left has been removed, or a replica is behind: a new consumer knows
                consumer.drop()
                continue
            yield found
            following, looks = found[-1].sequence + 1, 0
            if not found[-1].pending and following > state.last_seq:
                return
    finally:
        consumer.drop()


async def _delivered(nats: Connection, config: StoreConfig, last: int, features: Iterable[FeatureBackup]) -> dict[str, int]:
    """Up to which event each consumer of a feature has got them, as far as the events in the backup go."""
    found: dict[str, int] = {}
    for feature in features:
        if feature.places is not None:
            found |= await feature.places(nats, config)
    return {name: min(event, last) for name, event in found.items()}
