"""Schemas of jobs' arguments in the bucket. Every process that pushes has a copy of them, and compiles each once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
import structlog
from msgspec.structs import asdict, replace

from ojs_api.schemas import Mode
from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.job import Job
from ojs_engine.domain.versions import Version
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import Wildcard, encode_token
from ojs_engine.operations.job_checks import CheckedTypes
from ojs_engine.store.records.backoff import contended
from ojs_engine.store.records.documents import Beside, Documents
from ojs_engine.store.records.writer import Conflict
from ojs_engine.store.store import Store
from ojs_engine.telemetry.metrics import queue_label
from ojs_features.schemas.catalogue import Catalogue, mode_of
from ojs_features.schemas.document import checked
from ojs_features.schemas.metrics import VIOLATIONS
from ojs_features.schemas.record import SchemaRecord
from ojs_features.schemas.validator import Finding, Validator

log = structlog.get_logger(__name__)


_encode: Final = msgspec.json.Encoder().encode

DecideSchema = Callable[[Catalogue], SchemaRecord]
"""The record to write, by all that are there."""


def _key(job_type: str, version: Version) -> str:
    return f"{encode_token(job_type)}.{encode_token(version.token)}"


def _sound(token: str, record: SchemaRecord) -> None:
    if _key(record.type, record.order) != token:
        raise ValueError("it is the record of another schema")
    checked(msgspec.json.decode(record.document), DEFAULT_LIMITS)
    Validator(record.document)


schema_reader: Final = RecordReader("schema", msgspec.json.Decoder(SchemaRecord).decode, _sound)


class Schemas:
    """The schemas that are registered."""

    def __init__(self, store: Store) -> None:
        bucket = store.bucket
        self._records = bucket.records
        self._clock = bucket.clock
        self._tries = bucket.tries
        self._kept = bucket.kept
        self._queues = store.queues
        self._everyone = bucket.config.record(schema_reader.kind, Wildcard("*.*"))
        self._documents = Documents(
            bucket, lambda key: bucket.config.record(schema_reader.kind, key), schema_reader, lambda record, op: record.op == op
        )
        self._watch = bucket.watches.add("schemas", [self._everyone], self._changed)
        self._read: dict[str, tuple[int, SchemaRecord | None]] = {}
        """By subject what was read of which revision."""
        self._known = Catalogue(())
        self.checked = CheckedTypes(self._watch.begin)
        """The types that have a schema."""
        self._compiled: dict[str, tuple[str, Validator]] = {}
        """By URI, each with the op of its record."""

    # At a push

    async def check(self, draft: Job) -> Sequence[Finding]:
        """Return what doesn't fit about a job that is taken nevertheless.

        Raises OjsError schema_validation for one that isn't.
        """
        if not self._watch.loaded:
            await self._watch.begin()
        if draft.schema is None and draft.type not in self._known.types:
            return ()
        settings = await self._queues.settings(draft.queue)
        of_queue = None if settings is None else settings.config.schema_validation
        record = self._known.of(draft)
        if record is None:
            return self._unknown(draft, of_queue)
        mode = mode_of(record, draft, of_queue)
        found = () if mode == "off" else self._validator(record).findings(draft.args)
        return self._judged(draft, record.uri, found, strict=mode == "strict")

    def _unknown(self, draft: Job, of_queue: Mode | None) -> Sequence[Finding]:
        """A URI may be of somewhere else, which is nobody's fault unless the queue says that it has to be known here."""
        if draft.schema is None or of_queue in {None, "off"}:
            return ()
        finding = Finding("schema", "the schema that the job names is not registered", "")
        return self._judged(draft, draft.schema, [finding], strict=of_queue == "strict")

    def _judged(self, draft: Job, uri: str, found: Sequence[Finding], *, strict: bool) -> Sequence[Finding]:
        if found:
            VIOLATIONS.labels(queue_label(draft.queue), "rejected" if strict else "warned").inc()
        if not found or not strict:
            return found
        raise OjsError(
            "schema_validation",
            f"{found[0].path.partition('[')[0]} of the job of type {draft.type} doesn't fit schema {uri}",
            details={"field": found[0].path, "schema": uri, "validation_errors": [asdict(one) for one in found]},
        )

    def _validator(self, record: SchemaRecord) -> Validator:
        op, validator = self._compiled.get(record.uri) or ("", None)
        if validator is None or op != record.op:
            validator = Validator(record.document)
            self._compiled[record.uri] = (record.op, validator)
        return validator

    # Registering and reading

    async def catalogue(self) -> Catalogue:
        """All schemas, as the leader has them."""
        async for _ in self._tries():
            found = await self._stored()
            if found is not None:
                return found[1]
        raise contended("the schemas")

    async def register(self, wanted: SchemaRecord, most: int) -> SchemaRecord:
        """Store a new version. Raises OjsError conflict if it, or its URI, is taken, invalid_request if there are
        `most` of them or it doesn't agree with the version before it.
        """
        return await self._change(lambda known: known.admitted(wanted, most))

    async def put(self, wanted: SchemaRecord, most: int) -> tuple[bool, SchemaRecord]:
        """The same, whether it is new; of a version that is there with the same document, the settings change."""
        created = True

        def decide(known: Catalogue) -> SchemaRecord:
            nonlocal created
            old = next((one for one in known.types.get(wanted.type, ()) if one.order == wanted.order), None)
            created = old is None or old.document != wanted.document
            if old is None or created:
                return known.admitted(wanted, most)
            return replace(old, mode=wanted.mode, compatibility=wanted.compatibility, extensions=wanted.extensions)

        record = await self._change(decide)
        return created, record

    async def delete(self, find: DecideSchema) -> SchemaRecord:
        """Remove the version that `find` finds; jobs that are there stay as they are. Raises whatever `find` raises."""
        return await self._change(lambda known: replace(find(known), deleted=True))

    async def _stored(self) -> tuple[int, Catalogue] | None:
        """The last change of any schema, and all of them by then; None where a replica is behind."""
        sequence, _ = await self._records.leader_raw(self._everyone) or (0, b"")
        found = await self._records.many_raw(await self._records.subjects(self._everyone))
        if sequence != max((at for at, _ in found.values()), default=0):
            return None
        return sequence, Catalogue(self._readable(found))

    async def _change(self, decide: DecideSchema) -> SchemaRecord:
        """Two that claim one URI are different records, so each write is over the last one of all schemas."""
        async for _ in self._tries():
            stored = await self._stored()
            if stored is None:
                continue
            sequence, known = stored
            wanted = decide(known)
            moment = self._clock.moment()
            record = replace(wanted, created_at=wanted.created_at or moment.now, updated_at=moment.now, op=moment.op)
            key = _key(record.type, record.order)
            beside = Beside(ttl_s=self._kept.deleted_s if record.deleted else None)
            try:
                written = await self._documents.write(key, record, sequence, record.op, beside, among=self._everyone)
            except Conflict:
                continue
            self._watch.put(self._documents.subject(key), written, _encode(record))
            return record
        raise contended("the schemas")

    def _readable(self, found: Mapping[str, tuple[int, bytes]]) -> list[SchemaRecord]:
        """Those that can be read of some records by subject; what was read before isn't read again."""
        prefix = len(self._documents.subject(""))
        read: list[SchemaRecord] = []
        for subject, (sequence, body) in found.items():
            known = self._read.get(subject)
            if known is None or known[0] != sequence:
                known = (sequence, schema_reader.read(subject[prefix:], sequence, body) if body else None)
                self._read[subject] = known
            if known[1] is not None:
                read.append(known[1])
        return read

    def _changed(self) -> None:
        self._read = {subject: one for subject, one in self._read.items() if subject in self._watch.entries}
        self._known = Catalogue(self._readable(self._watch.entries))
        self.checked.names = frozenset(self._known.types) if self._watch.loaded else None
        self._compiled = {uri: one for uri, one in self._compiled.items() if uri in self._known.uris}
