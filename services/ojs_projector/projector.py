"""One replica: reads the records in order, and hands each batch to the index and to the relay."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import start_loop, stop_tasks
from ojs_engine.base.problems import StartupProblem
from ojs_engine.base.waiting import within
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.contents import stream_info
from ojs_engine.jetstream.event_log import EventLog
from ojs_engine.jetstream.feed import Feed, Record
from ojs_engine.jetstream.lease import Lease
from ojs_engine.jetstream.reading import RecordReader, Unreadable
from ojs_engine.jetstream.subjects import REST
from ojs_engine.store.queues.queues import queue_reader
from ojs_engine.store.records.records import job_reader
from ojs_engine.store.store import Store
from ojs_engine.store.workers.presence import worker_reader
from ojs_engine.telemetry import metrics
from ojs_index.asking.messages import ProjectorStatus
from ojs_index.followed import Followed, Keeper
from ojs_index.relaying.event_sources import EventSources
from ojs_index.relaying.relay import Relay, RelayTimings
from ojs_index.safety_net.completeness import Completeness, CompletenessTimings
from ojs_index.safety_net.pruning import Pruner, PruningTimings
from ojs_index.safety_net.safety import SafetyNet, SafetyTimings
from ojs_index.sqlite.checkpoints import Checkpoints
from ojs_index.sqlite.file import IndexFile
from ojs_index.sqlite.model import IndexTimings, Model, Seen
from ojs_index.sqlite.orders import Ordering
from ojs_index.sqlite.watermark import Watermark
from ojs_link.timings import Order, Timings
from ojs_projector.answers import Answers
from ojs_projector.gauges import Gauges

log = structlog.get_logger(__name__)

_AT_ONCE: Final = 250
"""Records that are taken up before somebody who asks has a turn: 10 to 20 ms, more if they are of old jobs."""


class ProjectorTimings(Timings, frozen=True, kw_only=True):
    """The times of a projector's parts, and how much they do at once: only tests have others than these."""

    full_s: float = 5.0
    """How long reading rests while the index's disk is full."""
    safety_s: float = 5.0
    """How often lost hints are looked for."""
    wait_s: float = 2.0
    """How long a question waits until the index has come so far."""
    partial_wait_s: float = 0.5
    """The same while the index is being built, before it is looked whether another one is whole."""
    pace_s: float = 0.25
    """Between two reads that were not full: a larger batch costs less for each record, in nats-server, too, and a job
    that has moved on meanwhile is read once.
    """
    park_s: float = 1.5
    """How long a read waits for the first record: longer than a relay's lease, which is one, waits for its renewal."""
    pause_s: float = 0.5
    """The pause behind a read that failed."""
    queues_s: float = 30.0
    """How long a start waits for the settings of queues, which a NATS that has much else to do sends late."""
    index: IndexTimings = IndexTimings()
    """The index."""
    relay: RelayTimings = RelayTimings()
    """Relaying events."""
    safety: SafetyTimings = SafetyTimings()
    """Repairing what was lost."""
    completeness: CompletenessTimings = CompletenessTimings()
    """Comparing index and bucket."""
    pruning: PruningTimings = PruningTimings()
    """Pruning dead letters."""
    features: tuple[Timings, ...] = ()
    """Those of features that aren't the usual ones."""
    usual: ClassVar[Order] = (("partial_wait_s", "wait_s", "a question would wait longer while the index is built"),)


COPIED_BYTES: Final = 4_000
"""The largest job of which the index keeps a copy, so that lists need not read it from NATS."""


class Projector:
    """`folder` holds the index; None keeps it in memory, to be built anew at every start.

    `copied` is how many bytes a job may have of which a copy is kept for lists; 0 for none. `dead_letters` is how many each
    queue keeps that doesn't say otherwise; 0 for any number. `features` are the records of features that are followed.
    """

    def __init__(
        self,
        store: Store,
        folder: Path | None,
        *,
        copied: int = COPIED_BYTES,
        dead_letters: int = 0,
        features: Sequence[Followed] = (),
        timings: ProjectorTimings = ProjectorTimings(),
        ordering: Callable[[Path], Ordering] = Ordering,
    ) -> None:
        """`timings` and `ordering` (which makes the end of a rebuild) are for tests."""
        self._ordering = ordering
        self._timings = timings
        self._store = store
        self._copied = copied
        self._features = features
        self._readers = {one.reader.kind: one.reader for one in features}
        self._place = IndexFile(folder) if folder is not None else None
        self._connections: list[Connection] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._answers: Answers | None = None
        self._relay: Relay | None = None
        self._model: Model | None = None
        self._checkpoints: Checkpoints | None = None
        self._feed: Feed | None = None
        self._safety: SafetyNet | None = None
        self._keepers: list[Keeper] = []
        self._dead_letters = dead_letters
        self._lag_ms = 0
        self._broken = self._full = False
        """What the last write to the index met: a file that can't be read any more, or a full disk."""
        self._completeness: Completeness | None = None
        self._gone = False
        """Whether the index has what is gone from the bucket."""
        self._stop_gauges: Callable[[], None] | None = None
        self.reached = Watermark()

    async def start(self) -> None:
        """Begin to read; what was stored before is read while queries are answered already, as partial.

        Raises StartupProblem if the index has no place, or NATS goes away meanwhile.
        """
        try:
            await self._start()
        except OjsError as error:
            raise StartupProblem(f"the projector can't start: {error.message}") from None

    async def _start(self) -> None:
        store = self._store
        path = self._place.take() if self._place is not None else None
        try:
            self._model = model = Model(path, self._copied, self._ordering, self._timings.index, self._features)
        except (OSError, sqlite3.Error) as error:
            if self._place is None:
                raise
            raise self._place.unusable(error) from error
        model.attach(*await self._bucket())
        self._checkpoints = Checkpoints(path) if path is not None else None
        model.counter.begin(store.clock.now(), await self._last_counted(model), store.instance)
        self.reached.advance(model.applied)
        reading = await self._connect("feed")
        relaying = await self._connect("relay")
        self._feed = feed = Feed(reading, store.config, f"projector-{store.instance}", self._readers)
        await feed.seek(model.applied + 1)
        sources = EventSources(store, self._features)
        self._relay = relay = Relay(
            Lease(store.nats, store.config, "events"),
            EventLog(relaying, store.config),
            store.clock,
            store.config,
            sources.of,
            sources.creation,
            store.instance,
            self._timings.relay,
        )
        store.on_reset(relay.clear)
        self._safety = safety = SafetyNet(store, model, self._features, self._timings.safety, self._timings.features)
        self._completeness = completeness = Completeness(store, model, self._timings.completeness)
        self._keepers = [
            one.keeper(store, model, lambda: relay.leading, self._timings.features)
            for one in self._features
            if one.keeper is not None
        ]
        for keeper in self._keepers:
            store.on_reset(keeper.clear)
        pruner = Pruner(store, model, self.reached, lambda: relay.leading, self._dead_letters, self._timings.pruning)
        self._answers = Answers(
            store,
            model,
            self.reached,
            relay,
            self.status,
            self._dead_letters,
            self._timings.pruning.round_ms,
            self._timings.wait_s,
            self._timings.partial_wait_s,
            {name: question for one in self._features for name, question in one.questions.items()},
        )
        await self._answers.start()
        await self._know_queues()
        await relay.start()
        for keeper in self._keepers:
            await keeper.start()
        self._tasks = [
            start_loop("projector", partial(self._read, model, feed, relay, self._answers)),
            start_loop(
                "projector-tend", partial(self._tend, model, relay, safety, completeness), every_s=self._timings.safety_s
            ),
            start_loop("projector-prune", pruner.run),
        ]
        self._stop_gauges = metrics.refresh_with(Gauges(model, self.status, store.queues.bound, store.clock.now).refresh)
        log.info("following the job records", after=model.applied, rebuilding=model.partial)

    async def stop(self) -> None:
        if self._stop_gauges is not None:
            self._stop_gauges()
        await stop_tasks(self._tasks)
        for keeper in self._keepers:
            await keeper.stop()
        if self._relay is not None:
            await self._relay.stop()
        if self._answers is not None:
            await self._answers.stop()
        if self._feed is not None:
            self._feed.close()
        for nats in self._connections:
            await nats.close()
        await self._leave_file()
        if self._model is not None:
            self._model.close()
        if self._place is not None:
            self._place.release()

    def status(self) -> ProjectorStatus:
        model, relay, safety, completeness = self._model, self._relay, self._safety, self._completeness
        assert model is not None and relay is not None and safety is not None, "it has not started"  # noqa: PT018
        gone = {"record": completeness.gone} if completeness is not None and completeness.gone else {}
        return ProjectorStatus(
            instance=self._store.instance,
            applied=model.applied,
            lag_ms=self._lag_ms,
            relaying=relay.leading,
            relayed=relay.relayed,
            events=relay.events,
            repaired=safety.found | gone,
            partial=model.partial,
            progress=model.progress,
        )

    async def _connect(self, purpose: str) -> Connection:
        nats = await self._store.connect(f"{self._store.config.namespace}-projector-{purpose}")
        self._connections.append(nats)
        return nats

    async def _know_queues(self) -> None:
        """Return once all queues are known, by heart from now on. Raises OjsError where NATS is too slow for long."""
        clock = asyncio.get_running_loop().time
        late = clock() + self._timings.queues_s
        while True:
            try:
                await self._store.queues.all()
            except OjsError:
                if clock() > late:
                    raise
                await asyncio.sleep(self._timings.pause_s)
            else:
                return

    async def _bucket(self) -> tuple[str, int]:
        """Name and birth of the bucket's stream, and its last sequence."""
        stream = self._store.config.records_stream
        info = await stream_info(self._store.nats, stream)
        return f"{stream} {info.created}", info.state.last_seq

    async def _last_counted(self, model: Model) -> Record | None:
        """Return the record of counts that was written last, as far as one can tell.

        The last word of their subjects may be that one has left.
        """
        kind = model.counted_kind
        if kind is None:
            return None
        found = await self._store.records.leader_raw(self._store.config.record(kind, REST))
        return None if found is None else Record(kind, found[0], 0, "", found[1], None)

    # Reading

    async def _read(self, model: Model, feed: Feed, relay: Relay, answers: Answers) -> None:
        try:
            if self._broken or self._gone:
                await self._rebuild(model, feed, answers)
            elif self._full:
                await feed.seek(model.applied + 1)
            self._broken = self._full = self._gone = False
            await self._turn(model, feed, relay, answers)
        except sqlite3.DatabaseError as error:
            # What was taken up and is taken back now has to be read again before anybody is answered by it.
            self.reached.fall_back(model.applied)
            self._full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
            self._broken = not self._full
            if self._full:
                log.error("the index can't be written: its disk is full; reading waits until there is room")
                await asyncio.sleep(self._timings.full_s)
            else:
                log.error("the index is broken and is built anew", error=str(error))
                await asyncio.sleep(self._timings.pause_s)

    async def _turn(self, model: Model, feed: Feed, relay: Relay, answers: Answers) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        wanted = relay.wanted
        if wanted is not None:
            # One reader serves index and relay: the index passes over what it has.
            await feed.seek(min(wanted, model.applied + 1))
            relay.begin()
        at = self._store.clock.now()
        batch = await feed.next(self._timings.park_s)
        seen = [_seen(record, self._readers) for record in batch.records]
        building = model.partial
        at_once = max(1, len(seen)) if building else _AT_ONCE
        for start in range(0, len(seen), at_once):
            if start:
                self.reached.advance(model.applied)
                await asyncio.sleep(0)
            model.apply(seen[start : start + at_once])
            await self._keep_up(model)
        if building and (model.complete or not batch.behind):
            model.reached_end()
            await model.make_orders()
            await answers.fit()
            log.info("the index is complete", applied=model.applied)
        if not batch.behind:
            model.counter.caught_up(model.applied)
            for keeper in self._keepers:
                keeper.caught_up(at)
        if not seen:
            model.save()
            await self._keep_up(model)
        self._lag_ms = self._store.clock.now() - batch.records[-1].at if batch.behind and batch.records else 0
        self.reached.advance(model.applied)
        await relay.take(seen)
        if not batch.behind:
            await self._pause(began + self._timings.pace_s - loop.time())

    async def _keep_up(self, model: Model) -> None:
        if self._checkpoints is not None and model.saved:
            await self._checkpoints.keep_up()

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            await within(seconds, self.reached.wanted)

    async def _rebuild(self, model: Model, feed: Feed, answers: Answers) -> None:
        bucket = await self._bucket()
        await self._leave_file()
        model.rebuild(*bucket)
        await answers.fit()
        model.counter.begin(self._store.clock.now(), await self._last_counted(model), self._store.instance)
        await feed.seek(1)

    async def _leave_file(self) -> None:
        """Nothing but the model has the file open afterwards."""
        if self._checkpoints is not None:
            with contextlib.suppress(sqlite3.DatabaseError):
                await self._checkpoints.ended()

    # Housekeeping

    async def _tend(self, model: Model, relay: Relay, safety: SafetyNet, completeness: Completeness) -> None:
        model.forget(self._store.clock.now())
        if model.partial:
            return
        if relay.leading:
            await safety.look()
        if await completeness.look():
            self._gone = True


def _seen(record: Record, features: Mapping[str, RecordReader[Any]]) -> Seen:
    """What a record is of; whatever can't be read is noted and carries on as such."""
    if not record.data:
        return Seen(record, None)
    name, body = record.job_id, record.data
    try:
        match record.kind:
            case "job":
                return Seen(record, job_reader.decode(name, body))
            case "worker":
                return Seen(record, None, None, worker_reader.decode(name, body))
            case "queue":
                queue_reader.decode(name, body)
            case kind if kind in features:
                return Seen(record, None, features[kind].decode(name, body))
            case _:
                pass
    except Unreadable as problem:
        problem.note(record.sequence)
        return Seen(record, None, problem=problem.problem)
    return Seen(record, None)
