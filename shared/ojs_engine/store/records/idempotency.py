"""Requests that are carried out once, however often they are sent (ojs-bulk-operations §10).

`$KV.ojs.idempotency.<hash>` holds what was asked, when it was first, and the answer once there is one. Whoever meets it
without an answer waits, and takes over when its runner has been silent for too long. So a request may be begun twice, and
what it creates has to be named by the key: `KeyedRun.began` is the same for all who run it.

A request that was refused before it made anything frees its key for the next request. One whose outcome is
open keeps it, since something may have been made.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, ClassVar, Final, NamedTuple

import msgspec
import structlog
from msgspec import Meta, Raw, Struct
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import stop_tasks
from ojs_engine.base.numbers import At
from ojs_engine.domain.job import NOTHING
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.documents import Beside, Documents
from ojs_engine.store.records.writer import Conflict
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)

_NOT_KEPT: Final = "the answer to a request with an idempotency key is not kept"

Status = Annotated[int, Meta(ge=0, le=599)]


class IdempotencyTimings(Timings, frozen=True, kw_only=True):
    """How long the first runner of a request is waited for."""

    silent_ms: int = 20_000
    """A runner that has not finished by then is taken for dead: in less time than clients repeat a request."""
    wait_s: float = 10.0
    """How long a repetition waits for the first answer."""
    pause_s: float = 0.1
    """The first pause between two looks, and tries of a write; each is twice as long as the one before."""
    longest_pause_s: float = 1.0
    """The last."""
    order: ClassVar[Order] = (("pause_s", "longest_pause_s", "pauses would grow shorter"),)


class _Record(Struct, frozen=True, omit_defaults=True):
    """The `digest` of a request, who runs it and since when (server time, Unix ms; 0: it gave up), and the answer.

    It is `free` once the request was refused: then it counts for nothing.
    """

    digest: str
    began: At
    runner: str
    taken: At
    status: Status = 0
    body: Raw = NOTHING
    free: bool = False
    """Earlier versions, which don't know of it, take the request over when it is sent again."""


def _go(record: _Record) -> str:
    """Tells what one runner wrote at its beginning from what it wrote at its end."""
    return f"{record.runner} {record.taken} {record.status}"


def _is_go(record: _Record, go: str) -> bool:
    return _go(record) == go


class KeyedRun(Struct):
    """One go at a request. `name` stands for the operation and its key; `repeated` says that somebody tried before.

    The work sets `made` once something was made, or may have been: a refusal after that doesn't free the key.
    """

    name: str
    began: int
    repeated: bool
    made: bool = False

    def takes(self, created_at: int, *, named_by_key: bool = False) -> bool:
        """Return whether to answer with what stands under an id of the request as with what the run has made.

        It may have been made by an earlier run, or by this one, whose answer from NATS was lost: then `made` is set.

        Args:
            created_at: When what was found was created (server time, Unix ms).
            named_by_key: Whether its id follows from the key, so that no other request can have made it.

        """
        if created_at < self.began:  # it was there before anybody ran this request
            return False
        self.made = True
        return self.repeated or named_by_key


class KeptAnswer(NamedTuple):
    """The answer to a request. One of 400 or more says that nothing was made or changed.

    Unless it is `final` it isn't kept: NATS was in the way of some of the work, which the same request does when it is
    sent again.
    """

    status: int
    body: bytes
    final: bool = True


request_reader: Final = RecordReader("idempotency", msgspec.json.Decoder(_Record).decode)

RunOnce = Callable[[KeyedRun], Awaitable[KeptAnswer]]


class Idempotency:
    """Runs requests under keys, which are scoped by operation.

    A runner that couldn't write how its run ended, since NATS was away, does that once NATS is back: whoever sends
    the request again would wait until it is taken for dead.
    """

    def __init__(self, bucket: Bucket, timings: IdempotencyTimings) -> None:
        self._timings = timings
        self._clock = bucket.clock
        self._kept_s = bucket.kept.request_s
        self._documents = Documents(bucket, partial(bucket.config.record, "idempotency"), request_reader, _is_go)
        self._under_way: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Leave what can't be written yet."""
        await stop_tasks(self._under_way)

    async def run(self, operation: str, key: str, request: bytes, work: RunOnce) -> tuple[int, bytes]:
        """Return status and body of `work`, or those of the first time.

        While the request that has the key still runs, others wait for it, also other requests: it may be refused.

        Raises OjsError conflict if the key was used with another request, or its request still runs; or as `work` does.
        After a refusal (4xx) the key is free, after anything else the same request with it tries again.
        """
        name = hashlib.sha256(f"{operation}\0{key}".encode()).hexdigest()
        digest = hashlib.sha256(request).hexdigest()
        until = asyncio.get_running_loop().time() + self._timings.wait_s
        while True:
            sequence, record = await self._read(name)
            if record is not None and record.free:
                record = None
            left = record is not None and self._clock.now() - record.taken > self._timings.silent_ms
            if record is not None and record.digest != digest and (record.status or left):
                raise _refused(f"idempotency key {key!r} was used with another request; use another key")
            if record is not None and record.status:
                return record.status, bytes(record.body)
            if record is None or left:
                taken = await self._take(name, sequence, record, digest)
                if taken is not None:
                    run = KeyedRun(name, taken[1].began, repeated=record is not None)
                    return await self._carry_out(run, *taken, work)
            if asyncio.get_running_loop().time() > until:
                raise _refused(f"the first request with idempotency key {key!r} still runs; send it again later", retry_after=5)
            await asyncio.sleep(self._timings.pause_s)

    async def _carry_out(self, run: KeyedRun, sequence: int, record: _Record, work: RunOnce) -> tuple[int, bytes]:
        def given_up(status: int) -> _Record:
            # An earlier go may have made what this one was refused: only a first one can say that there is nothing.
            return replace(record, taken=0, free=400 <= status < 500 and not run.repeated and not run.made)

        try:
            reply = await work(run)
        except OjsError as error:
            await self._settle(run.name, sequence, given_up(error.info.status))
            raise
        except BaseException:
            await self._settle(run.name, sequence, replace(record, taken=0))
            raise
        ended = given_up(reply.status if reply.final else 0)
        if reply.final and not ended.free:
            ended = replace(record, status=reply.status, body=Raw(reply.body))
        await self._settle(run.name, sequence, ended)
        return reply.status, reply.body

    async def _read(self, name: str) -> tuple[int, _Record | None]:
        return await self._documents.read(name)

    async def _take(self, name: str, sequence: int, old: _Record | None, digest: str) -> tuple[int, _Record] | None:
        moment = self._clock.moment()
        began = moment.now if old is None else old.began
        record = _Record(digest=digest, began=began, runner=moment.op, taken=moment.now)
        try:
            return await self._write(name, sequence, record), record
        except Conflict:
            return None
        except OjsError:  # it may be stored, and nobody carries it out
            self._write_later(name, sequence, record, replace(record, taken=0))
            raise

    async def _settle(self, name: str, sequence: int, record: _Record) -> None:
        """Write how it ended, now or later. Until then the request is waited for when it is sent again."""
        try:
            await self._write(name, sequence, record)
        except Conflict:
            log.warning(_NOT_KEPT, reason="it was taken over")
        except OjsError:
            self._write_later(name, sequence, record)

    def _write_later(self, name: str, expected: int, *records: _Record) -> None:
        task = asyncio.create_task(self._write_in_turn(name, expected, records), name=f"idempotency-{name}")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _write_in_turn(self, name: str, expected: int, records: Sequence[_Record]) -> None:
        """Write records over each other, each until it succeeds or somebody else has taken the request over."""
        pause = self._timings.pause_s
        until = asyncio.get_running_loop().time() + self._timings.silent_ms / 1_000
        for record in records:
            while True:
                await asyncio.sleep(pause)
                pause = min(pause * 2, self._timings.longest_pause_s)
                try:
                    expected = await self._written(name, expected, record)
                    break
                except Conflict:
                    log.warning(_NOT_KEPT, reason="it was taken over")
                    return
                except OjsError as problem:
                    if asyncio.get_running_loop().time() > until:
                        log.warning(_NOT_KEPT, reason=str(problem))
                        return

    async def _written(self, name: str, expected: int, record: _Record) -> int:
        """Write a record that may be there already; returns its sequence. Raises Conflict if another one is there."""
        try:
            return await self._write(name, expected, record)
        except Conflict:
            sequence, found = await self._read(name)
            if found is None or _go(found) != _go(record):
                raise
            return sequence

    async def _write(self, name: str, expected: int, record: _Record) -> int:
        return await self._documents.write(name, record, expected, _go(record), Beside(ttl_s=self._kept_s))


def _refused(message: str, *, retry_after: int | None = None) -> OjsError:
    return OjsError("conflict", message, canonical="IDEMPOTENCY_CONFLICT", retry_after=retry_after)
