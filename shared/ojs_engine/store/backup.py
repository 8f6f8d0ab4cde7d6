"""The part of a feature in backups, restores and releases, and what commands ask of the feature that makes them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from msgspec import Struct

from ojs_engine.base.numbers import At, Whole
from ojs_engine.domain.transitions import Moment
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.gates import LaneRule
from ojs_engine.store.records.records import Records
from ojs_engine.store.records.writer import Hint


class BackupProblem(Exception):
    """Why a backup can't be made or used: one sentence, with its remedy."""


class Kept(Struct, frozen=True, array_like=True):
    """A stored message: its sequence, when it was stored (server time, Unix ms), subject, headers and body."""

    sequence: Whole
    at: At
    subject: str
    headers: bytes
    data: bytes


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
    acting: Acting | None = None
    """None for those that a release doesn't count."""
    remark: str | None = None
    """What a restore says of them, behind their number."""


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


Tell = Callable[[str, int, int], None]
"""Takes progress: the part, how much of it is done, and of how much."""
Agree = Callable[[Sequence[str]], bool]
"""Shows these lines, and returns whether what they say shall be done."""


class Target(NamedTuple):
    """The system that a backup is restored into."""

    namespace: str | None
    """None for that of the backup."""
    replicas: int
    quiet: bool | None
    """Whether it waits for its release. With None it waits in another namespace, and else as it did."""


class Outcome(NamedTuple):
    """The outcome of a command: as JSON, and as lines for people. The warning is for both."""

    answer: Any
    lines: Sequence[str]
    warning: str | None = None


class BackupCommands(Struct, frozen=True, kw_only=True):
    """The work of commands that make, restore and release backups. It raises BackupProblem, OjsError backend_unavailable."""

    back_up: Callable[[Connection, StoreConfig, Path, Tell, Sequence[FeatureBackup]], Awaitable[Outcome]]
    restore: Callable[[Connection, Target, Path, Tell, Sequence[FeatureBackup]], Awaitable[Outcome]]
    release: Callable[[Connection, StoreConfig, Agree, Sequence[FeatureBackup]], Awaitable[Outcome]]
