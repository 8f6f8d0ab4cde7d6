"""One replica: reads the records in order, and hands each batch to the index and to the relay (architecture §8)."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import structlog

from ojs_nats import metrics
from ojs_nats.cron import Cron
from ojs_nats.crossings import CrossingRecord
from ojs_nats.errors import OjsError, unavailable
from ojs_nats.job import Job
from ojs_nats.problems import StartupProblem
from ojs_nats.queries import ProjectorStatus
from ojs_nats.store import Store
from ojs_nats.store.api import call
from ojs_nats.store.eventlog import EventLog
from ojs_nats.store.feed import Feed, Record
from ojs_nats.store.lease import Lease
from ojs_nats.store.link import Link
from ojs_nats.store.names import REST
from ojs_nats.store.presence import WorkerRecord
from ojs_nats.workflows.record import Workflow
from ojs_projector.answers import Answers
from ojs_projector.gauges import Gauges
from ojs_projector.keeper import Keeper
from ojs_projector.model import Model, Seen
from ojs_projector.place import Place
from ojs_projector.pruning import Pruner
from ojs_projector.reached import Reached
from ojs_projector.relay import Relay
from ojs_projector.safety import SafetyNet

__all__ = ["Projector"]

log = structlog.get_logger(__name__)

PACE_S: Final = 0.02
"""Between two reads that were not full: a larger batch costs less for each record, on the server, too."""
PARK_S: Final = 0.25
_AT_ONCE: Final = 100
"""Records that are taken up before somebody who asks has a turn: 15 to 30 ms, if they are of old jobs."""
_PAUSE_S: Final = 0.5
_FULL_S: Final = 5.0
_SAFETY_S: Final = 10.0
_FORGET_S: Final = 10.0

_decode_job: Final = msgspec.json.Decoder(Job).decode
_decode_workflow: Final = msgspec.json.Decoder(Workflow).decode
_decode_worker: Final = msgspec.json.Decoder(WorkerRecord).decode
_decode_cron: Final = msgspec.json.Decoder(Cron).decode
_decode_crossing: Final = msgspec.json.Decoder(CrossingRecord).decode


class Projector:
    """`folder` holds the index; None keeps it in memory, to be built anew at every start.

    `searched` is how many bytes of a job's arguments can be searched, `copied` how many bytes a job may have of which a copy
    is kept for lists; 0 for none. `dead_letters` is how many each queue keeps that doesn't say otherwise; 0 for any number.
    """

    def __init__(self, store: Store, folder: Path | None, *, searched: int = 0, copied: int = 0, dead_letters: int = 0) -> None:
        self._store = store
        self._searched = searched
        self._copied = copied
        self._place = Place(folder) if folder is not None else None
        self._links: list[Link] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._answers: Answers | None = None
        self._relay: Relay | None = None
        self._model: Model | None = None
        self._feed: Feed | None = None
        self._safety: SafetyNet | None = None
        self._keeper: Keeper | None = None
        self._dead_letters = dead_letters
        self._lag_ms = 0
        self._stop_gauges: Callable[[], None] | None = None
        self.reached = Reached()

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
        self._model = model = Model(path, self._searched, self._copied)
        model.attach(*await self._bucket())
        model.spans.begin(store.clock.now(), await self._last_span(), store.instance)
        self.reached.advance(model.applied)
        reading = await self._connect("feed")
        relaying = await self._connect("relay")
        self._feed = feed = Feed(reading, store.config, f"projector-{store.instance}")
        await feed.seek(model.applied + 1)
        self._relay = relay = Relay(
            Lease(store.link, store.config, "events"),
            EventLog(relaying, store.config),
            store.clock,
            store.config,
            store.instance,
        )
        store.on_reset(relay.clear)
        self._safety = safety = SafetyNet(store, model)
        self._keeper = keeper = Keeper(store, model, lambda: relay.leading)
        store.on_reset(keeper.clear)
        pruner = Pruner(store, model, self.reached, lambda: relay.leading, self._dead_letters)
        self._answers = Answers(store, model, self.reached, relay, self.status, self._dead_letters)
        await self._answers.start()
        await store.queues.all()  # from now on they are known by heart
        await relay.start()
        await keeper.start()
        self._tasks = [
            asyncio.create_task(self._read(model, feed, relay, keeper, self._answers), name="projector"),
            asyncio.create_task(self._tend(model, relay, safety), name="projector-tend"),
            asyncio.create_task(pruner.run(), name="projector-prune"),
        ]
        self._stop_gauges = metrics.refresh_with(Gauges(model, self.status, store.queues.bound).refresh)
        log.info("following the job records", after=model.applied, rebuilding=model.partial)

    async def stop(self) -> None:
        if self._stop_gauges is not None:
            self._stop_gauges()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._keeper is not None:
            await self._keeper.stop()
        if self._relay is not None:
            await self._relay.stop()
        if self._answers is not None:
            await self._answers.stop()
        if self._feed is not None:
            self._feed.close()
        for link in self._links:
            await link.close()
        if self._model is not None:
            self._model.close()
        if self._place is not None:
            self._place.release()

    def status(self) -> ProjectorStatus:
        model, relay, safety = self._model, self._relay, self._safety
        assert model is not None and relay is not None and safety is not None, "it has not started"  # noqa: PT018
        return ProjectorStatus(
            instance=self._store.instance,
            applied=model.applied,
            lag_ms=self._lag_ms,
            relaying=relay.leading,
            relayed=relay.relayed,
            events=relay.events,
            repaired=dict(safety.found),
            partial=model.partial,
            progress=model.progress,
        )

    async def _connect(self, purpose: str) -> Link:
        link = await self._store.connect(f"ojs-projector-{purpose}")
        self._links.append(link)
        return link

    async def _bucket(self) -> tuple[str, int]:
        """Name and birth of the bucket's stream, and its last sequence."""
        stream = self._store.config.records_stream
        info = await call(self._store.link, f"STREAM.INFO.{stream}")
        if "error" in info:
            raise unavailable(f"NATS refused to describe stream {stream}: {info['error'].get('description')}")
        return f"{stream} {info['created']}", int(info["state"]["last_seq"])

    async def _last_span(self) -> Record | None:
        """The statistics that were written last, as far as one can tell: their subjects' last word may be that one has left."""
        found = await self._store.records.leader_raw(self._store.config.span(REST))
        return None if found is None else Record("stats", found[0], 0, "", found[1], None)

    # Reading

    async def _read(self, model: Model, feed: Feed, relay: Relay, keeper: Keeper, answers: Answers) -> None:
        broken = full = False
        while True:
            try:
                if broken:
                    await self._rebuild(model, feed, answers)
                elif full:
                    await feed.seek(model.applied + 1)
                broken = full = False
                await self._turn(model, feed, relay, keeper, answers)
            except OjsError as error:
                log.warning("reading waits", reason=error.message)
                await asyncio.sleep(_PAUSE_S)
            except sqlite3.DatabaseError as error:
                full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
                broken = not full
                if full:
                    log.error("the index can't be written: its disk is full; reading waits until there is room")
                    await asyncio.sleep(_FULL_S)
                else:
                    log.error("the index is broken and is built anew", error=str(error))
                    await asyncio.sleep(_PAUSE_S)
            except Exception:
                log.exception("reading failed")
                await asyncio.sleep(_PAUSE_S)

    async def _turn(self, model: Model, feed: Feed, relay: Relay, keeper: Keeper, answers: Answers) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        wanted = relay.wanted
        if wanted is not None:
            # One reader serves index and relay: the index passes over what it has.
            await feed.seek(min(wanted, model.applied + 1))
            relay.begin()
        at = self._store.clock.now()
        batch = await feed.next(PARK_S)
        seen = [_seen(record) for record in batch.records]
        building = model.partial
        at_once = max(1, len(seen)) if building else _AT_ONCE
        for start in range(0, len(seen), at_once):
            if start:
                self.reached.advance(model.applied)
                await asyncio.sleep(0)
            model.apply(seen[start : start + at_once])
        if building and (model.complete or not batch.behind):
            model.reached_end()
            await model.make_orders()
            await answers.fit()
            log.info("the index is complete", applied=model.applied)
        if not batch.behind:
            keeper.caught_up(model.applied, at)
        self._lag_ms = self._store.clock.now() - batch.records[-1].at if batch.behind and batch.records else 0
        self.reached.advance(model.applied)
        await relay.take(seen)
        if not batch.behind:
            await self._pause(began + PACE_S - loop.time())

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            try:
                await asyncio.wait_for(self.reached.wanted.wait(), seconds)
            except TimeoutError:
                pass

    async def _rebuild(self, model: Model, feed: Feed, answers: Answers) -> None:
        model.rebuild(*await self._bucket())
        await answers.fit()
        model.spans.begin(self._store.clock.now(), await self._last_span(), self._store.instance)
        await feed.seek(1)

    # Housekeeping

    async def _tend(self, model: Model, relay: Relay, safety: SafetyNet) -> None:
        while True:
            await asyncio.sleep(_SAFETY_S)
            try:
                model.forget(self._store.clock.now())
                if relay.leading and not model.partial:
                    await safety.look()
            except OjsError as error:
                log.warning("the safety net waits", reason=error.message)
            except Exception:
                log.exception("housekeeping failed")


def _seen(record: Record) -> Seen:
    try:
        if record.kind == "job":
            return Seen(record, _decode_job(record.data))
        if record.kind == "workflow" and record.data:
            return Seen(record, None, _decode_workflow(record.data))
        if record.kind == "worker" and record.data:
            return Seen(record, None, None, _decode_worker(record.data))
        if record.kind == "cron" and record.data:
            return Seen(record, None, cron=_decode_cron(record.data))
        if record.kind == "crossing" and record.data:
            return Seen(record, None, crossing=_decode_crossing(record.data))
    except (msgspec.DecodeError, ValueError) as error:
        log.error("record can't be read", kind=record.kind, id=record.job_id, sequence=record.sequence, error=str(error))
    return Seen(record, None)
