"""What everything in the store stands on."""

from __future__ import annotations

from typing import NamedTuple, TypeVar

from ojs_engine.base.timings import of_kind
from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.jetstream.watch import Watches
from ojs_engine.store.records.backoff import Tries
from ojs_engine.store.records.commit import Committer
from ojs_engine.store.records.kept import KeptTimings
from ojs_engine.store.records.records import Records
from ojs_engine.store.records.write_timings import WriteTimings
from ojs_engine.store.records.writer import Writer
from ojs_link.timings import Timings

T = TypeVar("T", bound=Timings)


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
    writes: WriteTimings = WriteTimings()
    features: tuple[Timings, ...] = ()
    """Durations of features that aren't the usual ones."""

    def timings(self, kind: type[T]) -> T:
        """Return the durations of a feature."""
        return of_kind(kind, self.features)

    def tries(self, budget_s: float | None = None) -> Tries:
        """As many tries of a compare-and-swap as there are in so many seconds; None for the usual ones."""
        return Tries(self.clock, self.writes, self.writes.budget_s if budget_s is None else budget_s)
