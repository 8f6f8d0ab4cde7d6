"""What is noted of workers beside their records: known by heart in every gateway, so that the answer to a heartbeat,
or to a fetch, needs no read.

A directive is what an operator has told a worker to do. It is for one life of the worker: the process that it was
when the directive was given, as far as the worker tells its processes apart. Another note says that the worker itself
is about to leave, a third which jobs it can run (docs/adr/029).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import ClassVar, Final, NamedTuple

import msgspec
import structlog
from msgspec import Struct

from ojs_api import words
from ojs_engine.base.errors import OjsError, not_found
from ojs_engine.base.numbers import At, Whole
from ojs_engine.domain.handlers import Handled, Handler
from ojs_engine.jetstream.api import put, put_if
from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.contents import message
from ojs_engine.jetstream.lost_records import Known
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import StoreConfig, Wildcard, encode_token
from ojs_engine.jetstream.watch import Watches
from ojs_engine.store.workers.presence import WorkerRecord
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)

Wish = words.Directive

LEAVING: Final = frozenset({"quiet", "drain", "terminate"})
"""What a worker says of itself that takes no more jobs (ojs-graceful-shutdown §5.1)."""
_WHAT: Final = "a note of a worker"
DIRECTIVE: Final = "directive"
LEAVE: Final = "leaving"
HANDLERS: Final = "handlers"


class NoteTimings(Timings, frozen=True, kw_only=True):
    """How long notes of workers are kept."""

    wish_s: int = 7 * 86_400
    """How long a directive waits for a worker that doesn't do what it says."""
    terminate_s: int = 3_600
    """The same, for one that ends it."""
    leaving_s: int = 3_600
    """For one that takes no more jobs: as long as what is known of a worker stays after its last heartbeat."""
    withdrawn_s: int = 3_600
    """For the trace of a note that was withdrawn; gone without one, it counts as lost."""
    handlers_s: int = 7 * 86_400
    """For what a worker can run."""
    renewed_ms: int = 86_400_000
    """After so long a fetch stores that again."""
    order: ClassVar[Order] = (("renewed_ms", "handlers_s", "it would be forgotten while the worker runs"),)

    def directive_s(self, wish: Wish) -> int:
        """Return how long a directive is kept."""
        return self.terminate_s if wish == "terminate" else self.wish_s


class Directive(Struct, frozen=True, omit_defaults=True):
    """`at` in Unix ms; `pid` and `started_at` are those of the worker that it was given to, if it tells them."""

    wish: Wish
    at: At
    pid: Whole | None = None
    started_at: str | None = None

    def meant_for(self, worker: WorkerRecord) -> bool:
        """Whether a worker of the same id is still the same process."""
        return worker.is_process(self.pid, self.started_at)


class DeclaredHandlers(Struct, frozen=True):
    """What a worker has declared that it can run; `at` in Unix ms."""

    at: At
    handlers: tuple[Handler, ...]


class _Declared(NamedTuple):
    sequence: int
    at: int
    handled: Handled


def _sound(_key: str, declared: DeclaredHandlers) -> None:
    Handled(declared.handlers)


handlers_reader: Final = RecordReader("worker", msgspec.json.Decoder(DeclaredHandlers).decode, _sound)
directive_reader: Final = RecordReader("worker", msgspec.json.Decoder(Directive).decode)


class WorkerNotes:
    """One gateway's view of all notes."""

    def __init__(
        self,
        nats: Connection,
        clock: ServerClock,
        config: StoreConfig,
        watches: Watches,
        timings: NoteTimings = NoteTimings(),
    ) -> None:
        self._timings = timings
        self._nats = nats
        self._clock = clock
        self._config = config
        patterns = [self._config.record("worker", Wildcard(f"*.{kind}")) for kind in (DIRECTIVE, LEAVE, HANDLERS)]
        self._watch = watches.add("worker-notes", patterns, self._changed, lasts=self._lasts)
        self._known: dict[str, tuple[int, Directive]] = {}
        self._leaving: frozenset[str] = frozenset()
        self._declared: dict[str, _Declared] = {}

    async def of(self, worker: WorkerRecord) -> Directive | None:
        """What a worker was told, as of some milliseconds ago. Without NATS nothing is known: a heartbeat goes on."""
        await self._begin()
        known = self._known.get(self._subject(worker.id))
        return known[1] if known is not None and known[1].meant_for(worker) else None

    async def unmet(self, worker: WorkerRecord) -> Directive | None:
        """Return what a worker that sends a heartbeat still has to be told. A directive ends when the worker reports
        the state that it asks for (docs/adr/016): what the worker does by itself afterwards stands.

        What can't be ended now is ended by the next heartbeat that reports the state.
        """
        await self._begin()
        subject = self._subject(worker.id)
        known = self._known.get(subject)
        if known is None or not known[1].meant_for(worker):
            return None
        sequence, directive = known
        if worker.state != directive.wish:
            return directive
        try:
            # Only this one: an operator may have given another meanwhile, through another gateway.
            ended = await put_if(self._nats, subject, b"", sequence, _WHAT, ttl_s=self._timings.withdrawn_s)
        except OjsError as error:
            log.debug("a directive isn't ended", reason=error.message)
        else:
            if ended is not None:
                self._watch.put(subject, ended, b"")
        return None

    async def give(self, worker: WorkerRecord, wish: Wish) -> None:
        """Tell a worker by its next heartbeat, through whichever gateway. Raises OjsError backend_unavailable."""
        directive = Directive(wish, self._clock.now(), worker.pid, worker.started_at)
        await self._put(self._subject(worker.id), msgspec.json.encode(directive), self._timings.directive_s(wish))

    async def withdraw(self, worker_id: str, handlers: Sequence[Handler] = ()) -> None:
        """Forget all of a worker that has begun anew, or is gone, but what it can run by its new registration."""
        await self._begin()
        if (subject := self._subject(worker_id)) in self._known:
            await self._put(subject, b"", self._timings.withdrawn_s)
        await self.declare(worker_id, handlers)
        await self._note(worker_id, leaving=False)

    async def heard(self, worker: WorkerRecord) -> bool:
        """Note what a heartbeat says, for fetches through any gateway; writes only when it is another than before.

        What can't be written now is with the next heartbeat. Whether it says for the first time that the worker takes
        no more.
        """
        await self._begin()
        leaving = worker.state in LEAVING
        try:
            return await self._note(worker.id, leaving=leaving) and leaving
        except OjsError as error:
            log.debug("a worker's leave isn't noted", reason=error.message)
            return False

    async def leaving(self, worker_id: str) -> bool:
        """Whether the worker's last heartbeat, as of some milliseconds ago, said that it takes no more jobs."""
        if not self._watch.loaded:
            await self._begin()
        return bool(self._leaving) and self._subject(worker_id, LEAVE) in self._leaving

    async def declare(self, worker_id: str, handlers: Sequence[Handler]) -> None:
        """Note what a worker can run, for fetches through any gateway; nothing takes back what it said before.

        Writes only what is new. Raises OjsError backend_unavailable, invalid_request.
        """
        await self._begin()
        subject = self._subject(worker_id, HANDLERS)
        known = self._declared.get(subject)
        if (known.handled.declared if known is not None else ()) == tuple(handlers):
            return
        if handlers:
            await self._store_handlers(subject, handlers)
        else:
            await self._put(subject, b"", self._timings.withdrawn_s)

    async def handled(self, worker_id: str) -> Handled | None:
        """What a worker can run by its last word, as of some milliseconds ago; None if it has never said so."""
        if not self._watch.loaded:
            await self._begin()
        known = self._declared.get(self._subject(worker_id, HANDLERS)) if self._declared else None
        if known is None:
            return None
        if self._clock.now() - known.at > self._timings.renewed_ms:
            with contextlib.suppress(OjsError):  # there are days left
                await self._store_handlers(self._subject(worker_id, HANDLERS), known.handled.declared)
        return known.handled

    async def declared(self, worker_id: str) -> Handled:
        """Return what a worker can run that says that it has declared it. What isn't known here yet is read.

        Raises OjsError not_found: it was forgotten, and the worker has to declare it again.
        """
        handled = await self.handled(worker_id)
        if handled is None:
            subject = self._subject(worker_id, HANDLERS)
            found = await message(self._nats, self._config.records_stream, {"last_by_subj": subject}, _WHAT)
            if found is not None and found.data:
                self._watch.put(subject, found.seq, found.data)
                handled = await self.handled(worker_id)
        if handled is None:
            raise not_found("worker", worker_id)
        return handled

    async def _store_handlers(self, subject: str, handlers: Sequence[Handler]) -> None:
        record = DeclaredHandlers(self._clock.now(), tuple(handlers))
        await self._put(subject, msgspec.json.encode(record), self._timings.handlers_s)

    async def _note(self, worker_id: str, *, leaving: bool) -> bool:
        """Whether it was another before."""
        if not leaving and not self._leaving:
            return False
        subject = self._subject(worker_id, LEAVE)
        if leaving == (subject in self._leaving):
            return False
        await self._put(subject, b"{}" if leaving else b"", self._timings.leaving_s if leaving else self._timings.withdrawn_s)
        return True

    async def _begin(self) -> None:
        if not self._watch.loaded:
            try:
                await self._watch.begin()
            except OjsError as error:
                log.debug("what is noted of workers isn't known", reason=error.message)

    async def _put(self, subject: str, body: bytes, ttl_s: int) -> None:
        self._watch.put(subject, await put(self._nats, subject, body, ttl_s, _WHAT), body)

    def _lasts(self, subject: str, known: Known) -> int:
        """Return for how many seconds a note still holds; 0 if it is withdrawn, or can't be read."""
        kind, key, at, ttl_s = subject.rpartition(".")[2], self._key(subject), known.at, 0
        if not known.body:
            return 0
        if kind == LEAVE:
            ttl_s = self._timings.leaving_s
        elif kind == HANDLERS:
            if (declared := handlers_reader.read(key, known.sequence, known.body)) is not None:
                at, ttl_s = declared.at, self._timings.handlers_s
        elif (directive := directive_reader.read(key, known.sequence, known.body)) is not None:
            at, ttl_s = directive.at, self._timings.directive_s(directive.wish)
        return ttl_s - (self._clock.now() - at) // 1_000

    def _changed(self) -> None:
        """Read what is new; a note is read once, however many others change."""
        told, self._known = self._known, {}
        declared, self._declared = self._declared, {}
        leaving: set[str] = set()
        for subject, (sequence, body) in self._watch.entries.items():
            kind = subject.rpartition(".")[2]
            if not body:
                continue
            if kind == LEAVE:
                leaving.add(subject)
            elif kind == HANDLERS:
                self._take_handlers(declared.get(subject), subject, sequence, body)
            else:
                self._take_directive(told.get(subject), subject, sequence, body)
        self._leaving = frozenset(leaving)

    def _take_handlers(self, before: _Declared | None, subject: str, sequence: int, body: bytes) -> None:
        if before is not None and before.sequence == sequence:
            self._declared[subject] = before
        elif (record := handlers_reader.read(self._key(subject), sequence, body)) is not None:
            self._declared[subject] = _Declared(sequence, record.at, Handled(record.handlers))

    def _take_directive(self, before: tuple[int, Directive] | None, subject: str, sequence: int, body: bytes) -> None:
        if before is not None and before[0] == sequence:
            self._known[subject] = before
        elif (directive := directive_reader.read(self._key(subject), sequence, body)) is not None:
            self._known[subject] = (sequence, directive)

    def _key(self, subject: str) -> str:
        return subject[len(self._config.record("worker", "")) :]

    def _subject(self, worker_id: str, kind: str = DIRECTIVE) -> str:
        return self._config.record("worker", f"{encode_token(worker_id)}.{kind}")
