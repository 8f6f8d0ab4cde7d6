"""Definitions: the parts of a workflow that never change, its shape and the templates of its jobs in chunks.

Every try to create a workflow writes a definition of its own, under its op; the record names the one that it runs
(docs/adr/011).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from ojs_engine.base.errors import OjsError, too_large, unavailable
from ojs_engine.base.lru import Lru
from ojs_engine.base.portions import in_portions
from ojs_engine.domain.job import Job
from ojs_engine.jetstream.api import purge, put
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import ANY, REST
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.records import check_draft
from ojs_features.workflows.definition import Definition
from ojs_features.workflows.graph import Graph, Shape
from ojs_features.workflows.record import Workflow
from ojs_features.workflows.subjects import Subjects
from ojs_features.workflows.timings import WorkflowTimings

_GRAPHS_BYTES: Final = 32 * 1024 * 1024
_CHUNKS_BYTES: Final = 32 * 1024 * 1024
_HEADROOM: Final = 4_096
"""The bytes of a job's record beyond its template, and of a message beyond its body."""
_AT_ONCE: Final = 64
_SHAPE: Final = "shape"

T = TypeVar("T")

_KIND: Final = "wfdef"
_encode: Final = msgspec.json.Encoder().encode
_shape_reader: Final = RecordReader(_KIND, msgspec.json.Decoder(Shape).decode)


def _sound_chunk(_name: str, chunk: dict[int, Job]) -> None:
    for job in chunk.values():
        check_draft(job)


_chunk_reader: Final = RecordReader(_KIND, msgspec.json.Decoder(dict[int, Job]).decode, _sound_chunk)


class _PartReader(RecordReader[Any]):
    """The reader of all parts of definitions: the name of a part says what it is."""

    def __init__(self) -> None:
        super().__init__(_KIND, lambda body: body)

    def decode(self, name: str, body: bytes) -> Any:
        """The part under a key's `name`. Raises Unreadable."""
        return (_shape_reader if name.endswith(f".{_SHAPE}") else _chunk_reader).decode(name, body)


part_reader: Final = _PartReader()


class Definitions:
    """Writes, reads and purges definitions. What was read is kept: nothing of it ever changes."""

    def __init__(self, bucket: Bucket, timings: WorkflowTimings) -> None:
        self._nats = bucket.nats
        self._records = bucket.records
        self._config = bucket.config
        self._subjects = Subjects(bucket.config)
        self._graphs: Lru[Graph] = Lru(_GRAPHS_BYTES, idle_s=timings.idle_s)
        self._chunks: Lru[dict[int, Job]] = Lru(_CHUNKS_BYTES, idle_s=timings.idle_s)

    def parts(self, definition: Definition) -> dict[str, bytes]:
        """A definition as it is stored, by part. Raises OjsError envelope_too_large."""
        graph = definition.graph
        chunks: list[dict[int, Job]] = [{} for _ in graph.shape.chunks]
        for node, job in definition.jobs.items():
            chunks[graph.chunk_of(node)][node] = job
        shape = _encode(graph.shape)
        bodies = [_encode(chunk) for chunk in chunks]
        limit = self._nats.max_payload - _HEADROOM
        largest = max(len(shape), *map(len, bodies))
        if largest > limit:
            raise too_large("envelope_too_large", "a part of the workflow", largest, limit)
        return {_SHAPE: shape} | {str(number): body for number, body in enumerate(bodies)}

    async def write(self, workflow_id: str, op: str, parts: Mapping[str, bytes], graph: Graph) -> None:
        """Store the definition of the try `op`. Raises OjsError backend_unavailable unless all of it is."""

        async def store(part: str) -> None:
            await put(self._nats, self._subjects.definition(workflow_id, op, part), parts[part], None, "a workflow")

        await in_portions(list(parts), store, _AT_ONCE)
        self._graphs.put((workflow_id, op), graph, graph.bytes)

    async def graph(self, workflow_id: str, op: str) -> Graph | None:
        """The graph of a workflow by its definition `op`; None if there is none (any more)."""
        key = (workflow_id, op)
        found = self._graphs.get(key)
        if found is None:
            read = await self._read(workflow_id, op, _SHAPE, _shape_reader)
            if read is None:
                return None
            found = Graph(read[0])
            self._graphs.put(key, found, found.bytes)
        return found

    async def templates(self, record: Workflow, graph: Graph, nodes: Iterable[int]) -> dict[int, Job]:
        """The drafts of some jobs. Raises OjsError backend_error if the definition is incomplete."""
        found: dict[int, Job] = {}
        chunk: dict[int, Job] = {}
        at = -1
        for node in nodes:
            if at != (at := graph.chunk_of(node)):
                chunk = await self._chunk(record.id, record.definition, at)
            found[node] = chunk[node]
        return found

    async def _chunk(self, workflow_id: str, op: str, number: int) -> dict[int, Job]:
        key = (workflow_id, op, number)
        chunk = self._chunks.get(key)
        if chunk is None:
            read = await self._read(workflow_id, op, str(number), _chunk_reader)
            if read is None:
                raise OjsError("backend_error", f"a part of workflow {workflow_id} is missing")
            chunk, size = read
            self._chunks.put(key, chunk, 2 * size + 1_000)
        return chunk

    async def tries(self, workflow_id: str) -> set[str]:
        """The ops of which a definition, a part of one, or results are stored."""
        found: set[str] = set()
        for pattern in (
            self._subjects.definition(workflow_id, "", REST),
            self._subjects.step_result(workflow_id, "", REST),
        ):
            rests = (subject.removeprefix(pattern[:-1]) for subject in await self._records.subjects(pattern))
            found.update(rest.rpartition(".")[0] for rest in rests)
        return found

    async def purge(self, workflow_id: str, op: str) -> None:
        """Delete the definition of a try and the results that were kept beside it, once no record can ever name it."""
        self._graphs.drop((workflow_id, op))
        stream = self._config.records_stream
        for subject in (
            self._subjects.definition(workflow_id, op, ANY),
            self._subjects.step_result(workflow_id, op, ANY),
        ):
            error = await purge(self._nats, stream, subject)
            if error is not None:
                raise unavailable(f"NATS refused to purge a workflow: {error.description}")

    def clear(self) -> None:
        self._graphs.clear()
        self._chunks.clear()

    async def _read(self, workflow_id: str, op: str, part: str, reader: RecordReader[T]) -> tuple[T, int] | None:
        """A part and its size in bytes; None if it isn't there."""
        subject = self._subjects.definition(workflow_id, op, part)
        found = await self._records.nearest_raw(subject)
        if found is None and not self._records.nearest_is_leader:
            found = await self._records.leader_raw(subject)
        if found is None or not found[1]:
            return None
        return reader.demand(subject.removeprefix(self._config.record("wfdef", "")), *found), len(found[1])
