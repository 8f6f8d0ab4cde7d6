"""Workflows that have not heard of the end of their jobs."""

from __future__ import annotations

import asyncio
from typing import Final

from ojs_engine.base.errors import OjsError
from ojs_engine.base.timings import of_kind
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.store import Store
from ojs_features.workflows.index import have_ended, unchanged
from ojs_features.workflows.record import QUEUED, Workflow, job_id, run_of
from ojs_features.workflows.store import Workflows
from ojs_index.followed import Found, Index
from ojs_link.timings import Timings

_MEMBERS_AT_ONCE: Final = 500
_FIRST: Final = (-1, "")


class RepairTimings(Timings, frozen=True, kw_only=True):
    """How long a workflow has to stand still before it is checked, and how many are checked in a round."""

    grace_ms: int = 60_000
    """How long a job has to have ended before its workflow is checked. Lost tokens are found before."""
    pause_ms: int = 300_000
    """No workflow is checked twice within this time."""
    at_once: int = 20
    """Workflows that one round checks."""


class WorkflowRepairs:
    """Looks for running workflows whose jobs have ended without a note."""

    def __init__(self, store: Store, index: Index, found: Found, timings: tuple[Timings, ...]) -> None:
        self._store = store
        self._index = index
        self._count = found
        self._timings = of_kind(RepairTimings, timings)
        self._after = _FIRST
        self._since = -self._timings.pause_ms
        """When looking at them last began at the first."""

    async def look(self) -> None:
        """Check the next few of the running ones that have not changed for long."""
        now = self._store.clock.now()
        if self._after == _FIRST:
            if now < self._since + self._timings.pause_ms:
                return
            self._since = now
        before = now - self._timings.grace_ms
        found = unchanged(self._index.db, before, self._after, self._timings.at_once)
        for position in found:
            self._after = position
            await self._look_at(position[1], before)
        if len(found) < self._timings.at_once:
            self._after = _FIRST

    async def _look_at(self, workflow_id: str, before: int) -> None:
        store, workflows = self._store, self._store.of(Workflows)
        try:
            record = (await workflows.get(workflow_id)).record
            # Jobs that are still being created are the timer's business.
            if record.terminal or record.creating or not await self._has_missed(record, before):
                return
            notes = store.config.note("workflow", workflow_id, ANY)
            if await store.records.subjects(notes):  # the coordinator is away or slow
                return
            if await workflows.recheck(workflow_id):
                self._count("workflow", workflow_id=workflow_id)
        except OjsError as error:
            if error.code != "not_found":
                raise

    async def _has_missed(self, record: Workflow, before: int) -> bool:
        """Whether the index says that a job ended that the workflow still waits for."""
        queued = [node for node, letter in enumerate(record.states) if letter == QUEUED]
        for start in range(0, len(queued), _MEMBERS_AT_ONCE):
            nodes = queued[start : start + _MEMBERS_AT_ONCE]
            ids = [job_id(record.id, node, run_of(record, node)) for node in nodes]
            if have_ended(self._index.db, ids, before):
                return True
            await asyncio.sleep(0)
        return False
