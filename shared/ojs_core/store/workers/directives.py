"""What operators have told workers to do, and which workers take no more jobs: known by heart in every gateway, so that the
answer to a heartbeat, or to a fetch, needs no read.

A directive is a record of its own beside the worker's, and is for one life of the worker: the process that it was when the
directive was given, as far as the worker tells its processes apart. Another such record says that the worker itself is about to
leave.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
import structlog
from msgspec import Struct

from ojs_core.base.errors import OjsError
from ojs_core.base.numbers import At, Whole
from ojs_core.jetstream.api import put
from ojs_core.jetstream.clock import ServerClock
from ojs_core.jetstream.connection import Connection
from ojs_core.jetstream.reading import RecordReader
from ojs_core.jetstream.subjects import StoreConfig, Wildcard, encode_token
from ojs_core.jetstream.watch import Watch
from ojs_core.store.workers.presence import WorkerRecord

log = structlog.get_logger(__name__)

Wish = Literal["running", "quiet", "terminate"]

_TTL_S: Final[dict[Wish, int]] = {"running": 60, "quiet": 7 * 86_400, "terminate": 3_600}
"""`running` has to be heard once; a worker that terminates says so itself from then on."""
LEAVING: Final = frozenset({"quiet", "drain", "terminate"})
"""What a worker says of itself that takes no more jobs (ojs-graceful-shutdown §5.1)."""
_LEAVING_S: Final = 3_600
"""As long as what is known of a worker stays after its last heartbeat."""
_WITHDRAWN_S: Final = 60
_WHAT: Final = "a worker's directive"
DIRECTIVE: Final = "directive"
LEAVE: Final = "leaving"


class Directive(Struct, frozen=True, omit_defaults=True):
    """`at` in Unix ms; `pid` and `started_at` are those of the worker that it was given to, if it tells them."""

    wish: Wish
    at: At
    pid: Whole | None = None
    started_at: str | None = None

    def meant_for(self, worker: WorkerRecord) -> bool:
        """Whether a worker of the same id is still the same process."""
        return all(
            mine is None or its is None or mine == its
            for mine, its in ((self.pid, worker.pid), (self.started_at, worker.started_at))
        )


directive_reader: Final = RecordReader("worker", msgspec.json.Decoder(Directive).decode)


class Directives:
    """One gateway's view of all directives; `stop` ends it."""

    def __init__(self, nats: Connection, clock: ServerClock, config: StoreConfig, instance: str) -> None:
        self._nats = nats
        self._clock = clock
        self._config = config
        patterns = [self._config.record("worker", Wildcard(f"*.{kind}")) for kind in (DIRECTIVE, LEAVE)]
        self._watch = Watch(nats, config, f"directives-{instance}", patterns, self._changed)
        self._known: dict[str, tuple[int, Directive]] = {}
        self._leaving: frozenset[str] = frozenset()

    async def reset(self) -> None:
        """Forget everything: the bucket was wiped."""
        await self._watch.reset()

    async def stop(self) -> None:
        await self._watch.stop()

    async def of(self, worker: WorkerRecord) -> Directive | None:
        """What a worker was told, as of some milliseconds ago. Without NATS nothing is known: a heartbeat goes on."""
        await self._begin()
        known = self._known.get(self._subject(worker.id))
        return known[1] if known is not None and known[1].meant_for(worker) else None

    async def give(self, worker: WorkerRecord, wish: Wish) -> None:
        """Tell a worker by its next heartbeat, through whichever gateway. Raises OjsError backend_unavailable."""
        directive = Directive(wish, self._clock.now(), worker.pid, worker.started_at)
        await self._put(self._subject(worker.id), msgspec.json.encode(directive), _TTL_S[wish])

    async def withdraw(self, worker_id: str) -> None:
        """Forget what a worker was told and that it was to leave, if so: it has begun anew, or is gone."""
        await self._begin()
        if (subject := self._subject(worker_id)) in self._known:
            await self._put(subject, b"", _WITHDRAWN_S)
        await self._note(worker_id, leaving=False)

    async def heard(self, worker: WorkerRecord) -> bool:
        """Note what a heartbeat says, for fetches through any gateway; writes only when it is another than before.

        What can't be written now is with the next heartbeat. Whether it says for the first time that the worker takes no more.
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

    async def _note(self, worker_id: str, *, leaving: bool) -> bool:
        """Whether it was another before."""
        if not leaving and not self._leaving:
            return False
        subject = self._subject(worker_id, LEAVE)
        if leaving == (subject in self._leaving):
            return False
        await self._put(subject, b"{}" if leaving else b"", _LEAVING_S if leaving else _WITHDRAWN_S)
        return True

    async def _begin(self) -> None:
        if not self._watch.loaded:
            try:
                await self._watch.begin()
            except OjsError as error:
                log.debug("directives aren't known", reason=error.message)

    async def _put(self, subject: str, body: bytes, ttl_s: int) -> None:
        self._watch.put(subject, await put(self._nats, subject, body, ttl_s, _WHAT), body)

    def _changed(self) -> None:
        """Read what is new; a directive is read once, however many others change."""
        before = self._known
        self._known = {}
        leaves = f".{LEAVE}"
        self._leaving = frozenset(
            subject for subject, (_, body) in self._watch.entries.items() if body and subject.endswith(leaves)
        )
        for subject, (sequence, body) in self._watch.entries.items():
            if subject in self._leaving:
                continue
            known = before.get(subject)
            if known is not None and known[0] == sequence:
                self._known[subject] = known
            elif body:
                directive = directive_reader.read(subject[len(self._config.record("worker", "")) :], sequence, body)
                if directive is not None:
                    self._known[subject] = (sequence, directive)

    def _subject(self, worker_id: str, kind: str = DIRECTIVE) -> str:
        return self._config.record("worker", f"{encode_token(worker_id)}.{kind}")
