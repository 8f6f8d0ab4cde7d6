"""Queue records: read, changed and known by heart, and the pause that holds on every gateway at once.

While a queue is paused its durables do not exist. Who makes one makes it paused, reads the record on the leader and
only then lets it go or takes it away again; the pause deletes all of them after its record is stored, so a durable
that was being made meanwhile is gone before anybody can let it go (docs/adr/029).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import structlog

from ojs_engine.domain.job import Job
from ojs_engine.domain.queues.admission import QueueSettings, admitted
from ojs_engine.domain.queues.config import DEFAULT_QUEUE, MAINTENANCE, NOT_SET, QueueConfig, layered
from ojs_engine.domain.queues.record import Maintenance, QueueRecord, RestoreMark, maintained, paused, resumed
from ojs_engine.domain.transitions import Moment
from ojs_engine.jetstream.consumer_names import ConsumerNames
from ojs_engine.jetstream.consumers import remove, remove_all
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.jetstream.watch import WatchedEntry
from ojs_engine.store.gates import QueueGate
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.documents import Beside, Documents

log = structlog.get_logger(__name__)

DecideQueue = Callable[[QueueRecord | None, Moment], QueueRecord | None]
"""What becomes of a record; None leaves it as it is."""

_encode: Final = msgspec.json.Encoder().encode


def _sound(token: str, record: QueueRecord) -> None:
    if record.name.replace(".", "_") != token:
        raise ValueError("it is the record of another queue")


queue_reader: Final = RecordReader("queue", msgspec.json.Decoder(QueueRecord).decode, _sound)


class Queues:
    """The queues that somebody configured."""

    def __init__(self, bucket: Bucket) -> None:
        self._nats = bucket.nats
        self._clock = bucket.clock
        self._config = bucket.config
        self._consumers = ConsumerNames(bucket.nats, bucket.config.ready_stream)
        self._records = bucket.records
        self._documents = Documents(bucket, bucket.config.queue, queue_reader, lambda record, op: record.op == op)
        subjects = [bucket.config.queue(ANY)]
        self._watch = bucket.watches.add("queues", subjects, self._changed)
        self._kept = bucket.kept
        self._read: dict[str, tuple[WatchedEntry, QueueRecord | None]] = {}
        """By subject: what was stored, and the record that it is."""
        self._known: dict[str, QueueRecord] = {}
        self._settings: dict[str, QueueSettings] = {}
        self.gate_of: Callable[[QueueConfig], QueueGate | None] | None = None
        """Makes the gate of a queue of its settings, if that is some feature's."""
        self._gates: dict[str, QueueGate] = {}
        self._default_gate: QueueGate | None = None
        self._common = NOT_SET
        self._default: QueueSettings | None = None
        self._maintenance: QueueRecord | None = None
        self._waits: bool | None = None
        """Whether the system waits for its release; None until somebody asks."""
        self.resumed: list[Callable[[str], None]] = []
        """Called with the name of each queue that may be fetched from again, by whomever it was resumed."""

    # Known by heart

    async def settings(self, queue: str) -> QueueSettings | None:
        """How a queue stands, as of some milliseconds ago; None if nothing is set for it."""
        await self._load()
        return self._settings.get(queue, self._default)

    def config(self, queue: str) -> QueueConfig:
        """What is set for a queue, of what `settings` or `admit` have found before."""
        settings = self._settings.get(queue, self._default)
        return NOT_SET if settings is None else settings.config

    def gate(self, queue: str) -> QueueGate | None:
        """Return the gate that a queue has by its settings; as `config`."""
        return self._gates.get(queue) if queue in self._settings else self._default_gate

    def bound(self, queue: str) -> int:
        """How many jobs of a queue may wait, 0 if any number; as `config`."""
        settings = self._settings.get(queue, self._default)
        return 0 if settings is None else settings.config.max_size or 0

    async def admit(self, draft: Job) -> Job:
        """A job that is about to be pushed, with what it leaves to its queue. Raises OjsError for what its queue refuses."""
        if not self._watch.loaded:
            await self._load()
        settings = self._settings.get(draft.queue, self._default)
        return draft if settings is None else admitted(draft, settings)

    async def held(self, queue: str) -> bool:
        """Whether nothing may be fetched from a queue, as of at most three seconds ago."""
        await self._load()
        if self._watch.fresh:
            return self._held_now(queue) or self._under_maintenance()
        return await self.surely_held(queue)

    async def surely_held(self, queue: str) -> bool:
        """The same on the leader's word."""
        now = self._clock.now()
        records = await asyncio.gather(self._last_of(queue), self._last_of(MAINTENANCE))
        return any(record is not None and record.holds_at(now) for record in records)

    async def _last_of(self, queue: str) -> QueueRecord | None:
        """Return as `get`, or the record that is known where the leader has no trace of one."""
        revision, record = await self._documents.read(queue)
        if not revision:
            return self._maintenance if queue == MAINTENANCE else self._known.get(queue)
        return None if record is None or record.state == "deleted" else record

    async def under_maintenance(self) -> bool:
        """Return whether all queues are held, as of at most three seconds ago: by an operator, or after a restore."""
        await self._load()
        if self._watch.fresh:
            return self._under_maintenance()
        record = await self._last_of(MAINTENANCE)
        return record is not None and record.holds_at(self._clock.now())

    async def restored(self) -> RestoreMark | None:
        """Return the mark of a restored system that waits for its release, on the leader's word."""
        record = await self.get(MAINTENANCE)
        return None if record is None else record.restored

    async def wait_for_release(self) -> bool:
        """Return whether a restored system waits for its release, on the leader's word. Without a mark it never will.

        A release leaves a record without the mark, so one that is gone without a trace was lost: the wait goes on.
        Raises OjsError backend_unavailable.
        """
        if self._waits is not False:
            revision, record = await self._documents.read(MAINTENANCE)
            if revision or not self._waits:
                self._waits = record is not None and record.restored is not None
        return self._waits

    async def all(self) -> Mapping[str, QueueRecord]:
        """Every queue that has a record and is not deleted, by name, as of some milliseconds ago.

        Their number is that of what people set up.
        """
        await self.settings(DEFAULT_QUEUE)
        return self._known

    async def _load(self) -> None:
        """Begin to follow the records.

        The mark of a restore is read from the leader first: another replica may lack it yet.
        """
        if self._watch.loaded:
            return
        subject = self._config.queue(MAINTENANCE)
        said = await self._records.latest_raw(subject)
        await self._watch.begin()
        if said is not None and said[1]:
            self._watch.put(subject, *said)

    async def clear(self) -> None:
        """Ask again whether the system waits for its release (reset)."""
        self._waits = None

    # Reading and changing

    async def get(self, queue: str) -> QueueRecord | None:
        """The record as the leader has it; None if there is none or it is deleted."""
        _, record = await self._documents.read(queue)
        return None if record is None or record.state == "deleted" else record

    async def change(self, queue: str, decide: DecideQueue) -> QueueRecord | None:
        """Apply a pure decision to a record; what stands afterwards. Raises whatever `decide` raises."""
        changed = await self._documents.change(queue, decide, self._beside)
        if changed.new is not None and changed.new is not changed.old:
            self._watch.put(self._config.queue(queue), changed.revision, _encode(changed.new))
        return changed.new

    def _beside(self, _old: QueueRecord | None, new: QueueRecord) -> Beside:
        return Beside(ttl_s=self._kept.deleted_s if new.state == "deleted" else None)

    async def pause(self, queue: str) -> QueueRecord:
        """Return when no gateway can fetch from the queue any more. To be repeated if it fails."""
        record = await self.change(queue, lambda old, moment: paused(old, queue, moment))
        assert record is not None
        await self._take_durables(queue)
        return record

    async def hold_all(self, plan: Maintenance) -> QueueRecord:
        """Return when no gateway can fetch from any queue any more. To be repeated if it fails."""
        record = await self.change(MAINTENANCE, lambda old, moment: maintained(old, moment, plan))
        assert record is not None
        await remove_all(self._nats, self._config.ready_stream)
        return record

    async def resume(self, queue: str) -> QueueRecord | None:
        """Let a queue go on; None if there is nothing to know of it. Gateways hear of it within milliseconds."""
        return await self.change(queue, lambda old, moment: resumed(old, queue, moment))

    async def _take_durables(self, queue: str) -> None:
        """Delete the durables that a queue has; returns when none is left that could hand out a token.

        Tokens in somebody's hands are handed out again by the next durable, and found to be stale if they were claimed.
        """
        there = self._config.consumers_of(queue, await self._consumers.now())
        await remove(self._nats, self._config.ready_stream, there)

    def _token(self, subject: str) -> str:
        return subject[len(self._config.queue("")) :]

    # Following

    def _changed(self) -> None:
        """Lay the layers over each other anew. A record that is as it was is neither decoded nor laid over again."""
        before, common_before, read = self._known, self._common, self._read
        self._read = {
            subject: known
            if (known := read.get(subject)) is not None and known[0] == entry
            else (entry, queue_reader.read(self._token(subject), *entry))
            for subject, entry in self._watch.entries.items()
        }
        records = [record for _, record in self._read.values()]
        self._known = {record.name: record for record in records if record is not None and record.state != "deleted"}
        policy = self._known.pop(DEFAULT_QUEUE, None)
        self._maintenance = self._known.pop(MAINTENANCE, None)
        self._common = common = NOT_SET if policy is None else policy.config
        self._default = None if common == NOT_SET else QueueSettings("active", common)
        settings = self._settings if common == common_before else {}
        self._settings = {
            name: settings[name]
            if name in settings and before.get(name) is record
            else QueueSettings(record.state, layered(common, record.config))
            for name, record in self._known.items()
        }
        if self.gate_of is not None:
            gates = {name: self.gate_of(one.config) for name, one in self._settings.items()}
            self._gates = {name: gate for name, gate in gates.items() if gate is not None}
            self._default_gate = None if self._default is None else self.gate_of(common)
        for name, record in before.items():
            if record.held and not self._held_now(name):
                for tell in self.resumed:
                    tell(name)

    def _under_maintenance(self) -> bool:
        return self._maintenance is not None and self._maintenance.holds_at(self._clock.now())

    def _held_now(self, queue: str) -> bool:
        record = self._known.get(queue)
        return record is not None and record.held
