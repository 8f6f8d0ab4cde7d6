"""Checkpoints in the bucket: a record beside each job that has one, which leaves after it (docs/adr/020)."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

import msgspec
import structlog

from ojs_engine.base.errors import OjsError, too_large
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import JobHolder
from ojs_engine.jetstream.api import purge, refused
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.store.records.commit import HEADROOM
from ojs_engine.store.records.documents import Beside, Documents
from ojs_engine.store.store import Store
from ojs_features.checkpoints.rules import CheckpointRecord, Saved, following, note_checkpoint, require_checkpointable
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)


class CheckpointTimings(Timings, frozen=True, kw_only=True):
    """How long checkpoints stay."""

    kept_s: int = 30 * 86_400
    """After one was saved; its job may wait for its next attempt meanwhile."""
    ended_s: int = 3_600
    """After its job has ended: the cases of the specification read it then."""
    close_s: float = 0.5
    """How long a process that stops goes on with having those of ended jobs leave."""
    order: ClassVar[Order] = (("ended_s", "kept_s", "the end of its job would keep a checkpoint"),)


def _sound(job_id: str, checkpoint: CheckpointRecord) -> None:
    if checkpoint.job_id != job_id:
        raise ValueError("it is the record of another job")


checkpoint_reader: Final = RecordReader("checkpoint", msgspec.json.Decoder(CheckpointRecord).decode, _sound)


class Checkpoints:
    """What workers have saved of their jobs."""

    def __init__(self, store: Store) -> None:
        bucket = store.bucket
        self._timings = bucket.timings(CheckpointTimings)
        self._nats = bucket.nats
        self._jobs = store.jobs
        self._config = bucket.config
        self._documents = Documents(bucket, self._subject, checkpoint_reader, lambda found, op: found.op == op)
        self._endings: set[asyncio.Task[None]] = set()
        store.on_close(self._close)

    async def save(self, job_id: str, saved: Saved, holder: JobHolder) -> tuple[Job, CheckpointRecord]:
        """Put a checkpoint in the place of the last one.

        The job is noted to have one before the first is stored, so whoever fetches the job finds it, and its end
        removes it. Raises OjsError not_found, conflict if the job is over or held by another, envelope_too_large,
        backend_unavailable.
        """
        size = len(saved.state) + len(saved.metadata)
        if size + HEADROOM > self._nats.max_payload:
            raise too_large("envelope_too_large", "the checkpoint", size, self._nats.max_payload - HEADROOM)
        job = await self._jobs.get(job_id)
        require_checkpointable(job, holder)
        if not job.checkpoint:
            noted = await self._jobs.change(job_id, lambda found, moment: note_checkpoint(found, holder, moment))
            job = noted.after
        kept = Beside(ttl_s=self._timings.kept_s)
        changed = await self._documents.change(
            job_id, lambda old, moment: following(old, job_id, saved, moment), lambda _old, _new: kept
        )
        assert changed.new is not None
        await self._check_end(job_id)
        return job, changed.new

    async def _check_end(self, job_id: str) -> None:
        """Look at the job again: its end may have come ahead of the record, and found nothing to remove."""
        try:
            job = await self._jobs.get(job_id)
        except OjsError as error:
            if error.code == "not_found":
                self.ended(job_id)
            raise
        if job.terminal and not job.checkpoint:
            self.ended(job_id)
            require_checkpointable(job, JobHolder())

    async def get(self, job_id: str) -> CheckpointRecord | None:
        """Return the last checkpoint of a job, None without one. Raises OjsError not_found if there is no job."""
        await self._jobs.get(job_id)
        return await self.last(job_id)

    async def last(self, job_id: str) -> CheckpointRecord | None:
        """Return the same of a job that is there. Raises OjsError unreadable_record, backend_unavailable."""
        return (await self._documents.read(job_id))[1]

    async def delete(self, job_id: str) -> bool:
        """Remove a job's checkpoint. Return whether there was one. The next has the number 1. Raises OjsError not_found."""
        if await self.get(job_id) is None:
            return False
        error = await purge(self._nats, self._config.records_stream, self._subject(job_id))
        if error is not None:
            raise refused("the checkpoint", error)
        return True

    async def _close(self) -> None:
        """Finish what follows from the ends of jobs, as far as NATS allows it now."""
        if self._endings:
            await asyncio.wait(self._endings, timeout=self._timings.close_s)

    def ended(self, job_id: str) -> None:
        """Have the checkpoint of a job that has ended leave soon."""
        task = asyncio.create_task(self._let_leave(job_id), name=f"checkpoint-{job_id}")
        self._endings.add(task)
        task.add_done_callback(self._endings.discard)

    def _subject(self, job_id: str) -> str:
        return self._config.record(checkpoint_reader.kind, job_id)

    async def _let_leave(self, job_id: str) -> None:
        """Have it leave soon. If that is lost, it leaves by its own time."""
        try:
            await self._documents.change(
                job_id,
                lambda old, moment: None if old is None else msgspec.structs.replace(old, op=moment.op),
                lambda _old, _new: Beside(ttl_s=self._timings.ended_s),
            )
        except OjsError as error:
            log.debug("a checkpoint stays for now", job_id=job_id, reason=error.message)
