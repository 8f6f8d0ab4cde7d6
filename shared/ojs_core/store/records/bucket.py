"""What everything in the store stands on."""

from __future__ import annotations

from typing import NamedTuple

from ojs_core.jetstream.clock import ServerClock
from ojs_core.jetstream.connection import Connection
from ojs_core.jetstream.subjects import StoreConfig
from ojs_core.jetstream.watch import Watches
from ojs_core.store.records.commit import Committer
from ojs_core.store.records.kept import KeptTimings
from ojs_core.store.records.records import Records
from ojs_core.store.records.writer import Writer


class Bucket(NamedTuple):
    """The bucket of one process: its connections, names and clock, and how its records are read and written."""

    nats: Connection
    """For small requests."""
    bulk: Connection
    """For answers that come in numbers."""
    config: StoreConfig
    clock: ServerClock
    records: Records
    committer: Committer
    writer: Writer
    watches: Watches
    """Small records that this process keeps a copy of."""
    kept: KeptTimings = KeptTimings()
