"""Keys of the API in the bucket: changed by whoever may, known by heart to every gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import structlog
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError, not_found
from ojs_engine.domain.transitions import Moment
from ojs_engine.jetstream.marks import Mark
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.jetstream.subjects import ANY, HAD_KEYS
from ojs_engine.store.records.documents import Documents
from ojs_engine.store.store import Store
from ojs_features.access.allowances import KeyLimits
from ojs_features.access.keys import Key, NewKey, renewed
from ojs_features.access.sessions import with_ended
from ojs_link.timings import Timings

log = structlog.get_logger(__name__)

MAX_KEYS: Final = 1_000
"""Keys that have not ended."""

_encode: Final = msgspec.json.Encoder().encode


def _sound(token: str, key: Key) -> None:
    if key.id != token:
        raise ValueError("it is the record of another key")
    bytes.fromhex(key.salt + key.hash)


key_reader: Final = RecordReader("key", msgspec.json.Decoder(Key).decode, _sound)


class KeyTimings(Timings, frozen=True, kw_only=True):
    """What is noted of keys, and when."""

    coarse_ms: int = 15 * 60_000
    """How far back the noted last use of a key may lie."""


class Keys:
    """Reads and changes keys.

    Those that were revoked stay, so that a system that has had keys never counts as one without.
    """

    def __init__(self, store: Store) -> None:
        bucket = store.bucket
        self.timings = bucket.timings(KeyTimings)
        self._records = bucket.records
        self._clock = bucket.clock
        self._config = bucket.config
        self._documents = Documents(bucket, bucket.config.key, key_reader, lambda key, op: key.op == op)
        self._prefix = len(bucket.config.key(""))
        self._on_change: Callable[[list[Key], bool], None] = lambda _keys, _others: None
        self._mark = Mark(bucket.nats, bucket.config, HAD_KEYS)
        self._had = False
        """Whether the mark is known to be there."""
        subjects = [bucket.config.key(ANY)]
        self._watch = bucket.watches.add("keys", subjects, self._changed, stays_at_reset=True)

    async def all(self) -> list[Key]:
        """By the time they were made. Raises OjsError backend_unavailable."""
        found, _ = self._readable(await self._records.many_raw(await self._records.subjects(self._config.key(ANY))))
        return sorted(found, key=lambda key: (key.created_at, key.id))

    async def get(self, key_id: str) -> Key:
        """Raises OjsError not_found."""
        _, key = await self._documents.read(key_id)
        if key is None:
            raise not_found("key", key_id)
        return key

    async def create(self, new: NewKey) -> Key:
        """Store a new key. Raises OjsError conflict for a first one that couldn't make others, and for one too many."""
        known = await self.all()
        if not known and not new.key.principal.may("admin"):
            raise OjsError(
                "conflict",
                "the first key has to have the permission 'admin': from then on nobody gets in without a key",
                hint="Make one with role admin first, and then this one.",
                canonical="FIRST_KEY_NOT_ADMIN",
            )
        now = self._clock.now()
        if sum(not key.ended(now) for key in known) >= MAX_KEYS:
            raise OjsError(
                "conflict",
                f"there are {MAX_KEYS:,} keys; that is the limit",
                hint="Revoke those that nobody uses.",
                canonical="TOO_MANY_KEYS",
            )
        await self._set_mark()
        return await self._put(new.key)

    async def rotate(self, key_id: str, overlap_ms: int) -> NewKey:
        """A new key for the same, and an end for the old one, after which it lets nobody in.

        Raises OjsError not_found, conflict for one that has ended.
        """
        old = await self.get(key_id)
        _require_live(old, self._clock.now())
        last = await self._last(old)
        new = renewed(replace(old, created_at=last.created_at, expires_at=last.expires_at), self._clock.now())
        made = await self._put(new.key)

        def ends(key: Key | None, moment: Moment) -> Key:
            if key is None:
                raise not_found("key", key_id)
            end = moment.now + overlap_ms
            end = end if key.expires_at is None else min(end, key.expires_at)
            return replace(key, expires_at=end, replaced_by=made.id, op=moment.op)

        await self._change(key_id, ends)
        return NewKey(made, new.token)

    async def _last(self, key: Key) -> Key:
        """The newest that a key was rotated to: the end of those before is that of their overlap."""
        while key.replaced_by is not None:
            key = await self.get(key.replaced_by)
        return key

    async def revoke(self, key_id: str) -> Key:
        """It lets nobody in from now on. Raises OjsError not_found."""

        def ends(key: Key | None, moment: Moment) -> Key | None:
            if key is None:
                raise not_found("key", key_id)
            return None if key.revoked_at is not None else replace(key, revoked_at=moment.now, op=moment.op)

        return await self._change(key_id, ends)

    async def limit(self, key_id: str, limits: KeyLimits) -> Key:
        """Give a key other limits; what is under way goes on. Raises OjsError not_found, conflict for an ended one."""

        def limited(key: Key | None, moment: Moment) -> Key:
            if key is None:
                raise not_found("key", key_id)
            _require_live(key, moment.now)
            return replace(key, limits=limits, op=moment.op)

        return await self._change(key_id, limited)

    async def end_session(self, key_id: str, mark: str) -> None:
        """Have every gateway take a session of a key no more. Raises OjsError not_found."""

        def ended(key: Key | None, moment: Moment) -> Key | None:
            if key is None:
                raise not_found("key", key_id)
            if mark in key.ended_sessions:
                return None
            return replace(key, ended_sessions=with_ended(key.ended_sessions, mark, moment.now), op=moment.op)

        await self._change(key_id, ended)

    # For those who let in

    async def follow(self, changed: Callable[[list[Key], bool], None]) -> None:
        """Have `changed` called with all keys, and whether there are, or were, others, now and at each change.

        Raises OjsError backend_unavailable. While NATS can't be heard the keys that were known last stay.
        """
        await self._watch.begin()
        if not self._watch.entries and not self._had:
            self._had = await self._mark.is_set()
        self._on_change = changed
        self._changed()
        if self.are_lost:
            log.error("there are no keys, though this system has had some: it asks everybody for one", door="shut")

    @property
    def are_lost(self) -> bool:
        """Whether keys were made in this system, and none of them is stored any more."""
        return self._had and self._watch.loaded and not self._watch.entries

    async def mark(self) -> None:
        """Mark the system if it has keys, such as those of an earlier version. Raises OjsError backend_unavailable."""
        if self._watch.entries:
            await self._set_mark()

    async def _set_mark(self) -> None:
        if not self._had:
            await self._mark.set()
            self._had = True

    @property
    def fresh(self) -> bool:
        """Whether what is followed was heard of lately."""
        return self._watch.fresh

    async def note_use(self, key_id: str) -> None:
        """Write down that a key was used now, unless that was done lately."""

        def used(key: Key | None, moment: Moment) -> Key | None:
            if key is None or (key.used_at is not None and moment.now - key.used_at < self.timings.coarse_ms):
                return None
            return replace(key, used_at=moment.now, op=moment.op)

        await self._documents.change(key_id, used)

    async def _put(self, wanted: Key) -> Key:
        return await self._change(wanted.id, lambda _old, moment: replace(wanted, created_at=moment.now, op=moment.op))

    async def _change(self, key_id: str, decide: Callable[[Key | None, Moment], Key | None]) -> Key:
        changed = await self._documents.change(key_id, decide)
        assert changed.new is not None
        if self._watch.loaded:
            self._watch.put(self._config.key(key_id), changed.revision, _encode(changed.new))
        return changed.new

    def _readable(self, found: Mapping[str, tuple[int, bytes]]) -> tuple[list[Key], bool]:
        """Those that can be read, and whether there are others."""
        read = [key_reader.read(subject[self._prefix :], *one) for subject, one in found.items() if one[1]]
        return [key for key in read if key is not None], None in read

    def _changed(self) -> None:
        keys, unreadable = self._readable(self._watch.entries)
        self._on_change(keys, unreadable or self._had)


def _require_live(key: Key, now: int) -> None:
    if key.ended(now):
        raise OjsError(
            "conflict",
            f"key {key.id} has ended, and can't be changed",
            hint="Make a new one.",
            details={"key": key.id},
        )
