"""What of a workflow never changes: its shape, and its jobs' templates in chunks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

import msgspec

from ojs_nats.errors import OjsError, too_large
from ojs_nats.job import Job
from ojs_nats.store.api import ask, put, put_if
from ojs_nats.store.link import Link
from ojs_nats.store.lru import Lru
from ojs_nats.store.names import REST, StoreConfig
from ojs_nats.store.records import Records
from ojs_nats.workflows import Definition
from ojs_nats.workflows.graph import Graph, Shape

__all__ = ["Definitions"]

_GRAPHS_BYTES: Final = 32 * 1024 * 1024
_CHUNKS_BYTES: Final = 32 * 1024 * 1024
_HEADROOM: Final = 4_096
"""What a job's record has beyond its template, and a message beyond its body."""
_AT_ONCE: Final = 64

_encode: Final = msgspec.json.Encoder().encode
_decode_shape: Final = msgspec.json.Decoder(Shape).decode
_decode_chunk: Final = msgspec.json.Decoder(dict[int, Job]).decode


class Definitions:
    """Writes, reads and purges definitions. What was read is kept: nothing of it changes while the workflow exists."""

    def __init__(self, link: Link, records: Records, config: StoreConfig) -> None:
        self._link = link
        self._records = records
        self._config = config
        self._graphs: Lru[Graph] = Lru(_GRAPHS_BYTES)
        self._chunks: Lru[dict[int, Job]] = Lru(_CHUNKS_BYTES)

    async def write(self, definition: Definition) -> None:
        """Store a definition. Raises duplicate if the id is taken, envelope_too_large, backend_unavailable."""
        graph = definition.graph
        chunks: list[dict[int, Job]] = [{} for _ in graph.shape.chunks]
        for node, job in definition.jobs.items():
            chunks[graph.chunk_of(node)][node] = job
        shape = _encode(graph.shape)
        bodies = [_encode(chunk) for chunk in chunks]
        limit = self._link.max_payload - _HEADROOM
        largest = max(len(shape), *map(len, bodies))
        if largest > limit:
            raise too_large("envelope_too_large", "a part of the workflow", largest, limit)
        # The shape is the claim on the id: of two workflows with one id only one gets further.
        await self._put(definition.id, "shape", shape, only_first=True)
        for start in range(0, len(bodies), _AT_ONCE):
            part = enumerate(bodies[start : start + _AT_ONCE], start)
            await asyncio.gather(*(self._put(definition.id, str(number), body) for number, body in part))
        self._graphs.put(definition.id, graph, graph.bytes)

    async def graph(self, workflow_id: str) -> Graph | None:
        """The graph of a workflow; None if there is no definition (any more)."""
        found = self._graphs.get(workflow_id)
        if found is None:
            body = await self._read(workflow_id, "shape")
            if body is None:
                return None
            found = Graph(_decode_shape(body))
            self._graphs.put(workflow_id, found, found.bytes)
        return found

    async def templates(self, workflow_id: str, graph: Graph, nodes: Iterable[int]) -> dict[int, Job]:
        """The drafts of some jobs. Raises OjsError backend_error if the definition is incomplete."""
        found: dict[int, Job] = {}
        chunk: dict[int, Job] = {}
        at = -1
        for node in nodes:
            if at != (at := graph.chunk_of(node)):
                chunk = await self._chunk(workflow_id, at)
            found[node] = chunk[node]
        return found

    async def _chunk(self, workflow_id: str, number: int) -> dict[int, Job]:
        key = (workflow_id, number)
        chunk = self._chunks.get(key)
        if chunk is None:
            body = await self._read(workflow_id, str(number))
            if body is None:
                raise OjsError("backend_error", f"a part of workflow {workflow_id} is missing")
            chunk = _decode_chunk(body)
            self._chunks.put(key, chunk, 2 * len(body) + 1_000)
        return chunk

    async def purge(self, workflow_id: str) -> None:
        """Delete the definition and all results that were kept, once nobody can ask for them any more."""
        self._graphs.drop(workflow_id)
        stream = self._config.records_stream
        for subject in (self._config.definition(workflow_id, REST), self._config.step_result(workflow_id, REST)):
            await ask(self._link, f"STREAM.PURGE.{stream}", {"filter": subject}, "to purge a workflow")

    def clear(self) -> None:
        self._graphs.clear()
        self._chunks.clear()

    async def _read(self, workflow_id: str, part: str) -> bytes | None:
        subject = self._config.definition(workflow_id, part)
        found = await self._records.nearest_raw(subject)
        if found is None and not self._records.nearest_is_leader:
            found = await self._records.leader_raw(subject)
        return found[1] or None if found is not None else None

    async def _put(self, workflow_id: str, part: str, body: bytes, *, only_first: bool = False) -> None:
        subject = self._config.definition(workflow_id, part)
        if not only_first:
            await put(self._link, subject, body, None, "a workflow")
        elif await put_if(self._link, subject, body, 0, "a workflow") is None:
            raise OjsError(
                "duplicate",
                f"a workflow with id {workflow_id} already exists",
                hint="Read the workflow with this id, or use another id.",
                details={"existing_workflow_id": workflow_id},
            )
