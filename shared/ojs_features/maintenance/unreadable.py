"""Removing records that can't be read, and only those (docs/adr/028)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import structlog

from ojs_engine.base.errors import OjsError, invalid, not_found
from ojs_engine.jetstream.api import purge_unheard
from ojs_engine.jetstream.reading import RecordReader, Unreadable
from ojs_engine.jetstream.subjects import ANY, REST, Wildcard
from ojs_engine.store.queues.queues import queue_reader
from ojs_engine.store.records.blobs import blob_reader
from ojs_engine.store.records.idempotency import request_reader
from ojs_engine.store.records.records import job_reader
from ojs_engine.store.records.writer import Conflict, Write
from ojs_engine.store.store import Store
from ojs_engine.store.workers.notes import DIRECTIVE, HANDLERS, LEAVE, directive_reader, handlers_reader
from ojs_engine.store.workers.presence import worker_reader

log = structlog.get_logger(__name__)

_READERS: Final[dict[str, RecordReader[Any]]] = {
    reader.kind: reader
    for reader in (
        job_reader,
        blob_reader,
        request_reader,
        worker_reader,
        queue_reader,
    )
}


class UnreadableRecords:
    """Records that can't be read, as an operator removes them."""

    def __init__(self, store: Store) -> None:
        bucket = store.bucket
        self._nats = bucket.nats
        self._records = bucket.records
        self._kept = bucket.kept
        self._config = bucket.config
        self._writer = bucket.writer

    async def remove(self, kind: str, key: str, features: Sequence[RecordReader[Any]] = ()) -> None:
        """Delete a record that can't be read, with its timers and what else hangs on its name, which is free again.

        `features` are the readers of their records.

        Raises OjsError invalid_request for what is no kind, not_found, conflict for a record that can be read, or that changed
        meanwhile, backend_unavailable.
        """
        reader = _reader(kind, key, features)
        subject = self._config.record(reader.kind, key)
        sequence, body = await self._records.leader_raw(subject) or (0, b"")
        if not body:
            raise not_found(f"{kind} record", key)
        try:
            reader.decode(key, body)
        except Unreadable as problem:
            reason = problem.problem
        else:
            raise OjsError(
                "conflict",
                f"the {kind} record {key} can be read, so it is not removed here",
                hint="Use the endpoints for what it is.",
                canonical="RECORD_READABLE",
            )
        try:
            removed = await self._writer.write(Write(subject, b"", sequence, lambda _found: False, ttl_s=self._kept.deleted_s))
        except Conflict:
            raise OjsError("conflict", f"the {kind} record {key} changed meanwhile", hint="Look at it again.") from None
        log.info("a record that can't be read was removed", kind=kind, key=key, sequence=sequence, problem=reason)
        for pattern in self._belongings(reader, key):
            # The name is free by now: whoever has it next may have set a timer of his own.
            purge_unheard(self._nats, self._config.records_stream, pattern, before=removed)

    def _belongings(self, reader: RecordReader[Any], key: str) -> list[str]:
        """What else is stored under a record's name, and of no use without it."""
        config = self._config
        match reader.kind:
            case "job":
                return [config.timer(key, ANY), config.record("blob", Wildcard(f"{key}.{REST}"))]
            case _:
                return reader.belongings(config, key)


def _reader(kind: str, key: str, features: Sequence[RecordReader[Any]]) -> RecordReader[Any]:
    """Raises OjsError invalid_request."""
    if kind == "worker" and key.endswith(f".{HANDLERS}"):
        return handlers_reader
    if kind == "worker" and key.endswith((f".{DIRECTIVE}", f".{LEAVE}")):
        return directive_reader
    known = removable(features)
    if kind not in known:
        raise invalid("kind", f"kind must be one of {', '.join(known)}")
    return next((reader for reader in features if reader.kind == kind), None) or _READERS[kind]


def removable(features: Sequence[RecordReader[Any]]) -> tuple[str, ...]:
    """Return the kinds of records that a client's work is made of."""
    return (*_READERS, *(reader.kind for reader in features))
