"""Reading records: from the nearest replica as a first guess, from the leader where it decides something."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError, unavailable
from ojs_engine.domain.job import Entry, Job
from ojs_engine.domain.rate_limits.policy import policy_of
from ojs_engine.domain.transitions import leading_to
from ojs_engine.jetstream.api import heard
from ojs_engine.jetstream.connection import Connection, Failed, status
from ojs_engine.jetstream.contents import ask_nearest, message, messages, sequence_of, subject_of, subjects_of
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.records.write_timings import WriteTimings

MULTI_GET_MAX: Final = 500
MULTI_GET_BYTES: Final = 8 * 1024 * 1024

_QUEUE: Final = re.compile(r"[a-z0-9][a-z0-9.\-]{0,254}", re.ASCII).fullmatch
_LIST, _OBJECT = b"[{"
"""The first bytes of a JSON list and of an object."""
_WORD: Final = re.compile(r"[A-Za-z0-9_.=-]+", re.ASCII).fullmatch


def check_draft(job: Job) -> None:
    """What has to be true of a job that is, or will be, stored, beyond its members' types. Raises ValueError, OjsError."""
    if _QUEUE(job.queue) is None:
        raise ValueError("its queue is no name of a queue")
    if not job.args or memoryview(job.args)[0] != _LIST or not job.meta or memoryview(job.meta)[0] != _OBJECT:
        raise ValueError("its args are no list, or its meta is no object")
    if job.rate_limit:
        policy_of(job)


def _sound(job_id: str, job: Job) -> None:
    if job.id != job_id:
        raise ValueError("it is the record of another job")
    check_draft(job)
    # What becomes part of a subject.
    if job.timer is not None and _WORD(job.timer.op) is None:
        raise ValueError("its timer has no sound name")
    if job.result_blob is not None and _WORD(job.result_blob.op) is None:
        raise ValueError("its result has no sound name")
    if job.workflow is not None and _WORD(job.workflow.id) is None:
        raise ValueError("its workflow has no sound name")
    if job.permits and not all(map(_WORD, job.permits)):
        raise ValueError("its permits have no sound names")


job_reader: Final = RecordReader("job", msgspec.json.Decoder(Job).decode, _sound)


class Stored(NamedTuple):
    """What a subject holds: its last sequence (0: nothing), and the job unless there is none to be seen.

    `sequence` is that of a marker or a tombstone too, since a create has to name it.
    """

    sequence: int
    job: Job | None


ABSENT: Final = Stored(0, None)


class Records:
    """Reads of job records and of small named records."""

    def __init__(self, nats: Connection, bulk: Connection, config: StoreConfig, timings: WriteTimings = WriteTimings()) -> None:
        self._timings = timings
        self._nats = nats
        self._bulk = bulk
        self._config = config

    @property
    def nearest_is_leader(self) -> bool:
        """With one replica a direct get can't be stale."""
        return self._config.replicas == 1

    async def nearest(self, job_id: str) -> Stored:
        """From whichever replica answers; may be stale on a cluster."""
        return _stored(job_id, await self.nearest_raw(self._config.job(job_id)))

    async def leader(self, job_id: str) -> Stored:
        """The last word on a job. Raises OjsError unreadable_record."""
        return _stored(job_id, await self.latest_raw(self._config.job(job_id)))

    async def continued(self, draft: Job) -> Job:
        """A draft with the log of the tombstone whose place it takes: the numbers of an id's entries never repeat,
        and the relay can still tell of the deletion.
        """
        before = await self._job_or_tombstone(draft.id)
        return draft if before is None else replace(draft, transitions=leading_to(draft.queue, before))

    async def log_of(self, job_id: str) -> tuple[Entry, ...]:
        """The entries of a job's record, or of the tombstone in its place; none if there is neither."""
        found = await self._job_or_tombstone(job_id)
        return () if found is None else found.transitions

    async def _job_or_tombstone(self, job_id: str) -> Job | None:
        found = await self.latest_raw(self._config.job(job_id))
        return job_reader.read(job_id, *found) if found is not None and found[1] else None

    async def leader_for_hint(self, job_id: str) -> Stored:
        """The last word on what a token or a due message speaks of; a record that can't be read is nobody's job."""
        return _stored(job_id, await self.leader_raw(self._config.job(job_id)), job_reader.read)

    async def many(self, job_ids: Sequence[str]) -> dict[str, Stored]:
        """Several jobs at once, from the nearest replica; those that aren't there map to sequence 0."""
        if len(job_ids) == 1:
            one = await self.nearest_raw(self._config.job(job_ids[0]))
            return {job_ids[0]: _stored(job_ids[0], one, job_reader.read)}
        subjects = [self._config.job(job_id) for job_id in job_ids]
        found = await self.many_raw(subjects)
        return {
            job_id: _stored(job_id, found.get(subject), job_reader.read)
            for job_id, subject in zip(job_ids, subjects, strict=True)
        }

    async def surely(self, job_ids: Sequence[str]) -> dict[str, Stored]:
        """As `many`, but the last word on each."""
        if self.nearest_is_leader:
            return await self.many(job_ids) if job_ids else {}
        return dict(zip(job_ids, await asyncio.gather(*map(self.leader_for_hint, job_ids)), strict=True))

    async def many_raw(self, subjects: Sequence[str]) -> dict[str, tuple[int, bytes]]:
        """Sequence and body of several subjects' last messages, from the nearest replica; what isn't there is left out."""
        found: dict[str, tuple[int, bytes]] = {}
        missing = list(dict.fromkeys(subjects))
        while missing:
            page, missing = missing[:MULTI_GET_MAX], missing[MULTI_GET_MAX:]
            which = {"multi_last": page, "max_bytes": MULTI_GET_BYTES}
            try:
                read, left = await messages(self._bulk, self._config.records_stream, which, "records", self._timings.reads_s)
            except OjsError:
                if self.nearest_is_leader or not self._bulk.connected:
                    raise
                # It went to a replica that hangs, as those before it and after it may.
                last = await asyncio.gather(*map(self.leader_raw, page))
                found |= {subject: one for subject, one in zip(page, last, strict=True) if one is not None}
            else:
                found |= {subject_of(one): (sequence_of(one), one.data) for one in read}
                if left:  # the server stops at max_bytes; otherwise what is missing isn't there
                    missing += [subject for subject in page if subject not in found]
        return found

    async def subjects(self, pattern: str) -> list[str]:
        """Every subject under a wildcard that holds a message, in order, as the leader has it."""
        return sorted(await subjects_of(self._nats, self._config.records_stream, pattern))

    async def matching(self, subject: str) -> dict[str, tuple[int, bytes]]:
        """Sequence and body of all records under a wildcard that matches few (service beats), by subject."""
        stream = self._config.records_stream
        read, _ = await messages(self._bulk, stream, {"multi_last": [subject]}, "service records", self._timings.reads_s)
        return {subject_of(one): (sequence_of(one), one.data) for one in read if one.data}

    async def latest_raw(self, subject: str) -> tuple[int, bytes] | None:
        """The last word on a subject, read the cheapest way."""
        return await (self.nearest_raw(subject) if self.nearest_is_leader else self.leader_raw(subject))

    async def leader_raw(self, subject: str, timeout_s: float | None = None) -> tuple[int, bytes] | None:
        """Sequence and body of a subject's last message, as the stream's leader has it."""
        stream = self._config.records_stream
        found = await message(self._nats, stream, {"last_by_subj": subject}, "a record", timeout_s)
        return None if found is None else (found.seq, found.data)

    async def nearest_raw(self, subject: str) -> tuple[int, bytes] | None:
        """Sequence and body of a subject's last message from whichever replica answers; may be stale on a cluster."""
        timeout_s = None if self.nearest_is_leader else self._timings.replica_s
        answer = await ask_nearest(self._nats, self._config.records_stream, subject, timeout_s)
        if isinstance(answer, Failed) and answer.sent and self._nats.connected and not self.nearest_is_leader:
            return await self.leader_raw(subject)  # it went to a replica that hangs
        found = heard(answer)
        code = status(found)
        if code == 0:
            return sequence_of(found), found.data
        if code == 404:
            return None
        raise unavailable(f"NATS refused a read with status {code}")


def _stored(
    job_id: str, found: tuple[int, bytes] | None, read: Callable[[str, int, bytes], Job | None] = job_reader.demand
) -> Stored:
    """Among many, `read` makes a record that can't be read nobody's job: it must not keep the others from being read."""
    if found is None:
        return ABSENT
    sequence, data = found
    job = read(job_id, sequence, data) if data else None  # without data it is a delete marker
    return Stored(sequence, None if job is None or job.deleted else job)
