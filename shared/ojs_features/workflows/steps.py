"""Acting on notes of steps: by the hundred, grouped by workflow, so that many ends cost one swap."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import structlog

from ojs_engine.due.loop import contained
from ojs_features.workflows.step_end import gone, outcome_of
from ojs_features.workflows.store import Report, Workflows
from ojs_link.timings import Timings

if TYPE_CHECKING:
    from ojs_engine.jetstream.due_messages import Due
    from ojs_engine.store.records.records import Stored
    from ojs_engine.store.store import Store

log = structlog.get_logger(__name__)


class StepTimings(Timings, frozen=True, kw_only=True):
    """When a note of a step is checked again."""

    again_ms: tuple[int, ...] = (5, 20, 100, 500, 2_000, 5_000)
    """When a note whose record isn't there yet is checked again; the last time holds for all further ones."""
    give_up_ms: int = 60_000
    """A commit that hasn't stored its record by then never will; if it did, it sent the note again."""


class StepNote(NamedTuple):
    """The content of a note: that the job at a node is about to start, or to end."""

    due: Due
    workflow_id: str
    job_id: str
    node: int
    run: int
    kind: str

    @classmethod
    def of(cls, due: Due) -> StepNote:
        """Raises ValueError for what is no note."""
        workflow_id, job_id = due.job_id.split(".")
        node, run, kind = due.data.decode().split(" ")
        return cls(due, workflow_id, job_id, int(node), int(run), kind)


class StepWorker:
    """Takes notes of steps. What can't be done is left to come back."""

    def __init__(self, store: Store, timings: StepTimings = StepTimings()) -> None:
        self._timings = timings
        self._store = store
        self._workflows = store.of(Workflows)
        self.messages = self._workflows.step_messages()

    async def handle(self, batch: list[Due]) -> None:
        """Read the jobs of a batch, advance their workflows side by side, and let go of the notes that were taken up."""
        notes = [note for due in batch if (note := self._read(due)) is not None]
        found = await self._store.records.many(list({note.job_id for note in notes}))
        reports: dict[str, Report] = {}
        taken: dict[str, list[Due]] = {}
        for note in notes:
            if await self._judge(note, found[note.job_id], reports.setdefault(note.workflow_id, Report())):
                taken.setdefault(note.workflow_id, []).append(note.due)
        outcomes = await asyncio.gather(*(contained("workflow", name, self._apply(name, reports[name])) for name in taken))
        await self.messages.done([due for name, done in zip(taken, outcomes, strict=True) if done for due in taken[name]])

    def _read(self, due: Due) -> StepNote | None:
        try:
            return StepNote.of(due)
        except ValueError:
            log.warning("message among the notes of steps that is none", subject=due.job_id)
            self.messages.later(due, self._timings.give_up_ms)
            return None

    async def _judge(self, note: StepNote, stored: Stored, report: Report) -> bool:
        """Put what a note's job has come to into `report`; whether the note may go once that is taken up."""
        if self._told(note, stored, report):
            return True
        now = self._store.clock.now()
        old = now - note.due.at > self._timings.give_up_ms
        if old or not self._store.records.nearest_is_leader:
            stored = await self._store.records.leader_for_hint(note.job_id)
            if self._told(note, stored, report):
                return True
        if stored.job is None:
            # There was a job, or there would be no note; that it is gone means that it had ended.
            report.ended(note.node, gone(note.node, note.run, now), None)
            return True
        if old:
            log.debug("note of a step dropped: its commit never came", job_id=note.job_id, kind=note.kind)
            return True
        self.messages.later(note.due, self._timings.again_ms[min(note.due.deliveries, len(self._timings.again_ms)) - 1])
        return False

    @staticmethod
    def _told(note: StepNote, stored: Stored, report: Report) -> bool:
        job = stored.job
        if job is None:
            return False
        outcome = outcome_of(job)
        if outcome is not None:
            report.ended(note.node, outcome, job)
            return True
        if note.kind == "started" and job.started_at is not None:
            report.started(job.started_at)
            return True
        return False

    async def _apply(self, workflow_id: str, report: Report) -> bool:
        await self._workflows.apply(workflow_id, report)
        return True
