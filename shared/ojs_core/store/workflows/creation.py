"""Creating the jobs of a workflow: any number of times, each job once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import structlog
from msgspec.structs import replace

from ojs_core.base.errors import OjsError
from ojs_core.domain import transitions
from ojs_core.domain.job import Job, State
from ojs_core.domain.workflows.graph import Graph
from ojs_core.domain.workflows.record import Workflow, job_id, membership, run_of
from ojs_core.store.records.atomic import AtomicCommit
from ojs_core.store.records.bucket import Bucket
from ojs_core.store.records.writer import Conflict
from ojs_core.store.unique.unique import Uniqueness
from ojs_core.store.workflows.definitions import Definitions

log = structlog.get_logger(__name__)

PORTION: Final = 500
_TEND_MS: Final = 60_000
"""A token may be lost only as long as whoever published it may have died meanwhile; older ones are the safety net's."""


class WorkflowCreation:
    """A member's id follows from its place, and it is created over nothing: who comes second is refused."""

    def __init__(self, bucket: Bucket, unique: Uniqueness, definitions: Definitions) -> None:
        self._records = bucket.records
        self._committer = bucket.committer
        self._unique = unique
        self._clock = bucket.clock
        self._definitions = definitions

    async def make(self, graph: Graph, record: Workflow, nodes: Sequence[int], *, first: bool, tend: bool = True) -> None:
        """Create jobs in order of their definition, so that one who takes them one by one sees it.

        `first`: nobody has tried before, as far as this process knows. Otherwise what exists is looked up, and its token
        repeated if `tend`. Raises OjsError backend_unavailable when some may be missing.
        """
        for start in range(0, len(nodes), PORTION):
            portion = nodes[start : start + PORTION]
            if not first:
                portion = await self._missing(record, portion, tend)
            if portion:
                await self._create(graph, record, portion)

    async def _missing(self, record: Workflow, nodes: Sequence[int], tend: bool) -> list[int]:
        ids = {node: job_id(record.id, node, run_of(record, node)) for node in nodes}
        found = await self._records.many(list(ids.values()))
        now = self._clock.now()
        missing: list[int] = []
        for node, name in ids.items():
            stored = found[name]
            if stored.sequence == 0 or (stored.job is None and await self._unique.locks.fenced(name)):
                missing.append(node)
            elif tend and stored.job is not None and _fresh(stored.job, now):
                await self._committer.repeat_token(stored.job, stored.sequence)
        return missing

    async def _create(self, graph: Graph, record: Workflow, nodes: Sequence[int]) -> None:
        templates = await self._definitions.templates(record, graph, nodes)
        commits: list[AtomicCommit] = []
        for node in nodes:
            moment = self._clock.moment()
            draft = _newborn(graph, record, node, templates[node], moment.now)
            if draft.unique_key is None:
                commits.append(AtomicCommit(transitions.push(draft, moment), 0, moment.op))
                continue
            await self._commit(record, commits)  # what comes before it
            commits = []
            await self._create_unique(draft)
        await self._commit(record, commits)

    async def _commit(self, record: Workflow, commits: Sequence[AtomicCommit]) -> None:
        outcomes = await self._committer.commit_all(commits) if commits else []
        failure = next((outcome for outcome in outcomes if isinstance(outcome, OjsError)), None)
        if failure is not None:
            raise failure
        existing = sum(isinstance(outcome, Conflict) for outcome in outcomes)
        if existing:
            log.debug("jobs of a workflow existed already", workflow_id=record.id, jobs=existing)

    async def _create_unique(self, draft: Job) -> None:
        """A member that may not be, because of another job, is created as discarded: the workflow waits for its end."""
        try:
            await self._unique.push(draft)
        except OjsError as error:
            if error.code != "duplicate":
                raise
            if error.details["existing_job_id"] == draft.id:
                return
            await self._create_discarded(draft, error)

    async def _create_discarded(self, draft: Job, problem: OjsError) -> None:
        expected = 0
        while True:
            moment = self._clock.moment()
            try:
                await self._committer.commit(transitions.push_discarded(draft, problem, moment), expected, moment.op)
            except Conflict:
                if not await self._unique.locks.fenced(draft.id):
                    return  # somebody else has created it
                expected = (await self._records.leader(draft.id)).sequence
                draft = await self._records.continued(draft)
            else:
                log.info("a job of a workflow is not unique", job_id=draft.id, reason=problem.message)
                return


def _newborn(graph: Graph, record: Workflow, node: int, template: Job, now: int) -> Job:
    """A member as it enters its queue. Times that were relative count from now, not from the workflow's creation."""
    late = max(0, now - graph.shape.defined_at)
    shifted = {
        name: at + late
        for name in ("scheduled_at", "expires_at")
        if (at := getattr(template, name)) is not None and name not in template.verbatim
    }
    member = membership(graph, record, node)
    return replace(template, id=job_id(record.id, node, member.run), workflow=member, **shifted)


def _fresh(job: Job, now: int) -> bool:
    return job.state is State.AVAILABLE and now - (job.enqueued_at or 0) < _TEND_MS
