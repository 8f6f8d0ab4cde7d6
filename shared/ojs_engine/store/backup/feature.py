"""The part of a feature in backups, restores and releases."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct, to_builtins

from ojs_engine.domain.transitions import Moment
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.backup.archive import Kept
from ojs_engine.store.gates import LaneRule
from ojs_engine.store.records.records import Records
from ojs_engine.store.records.writer import Hint

Places = Callable[[Connection, StoreConfig], Awaitable[dict[str, int]]]
"""Returns up to which event each of a feature's consumers has got them, by names of the feature."""


class Restoring(NamedTuple):
    """What a restore gives to those who revive a record."""

    config: StoreConfig
    moment: Callable[[], Moment]
    behind: Callable[[str, int], int]
    """Takes a consumer's name and the event at which it began, and returns the event behind which it goes on."""


class RevivedRecord(NamedTuple):
    """A record as it is restored, with the hints ahead of it, and the counts of the restore that it adds one to."""

    body: bytes
    hints: Sequence[Hint] = ()
    counts: Sequence[str] = ()


Revive = Callable[[str, Kept, Restoring], RevivedRecord | None]
"""Takes the name of a record, and the record. Returns None for one that can't be read."""
Acting = Callable[[Records, StoreConfig], Awaitable[int]]
"""Counts the records that begin to act when a restored system is released."""


class Counted(Struct, frozen=True, kw_only=True):
    """Records that a restore and a release count for people."""

    noun: str
    """One of them, in the words of users."""
    kind: str
    acting: Acting


class FeatureBackup(Struct, frozen=True, kw_only=True):
    """Kinds of messages of a feature that a backup treats in their own way. All of its records are in each backup."""

    hints: frozenset[tuple[str, str]] = frozenset()
    """Hints that are kept as they are, by the two words behind the namespace."""
    lanes: LaneRule | None = None
    """The lanes of tokens of jobs that ask for the feature."""
    notes: Mapping[str, Callable[[StoreConfig, str], Hint]] = MappingProxyType({})
    """By the kind of record: makes the note that is stored ahead of one of a name."""
    places: Places | None = None
    revive: Mapping[str, Revive] = MappingProxyType({})
    """By the kind of record."""
    counted: Mapping[str, Counted] = MappingProxyType({})
    """By the name of the count in JSON."""


def flat(counts: Struct) -> dict[str, Any]:
    """Return the members of counts, with the counts of features among them."""
    members: dict[str, Any] = to_builtins(counts)
    of_features: dict[str, int] = members.pop("features")
    return members | of_features
