"""Workflows in the bucket: `workflow.<id>` is the small record that is swapped, beside a definition that never changes.

Every step is swapped first. The record names the jobs that follow from it, and these are created then. Each process
that goes on with the workflow creates those that are missing, so the note or timer that comes again makes a crash in
between good. A job's id follows from its place, so a second creation is refused. So each step is created exactly
once, with any number of coordinators, and when one dies in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

import structlog
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError, not_found, placed, unavailable, unless_moved_on
from ojs_engine.base.lru import Lru
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.base.portions import portions
from ojs_engine.domain import transitions
from ojs_engine.domain.job import CALLED_OFF, Job, State
from ojs_engine.domain.transitions import Moment, Transition
from ojs_engine.jetstream.due_messages import DueMessages
from ojs_engine.store.locks import Locate
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.writer import Conflict
from ojs_engine.store.store import Store
from ojs_features.workflows import advance as progress
from ojs_features.workflows.advance import StepOutcome
from ojs_features.workflows.definition import Definition
from ojs_features.workflows.definitions import Definitions
from ojs_features.workflows.graph import Graph
from ojs_features.workflows.inputs import needed
from ojs_features.workflows.record import QUEUED, Claim, Workflow, expand, job_id, member_job, run_of
from ojs_features.workflows.records import SERVICE, StoredWorkflow, UnderWay, WorkflowRecords
from ojs_features.workflows.results import Results
from ojs_features.workflows.step_end import gone, outcome_of
from ojs_features.workflows.subjects import STEPS
from ojs_features.workflows.timings import WorkflowTimings

log = structlog.get_logger(__name__)

_PORTION: Final = 500
"""Jobs that are read, created or cancelled together."""
_LEFT: Final = "the jobs of a workflow are left to the coordinator"


class Report:
    """The news of some jobs of one workflow."""

    def __init__(self) -> None:
        self.outcomes: dict[int, StepOutcome] = {}
        self.completed: dict[int, Job] = {}
        """The jobs whose results may have to be handed on."""
        self.started_at: int | None = None

    def ended(self, node: int, outcome: StepOutcome, job: Job | None) -> None:
        """Note the end of a node's job, None if it is gone. A node has one for each run, and the latest counts."""
        known = self.outcomes.get(node)
        if known is not None and known.run > outcome.run:
            return
        self.outcomes[node] = outcome
        if outcome.letter == "c" and job is not None:
            self.completed[node] = job
        else:
            self.completed.pop(node, None)

    def started(self, at: int) -> None:
        self.started_at = at if self.started_at is None else min(at, self.started_at)


class Workflows:
    """Creates, reads, changes and advances workflows."""

    def __init__(self, store: Store) -> None:
        bucket = store.bucket
        self._timings = timings = bucket.timings(WorkflowTimings)
        self._nats = bucket.nats
        self._bulk = bucket.bulk
        self._records = bucket.records
        self._blobs = store.blobs
        self._committer = bucket.committer
        self._jobs = store.jobs
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._config = bucket.config
        self._definitions = Definitions(bucket, timings)
        self._flows = WorkflowRecords(bucket, self._definitions, timings)
        self._enqueue = store.enqueue
        self._spawner = store.spawner
        self.results = Results(bucket, self._definitions, DEFAULT_LIMITS.max_parent_results_bytes, timings)
        self._made: Lru[bool] = Lru(1_000_000)
        store.on_reset(self.clear)

    def timer_messages(self) -> DueMessages:
        """The timers of workflows that fired; `Due.job_id` is a workflow's id."""
        return DueMessages(self._nats, self._bulk, self._config, SERVICE)

    def step_messages(self) -> DueMessages:
        """The notes of members; `Due.job_id` is `<workflow id>.<job id>`."""
        return DueMessages(self._nats, self._bulk, self._config, STEPS, subject=self._config.notes("workflow"))

    async def clear(self) -> None:
        """Forget what was read (reset)."""
        self._definitions.clear()
        self.results.clear()
        self._made.clear()

    # What clients ask for

    async def create(self, definition: Definition) -> StoredWorkflow:
        """Store a workflow and create its first jobs. Once its record is stored it runs, even if this process dies.

        Raises OjsError duplicate, envelope_too_large, storage_full, backend_unavailable, and what the queues of its
        jobs refuse.
        """
        until = asyncio.get_running_loop().time() + self._timings.double_s
        while True:
            try:
                return await self._create(definition)
            except UnderWay:  # an equal request creates it in this moment
                if asyncio.get_running_loop().time() > until:
                    raise
            await asyncio.sleep(self._timings.double_look_s)

    async def _create(self, definition: Definition) -> StoredWorkflow:
        # Admitted as a whole: what its queues set is in the templates of all its jobs from then on. Those of later
        # steps are work that was accepted, so nothing refuses them any more (docs/adr/011).
        vacant = await self._flows.vacancy(definition.id)
        nodes = list(definition.jobs)
        admitted = await self._enqueue.admit([*definition.jobs.values()], _located(definition, nodes))
        definition = replace(definition, jobs=dict(zip(nodes, admitted, strict=True)))
        parts = self._definitions.parts(definition)
        graph = definition.graph
        record = progress.begin(graph, definition.id, definition.name, self._clock.moment())
        first = list(expand(graph, (*record.to_create, *record.creating)))
        async with self._enqueue.places([definition.jobs[node] for node in first], _located(definition, first)):
            return await self._created(record, parts, graph, vacant)

    async def _created(self, record: Workflow, parts: Mapping[str, bytes], graph: Graph, vacant: int) -> StoredWorkflow:
        # The claim goes ahead of the definition, and only the record of the same try takes its place. So each definition has an
        # owner, and one whose record can't be stored any more is deleted without harm (docs/adr/011).
        claimed = await self._flows.claim(record, vacant)
        await self._definitions.write(record.id, record.definition, parts, graph)
        sequence = await self._flows.create(record, claimed)
        try:
            await self._follow(StoredWorkflow(sequence, record, graph))
        except OjsError as error:
            log.warning(_LEFT, workflow_id=record.id, reason=error.message)
        return StoredWorkflow(sequence, record, graph)

    async def get(self, workflow_id: str) -> StoredWorkflow:
        """A workflow as the leader has it. Raises OjsError not_found."""
        stored = await self._flows.load(workflow_id)
        if stored is None:
            raise not_found("workflow", workflow_id)
        return stored

    async def templates(self, stored: StoredWorkflow, nodes: Iterable[int]) -> dict[int, Job]:
        """Return what some of its jobs are made of, in the order of their nodes. Reads nothing for none."""
        return await self._definitions.templates(stored.record, stored.graph, nodes)

    async def drafts(self, stored: StoredWorkflow) -> Collection[Job]:
        """Return the templates of all of its jobs, those of nested workflows included."""
        return (await self.templates(stored, stored.graph.jobs_in(0, stored.graph.size))).values()

    async def members(self, record: Workflow, nodes: Sequence[int]) -> dict[int, Job]:
        """The jobs of some nodes; those that don't exist yet, or any more, are left out."""
        ids = {node: job_id(record.id, node, run_of(record, node)) for node in nodes}
        if not ids:
            return {}
        found = await self._records.many(list(ids.values()))
        return {node: job for node, name in ids.items() if (job := found[name].job) is not None}

    async def cancel(self, workflow_id: str) -> StoredWorkflow:
        """Stop a workflow: waiting and queued jobs are cancelled, active ones may end. Raises conflict if it has ended."""
        stored = await self._flows.change(workflow_id, progress.cancel)
        try:
            await self._call_off(stored)
            await self.recheck(workflow_id)  # so that the answer counts what was cancelled
            return await self.get(workflow_id)
        except OjsError as error:
            log.warning(
                "the jobs of a cancelled workflow are left to the coordinator", workflow_id=workflow_id, reason=str(error)
            )
            return stored

    async def retry(self, workflow_id: str) -> StoredWorkflow:
        """Go on where a failed or cancelled workflow stopped. Raises conflict in any other state."""
        await self.recheck(workflow_id)
        stored = await self._flows.change(workflow_id, progress.retry)
        try:
            await self._follow(stored)
        except OjsError as error:
            log.warning(
                "the jobs of a retried workflow are left to the coordinator", workflow_id=workflow_id, reason=str(error)
            )
        return stored

    # What the coordinator does

    async def apply(self, workflow_id: str, report: Report) -> None:
        """Take up what is new of some jobs, and do what follows; to be repeated until it returns.

        Raises OjsError backend_unavailable.
        """
        kept = False
        async for _ in self._tries():
            stored = await self._flows.load(workflow_id)
            if stored is None:
                return
            _, record, graph = stored
            if not record.terminal:
                await self._catch_up(stored, report.outcomes)
                if not kept:
                    await self._keep(graph, record, report)
                    kept = True
            moment = self._clock.moment()
            new = record
            if report.started_at is not None and not record.terminal:
                new = progress.started(record, report.started_at, moment) or record
            new = progress.advance(graph, new, report.outcomes, moment) or new
            if new is record:
                return
            try:
                sequence = await self._flows.swap(record, new, stored.sequence, moment.op)
            except Conflict:
                continue
            log.debug("workflow advanced", workflow_id=workflow_id, jobs=len(report.outcomes), state=new.state)
            if new.to_create != record.to_create or new.creating != record.creating:
                await self._follow(StoredWorkflow(sequence, new, graph))
            return
        raise contended(f"workflow {workflow_id}")

    async def recheck(self, workflow_id: str) -> int:
        """Read every job that hasn't ended as far as the workflow knows; returns how many had.

        It is for lost hints: the timer of a workflow that runs for long and the safety net ask for it.
        """
        stored = await self._flows.load(workflow_id)
        if stored is None:
            return 0
        _, record, graph = stored
        if not record.terminal:
            await self._catch_up(stored)
        creating = set(expand(graph, record.creating))
        queued = [node for node, letter in enumerate(record.states) if letter == QUEUED and node not in creating]
        missed = 0
        for portion in portions(queued, _PORTION):
            report = await self._look(record, portion)
            if report.outcomes:
                missed += len(report.outcomes)
                await self.apply(workflow_id, report)
        return missed

    async def due(self, workflow_id: str, now: int) -> None:
        """Do what a workflow's timer is there for, at the server's time `now`; to be repeated until it returns."""
        sequence, found = await self._flows.look(workflow_id)
        if isinstance(found, Claim) and found.at + self._timings.given_up_ms > now:
            # A process may still be creating it. If it succeeds, this stays its timer.
            await self._flows.set(self._flows.alarm(workflow_id, found.claim, now + self._timings.again_ms))
            return
        if not isinstance(found, Workflow):
            await self._clear(workflow_id, sequence if found is not None else None)
            return
        stored = await self._flows.load(workflow_id)
        if stored is None:
            return
        record = stored.record
        if record.timer is not None and record.timer.at > now + self._timings.early_ms:
            await self._flows.set(self._flows.alarm(record.id, record.timer.op, record.timer.at))
        elif record.cancelling:
            await self._call_off(stored)
        elif record.terminal:
            await self._clear(workflow_id, stored.sequence)
        elif record.creating:
            await self._create_many(stored, fresh=False)
        else:
            missed = await self.recheck(workflow_id)
            if missed:
                log.info("workflow had not heard of jobs that ended", workflow_id=workflow_id, jobs=missed)
            await self._flows.try_change(workflow_id, lambda _graph, found, moment: self._checked(record, found, moment))

    # Inside

    async def _clear(self, workflow_id: str, place: int | None) -> None:
        """Purge what was written for records that can't be (any more). `place`: the revision that is to go first of all."""
        if place is not None:
            try:
                await self._flows.vacate(workflow_id, place)
            except Conflict:
                raise unavailable(f"workflow {workflow_id} changed while it was to be cleared away") from None
        # In this order: a try claims the id before it writes anything else, and a claim that was replaced never comes back. So
        # what is listed first and not named afterwards belongs to a try, or a workflow, that is over.
        tries = await self._definitions.tries(workflow_id)
        _, found = await self._flows.look(workflow_id)
        if found is not None:
            tries.discard(found.definition if isinstance(found, Workflow) else found.claim)
        for op in tries:
            await self._definitions.purge(workflow_id, op)

    async def _follow(self, stored: StoredWorkflow) -> None:
        """Create the jobs that a record names, right after it was stored."""
        await self._catch_up(stored, fresh=True)
        if stored.record.creating:
            await self._create_many(stored, fresh=True)

    async def _catch_up(self, stored: StoredWorkflow, known: Collection[int] = (), *, fresh: bool = False) -> None:
        """Create the jobs that the last step decided on, if they are missing: the process that took the step may have
        died.

        Those of the nodes `known` exist. `fresh`: no process has tried to create them yet.
        """
        _, record, graph = stored
        key = record.id, record.definition, record.run, record.to_create
        if record.to_create and not self._made.get(key):
            nodes = [node for node in expand(graph, record.to_create) if node not in known]
            await self._ensure(graph, record, nodes, fresh=fresh)
            self._made.put(key, value=True, size=100)

    async def _create_many(self, stored: StoredWorkflow, *, fresh: bool) -> None:
        """Create many jobs in portions, as long as the workflow wants them."""
        workflow_id, run, done = stored.record.id, stored.record.run, set[int]()
        while True:
            current = await self._flows.load(workflow_id)
            if current is None or current.record.terminal or current.record.run != run:
                return
            _, record, graph = current
            portion = list(islice((node for node in expand(graph, record.creating) if node not in done), _PORTION))
            if not portion:
                break
            await self._ensure(graph, record, portion, fresh=fresh)
            done.update(portion)
        await self._catch_up(current)
        await self._flows.try_change(workflow_id, lambda graph, found, moment: _all_created(graph, found, done, moment))

    async def _ensure(
        self, graph: Graph, record: Workflow, nodes: Sequence[int], *, fresh: bool = False, tend: bool = True
    ) -> None:
        """See to it that the jobs of some nodes exist. One that another job keeps out is created as discarded, since
        the workflow waits for its end. Raises OjsError backend_unavailable when some may be missing.
        """
        if not fresh:
            ids = {job_id(record.id, node, run_of(record, node)): node for node in nodes}
            nodes = [ids[missing] for missing in await self._spawner.missing(list(ids), tend=tend)]
        templates = await self._definitions.templates(record, graph, nodes)
        now = self._clock.now()
        drafts = [member_job(graph, record, node, templates[node], now) for node in nodes]
        for draft, refusal in await self._spawner.ensure(drafts):
            if refusal.code != "duplicate":
                raise refusal
            await self._spawner.discard(draft, refusal)

    async def _call_off(self, stored: StoredWorkflow) -> None:
        """Cancel the jobs of a cancelled workflow that no worker has."""
        _, record, graph = stored
        queued = [node for node, letter in enumerate(record.states) if letter == QUEUED]
        for nodes in portions(queued, _PORTION):
            # One that was about to be created is created here: so it can't be later.
            await self._ensure(graph, record, nodes, tend=False)
            await self._cancel_jobs([job_id(record.id, node, run_of(record, node)) for node in nodes])
        await self._flows.try_change(record.id, lambda _graph, found, moment: progress.cancelled(found, moment))

    async def _cancel_jobs(self, ids: Sequence[str]) -> None:
        found = await self._records.many(ids)
        commits: list[tuple[Transition, int, str]] = []
        for name in ids:
            job, moment = found[name].job, self._clock.moment()
            if job is not None and not job.terminal and job.state is not State.ACTIVE:
                commits.append((transitions.cancel(job, moment, CALLED_OFF), found[name].sequence, moment.op))
        for (transition, _, _), outcome in zip(commits, await self._committer.commit_all(commits), strict=True):
            if isinstance(outcome, Conflict):
                await self._cancel_job(transition.job.id)
            elif isinstance(outcome, OjsError):
                raise outcome

    async def _cancel_job(self, name: str) -> None:
        """One job that changed in this very moment: it may have been fetched, or have ended."""
        await unless_moved_on(self._jobs.change(name, _cancel_unless_active))

    async def _keep(self, graph: Graph, record: Workflow, report: Report) -> None:
        completed = {
            node: job
            for node, job in report.completed.items()
            if report.outcomes[node].run == run_of(record, node) and needed(graph, node)
        }
        await self.results.keep(record, {n: job.result for n, job in completed.items() if job.result_blob is None})
        for node, job in completed.items():
            # One after the other, since they are large. One that has left is found at the job's own address, or not at all.
            if job.result_blob is not None and (result := (await self._blobs.whole(job)).result):
                await self.results.keep(record, {node: result})

    async def _look(self, record: Workflow, nodes: Sequence[int]) -> Report:
        report = Report()
        found = await self.members(record, nodes)
        for node in nodes:
            run = run_of(record, node)
            job = found.get(node)
            if job is None or (not job.terminal and not self._records.nearest_is_leader):
                job = (await self._records.leader_for_hint(job_id(record.id, node, run))).job
            if job is None:
                report.ended(node, gone(node, run, self._clock.now()), None)
            elif (outcome := outcome_of(job)) is not None:
                report.ended(node, outcome, job)
        return report

    @staticmethod
    def _checked(seen: Workflow, found: Workflow, moment: Moment) -> Workflow | None:
        if found.terminal or found.timer != seen.timer:
            return None
        return progress.checked(found, moment, complete=found.to_create == seen.to_create)


def _located(definition: Definition, nodes: Sequence[int]) -> Locate:
    """Return what names the place, in the definition, of the one of these nodes that is refused."""
    return lambda error, index: placed(error, definition.places[nodes[index]])


def _all_created(graph: Graph, record: Workflow, done: set[int], moment: Moment) -> Workflow | None:
    complete = not record.terminal and done.issuperset(expand(graph, record.creating))
    return progress.created(record, moment) if complete else None


def _cancel_unless_active(job: Job, moment: Moment) -> Transition:
    if job.state is State.ACTIVE:
        raise OjsError("conflict", f"job {job.id} is active and may end")
    return transitions.cancel(job, moment, CALLED_OFF)
