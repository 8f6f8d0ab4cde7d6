"""Progress in the bucket: a record beside each job that reports, written once a second at most (docs/adr/020)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar, Final

import msgspec
import structlog
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.base.lru import Lru
from ojs_engine.base.waiting import within
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import JobHolder, Moment
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.store.records.documents import Beside, Documents
from ojs_engine.store.store import Store
from ojs_features.progress.rules import ProgressRecord, Report, of_attempt, reported, standing
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)

_KNOWN: Final = 10_000
"""Jobs whose last report this process remembers."""


class ProgressTimings(Timings, frozen=True, kw_only=True):
    """How often progress is written, and how long it stays."""

    every_s: float = 1.0
    """Between two writes of one job's progress; what comes sooner is kept here until then (ojs-progress §6.2)."""
    kept_s: int = 7 * 86_400
    """How long a record stays after its last report."""
    close_s: float = 1.0
    """How long a process that stops waits until what was still to be stored is."""
    settling_s: float = 0.002
    """A record's message is seen when it is sent, which may be just before it is stored."""
    order: ClassVar[Order] = (("every_s", "kept_s", "it would be gone between two reports"),)


def _sound(job_id: str, progress: ProgressRecord) -> None:
    if progress.job_id != job_id:
        raise ValueError("it is the record of another job")


progress_reader: Final = RecordReader("progress", msgspec.json.Decoder(ProgressRecord).decode, _sound)

Told = Callable[[Job, ProgressRecord], None]
"""Called when progress is stored."""


class _Recent:
    """A job that has reported within the last second: as it was then, what stands, and the write that is to come."""

    __slots__ = ("holder", "job", "progress", "until", "writing")

    def __init__(self, job: Job, holder: JobHolder, progress: ProgressRecord | None, until: float) -> None:
        self.job = job
        self.holder = holder
        self.progress = progress
        self.until = until
        self.writing: asyncio.Task[None] | None = None


class JobProgress:
    """The progress that workers report of their jobs."""

    def __init__(self, store: Store) -> None:
        bucket = store.bucket
        self._timings = bucket.timings(ProgressTimings)
        self._jobs = store.jobs
        self._clock = bucket.clock
        self._config = bucket.config
        self._documents = Documents(bucket, self.subject, progress_reader, lambda found, op: found.op == op)
        self._recent: Lru[_Recent] = Lru(_KNOWN)
        self._writes: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()
        store.on_close(self.close)
        store.on_reset(self._clear)

    def subject(self, job_id: str) -> str:
        """Return where the progress of a job is stored."""
        return self._config.record(progress_reader.kind, job_id)

    async def report(
        self, job_id: str, report: Report, holder: JobHolder, told: Told
    ) -> tuple[Job, ProgressRecord | None, bool]:
        """Note a report. Return the job, its progress, and whether the report is about its running attempt.

        One that isn't is passed over (§6.1). Else the lease is renewed as by a heartbeat. What comes within a second
        of the last write is kept: when the second is over the latest is stored, and the lease renewed; where this
        process has handed the job out, nobody is asked about it before. Raises OjsError not_found.
        """
        loop = asyncio.get_running_loop()
        recent = self._recent.get(job_id)
        if recent is not None and (recent.holder != holder or loop.time() >= recent.until):
            recent = None
        if recent is None or not self._jobs.holds(job_id):
            held = await self._jobs.extend([job_id], holder.worker, None)
            job = next(iter(held.jobs), None)
            if job is None or holder.attempt not in (None, job.attempt):
                found, progress = await self.get(job_id)
                return found, progress, False
            if recent is None or recent.job.attempt != job.attempt:
                return job, await self._write_now(job, report, holder, told), True
        new = reported(recent.progress, recent.job, report, self._clock.moment())
        if new is not None:
            recent.progress = new
            if recent.writing is None:
                recent.writing = asyncio.create_task(self._write_later(recent, told), name=f"progress-{job_id}")
                self._writes.add(recent.writing)
                recent.writing.add_done_callback(self._writes.discard)
        return recent.job, recent.progress, True

    async def get(self, job_id: str) -> tuple[Job, ProgressRecord | None]:
        """Return a job and its progress. Raises OjsError not_found."""
        job = await self._jobs.get(job_id)
        _, progress = await self._documents.read(job_id)
        recent = self._recent.get(job_id)
        kept = None if recent is None else recent.progress
        if kept is not None and (progress is None or kept.at >= progress.at):  # still to be stored, if of the same millisecond
            progress = kept
        return job, standing(progress, job)

    async def _clear(self) -> None:
        """Forget everything (reset)."""
        self._recent.clear()

    async def close(self) -> None:
        """Store at once what was still to be stored."""
        self._closing.set()
        if self._writes:
            await asyncio.wait(self._writes, timeout=self._timings.close_s)

    async def _write_now(self, job: Job, report: Report, holder: JobHolder, told: Told) -> ProgressRecord | None:
        changed = await self._documents.change(job.id, lambda old, moment: reported(old, job, report, moment), self._kept)
        progress = of_attempt(changed.new, job)
        until = asyncio.get_running_loop().time() + self._timings.every_s
        self._recent.put(job.id, _Recent(job, holder, progress, until), 1)
        if progress is not None and changed.new is not changed.old:
            told(job, progress)
        return progress

    async def _write_later(self, recent: _Recent, told: Told) -> None:
        loop = asyncio.get_running_loop()
        await within(recent.until - loop.time(), self._closing)
        recent.writing = None
        recent.until = loop.time() + self._timings.every_s
        latest, job = recent.progress, recent.job
        assert latest is not None

        def decide(old: ProgressRecord | None, moment: Moment) -> ProgressRecord | None:
            if old is not None and old.at > latest.at:  # through another gateway, or of a later attempt
                return None
            return replace(latest, op=moment.op)

        try:
            held = await self._jobs.extend([job.id], recent.holder.worker, None)
            if not held.jobs or held.jobs[0].attempt != job.attempt:
                return  # it has ended meanwhile
            recent.job = held.jobs[0]
            changed = await self._documents.change(job.id, decide, self._kept)
        except OjsError as error:
            log.debug("progress was not stored", job_id=job.id, reason=error.message)
            return
        if changed.new is not None and changed.new is not changed.old:
            told(job, changed.new)

    def _kept(self, _old: ProgressRecord | None, _new: ProgressRecord) -> Beside:
        return Beside(ttl_s=self._timings.kept_s)
