"""Reads of many records."""

from __future__ import annotations

from msgspec import Raw

from integration.samples import draft
from ojs_engine.store.records.records import MULTI_GET_BYTES
from ojs_engine.store.store import Store


async def test_records_beyond_one_answers_bytes_are_all_read(store: Store, queue: str) -> None:
    args = Raw(b'["' + b"a" * 1_000_000 + b'"]')
    pushed = [await store.enqueue.push(draft(queue=queue, args=args)) for _ in range(2 * MULTI_GET_BYTES // len(args) + 1)]
    found = await store.records.many([job.id for job in pushed])
    assert [stored.job for stored in found.values()] == pushed
