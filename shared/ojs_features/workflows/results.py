"""Results of jobs for later ones of their workflow: they have records of their own, so that the jobs may expire."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw

from ojs_engine.base.lru import Lru
from ojs_engine.domain.job import Job, Membership
from ojs_engine.jetstream.api import put
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.store.records.bucket import Bucket
from ojs_features.workflows.definitions import Definitions
from ojs_features.workflows.inputs import Source, inputs_of, leaves, reference
from ojs_features.workflows.record import Workflow, job_id, run_of
from ojs_features.workflows.records import workflow_reader
from ojs_features.workflows.subjects import Subjects
from ojs_features.workflows.timings import WorkflowTimings

_CACHE_BYTES: Final = 32 * 1024 * 1024
_PORTION: Final = 100
"""Results in one read, so that not much more is read than may be given."""
_NULL: Final = Raw(b"null")
_encode: Final = msgspec.json.Encoder().encode

result_reader: Final = RecordReader("wfres", msgspec.json.Decoder(Raw).decode, foreign=True)


class ParentResults(NamedTuple):
    """The results of earlier steps for a job: a list, and an object by the index of each step (ojs-workflows §7).

    Members of a nested workflow are in the object by their index, too.
    """

    results: Sequence[Raw] = ()
    by_index: Mapping[str, Raw] = MappingProxyType({})

    @property
    def size(self) -> int:
        """About how many bytes they add to the job: as a list and by index."""
        return 2 * sum(map(len, self.results))

    def put(self, answer: dict[str, Any], *, brief: bool) -> None:
        """Add them to the members of the job, by index as well unless that has to be `brief`."""
        answer["parent_results"] = list(self.results)
        if not brief:
            answer["parent_results_by_index"] = dict(self.by_index)


class Results:
    """Keeps results of completed jobs, and puts together what a later one is given. A kept result never changes."""

    def __init__(self, bucket: Bucket, definitions: Definitions, limit: int, timings: WorkflowTimings) -> None:
        """`limit` bounds what one job is given, in bytes."""
        self._nats = bucket.nats
        self._records = bucket.records
        self._config = bucket.config
        self._subjects = Subjects(bucket.config)
        self._definitions = definitions
        self._limit = limit
        self._cache: Lru[Raw] = Lru(_CACHE_BYTES, idle_s=timings.idle_s)

    async def keep(self, record: Workflow, results: Mapping[int, Raw]) -> None:
        """Store the results of some nodes. Raises OjsError backend_unavailable unless all of them are."""
        bodies = {
            self._subjects.step_result(record.id, record.definition, node): bytes(result or _NULL)
            for node, result in results.items()
        }
        await asyncio.gather(*(put(self._nats, subject, body, None, "a step's result") for subject, body in bodies.items()))

    async def inputs(self, jobs: Sequence[Job]) -> dict[str, ParentResults]:
        """Return the parent results of those of some jobs that are given any, by job id.

        A predecessor that didn't complete gives null. Raises OjsError backend_unavailable.
        """
        found: dict[str, ParentResults] = {}
        for job in jobs:
            if job.workflow is not None and job.workflow.inputs:
                found[job.id] = await self._inputs(job.workflow)
        return found

    def clear(self) -> None:
        self._cache.clear()

    async def _inputs(self, member: Membership) -> ParentResults:
        graph = await self._definitions.graph(member.id, member.definition)
        if graph is None:
            return ParentResults()
        sources = inputs_of(graph, member.node)
        gathering = _Gathering(self._limit)
        nodes = leaves(sources.values())
        nodes.reverse()  # the nearest predecessors are the last to go without
        for start in range(0, len(nodes), _PORTION):
            if gathering.full:
                break
            await self._gather(member, nodes[start : start + _PORTION], gathering)
        if len(gathering.values) < len(nodes) or gathering.absent:
            await self._complete(member, nodes, gathering)
        values = gathering.values
        listed = [_listed(source, values) for source in sources.values()]
        return ParentResults(listed, {str(index): _by_index(source, values) for index, source in sources.items()})

    async def _gather(self, member: Membership, nodes: Sequence[int], gathering: _Gathering) -> None:
        unknown = []
        known: dict[int, Raw] = {}
        for node in nodes:
            cached = self._cache.get((member.id, member.definition, node))
            if cached is None:
                unknown.append(node)
            else:
                known[node] = cached
        if unknown:
            subjects = {node: self._subjects.step_result(member.id, member.definition, node) for node in unknown}
            bodies = await self._records.many_raw(list(subjects.values()))
            for node, subject in subjects.items():
                if subject in bodies:
                    known[node] = self._remember(member, node, *bodies[subject])
        gathering.add(nodes, known)

    async def _complete(self, member: Membership, nodes: Iterable[int], gathering: _Gathering) -> None:
        """Say what became of the jobs whose results weren't found, or are too much: the workflow's record knows."""
        found = await self._records.latest_raw(self._subjects.workflow(member.id))
        there = None if found is None else workflow_reader.read(member.id, *found)
        record = there if isinstance(there, Workflow) else None
        for node in nodes:
            if node in gathering.values:
                continue
            if record is None or record.states[node] != "c":
                gathering.values[node] = _NULL
            elif node in gathering.absent and not gathering.full:  # a replica may not have had it yet
                late = await self._records.leader_raw(self._subjects.step_result(member.id, member.definition, node))
                gathering.add([node], {} if late is None else {node: self._remember(member, node, *late)})
            if node not in gathering.values:
                gathering.values[node] = reference(job_id(member.id, node, run_of(record, node)) if record else "")

    def _remember(self, member: Membership, node: int, sequence: int, body: bytes) -> Raw:
        name = self._subjects.step_result(member.id, member.definition, node).removeprefix(self._config.record("wfres", ""))
        result = result_reader.read(name, sequence, body) or _NULL
        self._cache.put((member.id, member.definition, node), result, len(body) + 200)
        return result


class _Gathering:
    """Results so far, as many as there is room for."""

    def __init__(self, limit: int) -> None:
        self.values: dict[int, Raw] = {}
        self.absent: set[int] = set()
        self._left = limit

    @property
    def full(self) -> bool:
        return self._left <= 0

    def add(self, nodes: Iterable[int], known: Mapping[int, Raw]) -> None:
        for node in nodes:
            result = known.get(node)
            if result is None:
                self.absent.add(node)
            elif len(result) <= self._left:
                self._left -= len(result)
                self.values[node] = result
                self.absent.discard(node)
            else:
                self.absent.discard(node)
                self._left = 0


def _listed(source: Source, values: Mapping[int, Raw]) -> Raw:
    if isinstance(source, int):
        return values[source]
    if isinstance(source, list):
        return Raw(_encode([_listed(inner, values) for inner in source]))
    return Raw(_encode({name: _listed(inner, values) for name, inner in source.items()}))


def _by_index(source: Source, values: Mapping[int, Raw]) -> Raw:
    if isinstance(source, int):
        return values[source]
    members = source if isinstance(source, list) else source.values()
    return Raw(_encode({str(index): _by_index(inner, values) for index, inner in enumerate(members)}))
