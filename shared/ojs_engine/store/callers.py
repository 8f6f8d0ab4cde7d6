"""The part of stored keys that a server without keys has to know."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from ojs_engine.access.admission import ENVIRONMENT
from ojs_engine.base.numbers import At
from ojs_engine.jetstream.marks import Mark
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import ANY, HAD_KEYS
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.store.records.documents import Documents


class _StoredKey(Struct, frozen=True):
    expires_at: At | None = None
    revoked_at: At | None = None
    replaced_by: str | None = None


_reader: Final = RecordReader("key", msgspec.json.Decoder(_StoredKey).decode)


async def has_had_keys(bucket: Bucket) -> bool:
    """Return whether a system has keys, or has had some. Raises OjsError backend_unavailable."""
    stored = await bucket.records.subjects(bucket.config.key(ANY))
    return bool(stored) or await Mark(bucket.nats, bucket.config, HAD_KEYS).is_set()


async def key_lives(bucket: Bucket, key_id: str) -> bool:
    """Return whether a key, or the last that it was rotated to, lets anybody in.

    Raises OjsError backend_unavailable.
    """
    if key_id == ENVIRONMENT:
        return True
    documents = Documents(bucket, bucket.config.key, _reader, lambda _key, _op: False)
    _, first = await documents.read(key_id)
    key = first
    while key is not None and key.replaced_by is not None:
        _, key = await documents.read(key.replaced_by)
    now = bucket.clock.now()
    return first is not None and key is not None and not (_ended(first, now) and _ended(key, now))


def _ended(key: _StoredKey, now: int) -> bool:
    return key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now)
