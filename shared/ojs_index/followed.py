"""The part of a feature in what projectors read, list, relay and repair."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Protocol

from msgspec import Struct

from ojs_engine.domain.events.envelope import Event
from ojs_engine.domain.events.source import EventSource
from ojs_engine.domain.job import Job
from ojs_engine.domain.past import Logged
from ojs_engine.jetstream.feed import Record
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.store.gates import Asks
from ojs_engine.store.store import Store
from ojs_index.asking.counting import Counter, Counting
from ojs_index.asking.messages import Answer
from ojs_link.timings import Timings


class Index(Protocol):
    """A projector's index, for reading."""

    @property
    def counter(self) -> Counter:
        """Counts of what happened to jobs."""

    @property
    def db(self) -> sqlite3.Connection:
        """The tables."""

    @property
    def partial(self) -> bool:
        """Whether it is being built anew."""

    @property
    def progress(self) -> float:
        """The part of the bucket that has been read, 0 to 1."""


class JobEnds(Struct, frozen=True, kw_only=True):
    """The ends of jobs that ask for a feature, as a table of the index has them."""

    asks: Asks
    note: Callable[[sqlite3.Connection, Iterable[tuple[str, int]]], None]
    """Takes the ids of jobs that have ended, each with when its record was stored (Unix ms)."""


class Table(Struct, frozen=True, kw_only=True):
    """A table of the index with a row for each record of one kind, whose sequence is in the column `seq`."""

    name: str
    schema: str
    apply: Callable[[sqlite3.Connection, Iterable[tuple[Record, Any]]], None]
    """Takes up records in order of their sequence, each with what it holds: None for one that is gone or can't be read."""
    forget: Callable[[sqlite3.Connection, int], None]
    """Drops the rows of records whose TTL was over at a time (Unix ms)."""
    count: Callable[[sqlite3.Connection, int], int] | None
    """Returns the number of rows without those that leave before a time (Unix ms), so that records can be missed. None
    for rows that may be fewer or more than the records.
    """
    ends: JobEnds | None = None


class Question(Struct, frozen=True):
    """A question that a feature's handlers ask projectors."""

    ask: type[Struct]
    answer: Callable[[Index, Any], Answer]


class Repairs(Protocol):
    """A search for lost hints."""

    async def look(self) -> None:
        """Make one round. Raises OjsError backend_unavailable."""


class Keeper(Protocol):
    """A writer of records of what an index has counted."""

    async def start(self) -> None:
        """Begin to write."""

    async def stop(self) -> None:
        """End."""

    def caught_up(self, at: int) -> None:
        """Note that the index has everything that was stored by `at` (server time, Unix ms)."""

    async def clear(self) -> None:
        """Hold back: a reset has begun."""


class Found(Protocol):
    """A counter of hints that were lost and were issued again."""

    def __call__(self, kind: str, number: int = 1, **what: str) -> None:
        """Count some of a kind. `what` goes into the log."""


class Owner(Struct, frozen=True, kw_only=True):
    """The part of a record in the events of jobs that are its members."""

    asks: Asks
    """Tells whether a job is a member of one."""
    id: Callable[[Job], str]
    events: Callable[[Logged], list[Event]]
    """Returns what an entry of a member's log means for the record. They come behind the job's own events."""
    creation: Callable[[Store, str], Awaitable[EventSource | None]]
    """Reads the source of a record's creation alone, by its id, where its jobs are met ahead of it.

    Raises OjsError backend_unavailable.
    """


class Followed(Struct, frozen=True, kw_only=True):
    """A kind of records that projectors read. They list one that can't be read."""

    reader: RecordReader[Any]
    table: Table | None = None
    counting: Counting | None = None
    """What counts in the index, if the records keep what it has counted. Only one feature may count."""
    events: Callable[[Any], EventSource | None] = lambda _found: None
    """Returns the source of the events of what a record holds, None if it has none."""
    owner: Owner | None = None
    repairs: Callable[[Store, Index, Found, tuple[Timings, ...]], Repairs] | None = None
    """Makes what looks for lost hints. It takes the durations of features that aren't the usual ones."""
    tidying: Callable[[Store, Index, tuple[Timings, ...]], Repairs] | None = None
    """Makes what tidies up in each round of the safety net. What it finds is no lost hint."""
    keeper: Callable[[Store, Index, Callable[[], bool], tuple[Timings, ...]], Keeper] | None = None
    """Makes what writes its records, where they are of what the index has counted.

    It takes whether this replica is the one to write, and durations as `repairs`.
    """
    questions: Mapping[str, Question] = MappingProxyType({})
    """By the word that names the question on NATS."""
