"""What is asked of the projectors, and what they answer. Times are Unix milliseconds."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Raw, Struct

from ojs_api import pages, words
from ojs_engine.domain.job import NOTHING, State
from ojs_engine.domain.members import Found
from ojs_engine.store.workers.presence import WorkerRecord

BEHIND: Final = "behind"
"""An error of a projector: it did not reach the barrier in time."""
FAILED: Final = "its log says why"
"""The other: it failed. What failed is nobody's business who may only ask."""
MAX_PAGE: Final = pages.MAX_PAGE
MAX_OFFSET: Final = pages.MAX_OFFSET
"""A larger `offset` is refused at the edge, and counts as this here; cursors reach any depth at the same cost."""
MAX_COUNTED: Final = 10_000
"""How far is counted what no number is kept of."""
MAX_ANSWER_BYTES: Final = 4 * 1024 * 1024
"""A page ends before it grows beyond this; its cursor goes on."""


Sort = words.Sort

CURSOR: Final = re.compile(r"(-?[0-9]{1,18})\.(.*)", re.ASCII | re.DOTALL)
"""Of `cursor_after`."""
KEYED_CURSOR: Final = re.compile(r"(-?[0-9]{1,18}|none)~(-?[0-9]{1,18})\.(.*)", re.ASCII | re.DOTALL)
"""Of `job_cursor`, for what is not sorted by creation."""


def is_time_cursor(cursor: str) -> bool:
    """Whether `cursor_after` may have made it."""
    return CURSOR.fullmatch(cursor) is not None


def is_job_cursor(cursor: str, sort: Sort) -> bool:
    """Whether `job_cursor` may have made it for a list that is sorted so."""
    return is_time_cursor(cursor) if sort == "created_at" else KEYED_CURSOR.fullmatch(cursor) is not None


def cursor_after(at: int, job_id: str) -> str:
    """The cursor of a page of jobs that ends with this one; `at` is the number by which the list is ordered."""
    return f"{at}.{job_id}"


def job_cursor(sort: Sort, key: int | None, created_at: int, job_id: str) -> str:
    """The cursor of a page of `JobsAsk` that ends with this job; `key` is what it is sorted by, None if it has none."""
    after = cursor_after(created_at, job_id)
    return after if sort == "created_at" else f"{'none' if key is None else key}~{after}"


# Questions. `barrier` is filled in by `Queries`.


class Ask(Struct, frozen=True, kw_only=True, omit_defaults=True):
    barrier: int = 0
    """Sequence in the bucket's stream that the answer must have seen."""


class PageAsk(Ask, frozen=True, kw_only=True, omit_defaults=True):
    """A list, a page at a time. `cursor` is a page's `next_cursor`; it and `offset` add up."""

    limit: int = 50
    cursor: str | None = None
    offset: int = 0


class QueueAsk(Ask, frozen=True, kw_only=True):
    name: str


class QueuesAsk(PageAsk, frozen=True, kw_only=True, omit_defaults=True):
    """Queues by name. `also` names queues that are listed whether they ever had a job or not.

    `patterns` are of the names that are listed, with `*` for any characters; none: all. `search` is a part of each name,
    in any case. `backlog` asks for that, too.
    """

    also: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    search: str | None = None
    backlog: bool = False


class JobsAsk(Found, frozen=True, kw_only=True, omit_defaults=True):
    """Jobs, the newest first; what is None is not asked about. A `type` that ends in `*` stands for all that begin so.

    It is a `PageAsk` with the texts that jobs are found by. `since` and `until` bound the time of its creation, both
    included. `meta` are members of its metadata, all of which it has: a string by its text, other plain values as JSON writes
    them. Among jobs of one priority or one time `created_at` decides, and those without a time come last. `whole` asks for
    their documents, too.
    """

    barrier: int = 0
    limit: int = 50
    cursor: str | None = None
    offset: int = 0
    state: State | None = None
    queue: str | None = None
    type: str | None = None
    meta: tuple[tuple[str, str], ...] = ()
    since: int | None = None
    until: int | None = None
    sort: Sort = "created_at"
    ascending: bool = False
    whole: bool = False


class DeadLettersAsk(PageAsk, frozen=True, kw_only=True, omit_defaults=True):
    """Dead letters, the latest first. `since` and `until` bound the time of the discard, both included. `whole` asks for their
    documents, too.
    """

    queue: str | None = None
    type: str | None = None
    error_type: str | None = None
    since: int | None = None
    until: int | None = None
    whole: bool = False


class StatsAsk(Ask, frozen=True, kw_only=True, omit_defaults=True):
    """Dead letter statistics, of one queue or of all."""

    queue: str | None = None


class WorkersAsk(PageAsk, frozen=True, kw_only=True, omit_defaults=True):
    """Workers by id, those that deregistered left out. `state` is what a worker says of itself, or `stale` for silent ones.

    `queue` is one that it names. `search` is a part of its id, its host or the name of one of its queues, in any case.
    """

    id: str | None = None
    state: str | None = None
    queue: str | None = None
    search: str | None = None


class DispatchesAsk(Ask, frozen=True, kw_only=True, omit_defaults=True):
    """What was handed out within the last minute. `also` names queues that are listed in any case."""

    also: tuple[str, ...] = ()


class ConcernsAsk(Ask, frozen=True, kw_only=True, omit_defaults=True):
    """The queues that an operator may have to see to. `paused` are those that are told of in any case, and of no others."""

    paused: tuple[str, ...] = ()


class UnreadableAsk(PageAsk, frozen=True, kw_only=True, omit_defaults=True):
    """Records that can't be read, by kind and key."""

    kind: str | None = None


# Answers


class Answer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`partial` while the index is being built anew: what is there is right, but not all is there."""

    partial: bool = False
    progress: float = 1.0
    """How much of the bucket has been read, 0 to 1."""


class PageAnswer(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """A part of a list, and the cursor behind it, None at the end. It may have fewer rows than asked for, or none, before."""

    next_cursor: str | None = None


class JobRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the index knows of a job. The whole job is in `document`, if it is small and was asked for, and in its record:
    `store.records.many([row.id …])`.
    """

    id: str
    type: str
    queue: str
    state: State
    priority: int = 0
    attempt: int = 0
    created_at: int
    enqueued_at: int | None = None
    scheduled_at: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    error_type: str | None = None
    worker: str | None = None
    tags: tuple[str, ...] = ()
    dead_letter: bool = False
    leaves_at: int | None = None
    """When its record's TTL ends."""
    document: Raw = NOTHING
    """The job as it is stored; nothing if its record has to be read."""


class JobPage(PageAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """`total` counts all that match, on every page; None where more than `MAX_COUNTED` jobs would have to be looked through."""

    jobs: list[JobRow]
    total: int | None


class UnreadableRow(Struct, frozen=True):
    """A record that can't be read: what its key says it is, and why it can't be. `stored_at` in Unix ms, `size` in bytes."""

    kind: str
    key: str
    sequence: int
    stored_at: int
    size: int
    problem: str


class UnreadablePage(PageAnswer, frozen=True, kw_only=True, omit_defaults=True):
    """`total` as in `JobPage`."""

    records: list[UnreadableRow]
    total: int


class DeadLetterStats(Answer, frozen=True, kw_only=True, omit_defaults=True):
    total: int
    by_queue: dict[str, int]
    by_type: dict[str, int]
    by_error_type: dict[str, int]
    oldest_at: int | None = None
    newest_at: int | None = None
    max_count: int = 0
    """How many a queue keeps that doesn't say otherwise; 0 for any number."""
    next_prune_at: int | None = None


class DispatchesOfQueue(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`number` jobs were handed out, which together had been available for `wait_ms`."""

    name: str
    number: int = 0
    wait_ms: int = 0
    last_at: int | None = None
    """The second in which the last one was, however long ago."""
    active: int = 0
    available: int = 0
    oldest_at: int | None = None
    """Since when the oldest of the available jobs is available."""


class Dispatches(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """`total` counts the jobs of all queues, listed or not."""

    queues: list[DispatchesOfQueue]
    total: int


class QueueFacts(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A queue as it stands. `completed` and `failed` count the attempts that ended within five minutes."""

    name: str
    available: int = 0
    oldest_at: int | None = None
    """Since when the oldest of the available jobs is available."""
    oldest_id: str | None = None
    """Its id, of the queues whose jobs have waited longest."""
    served: bool = False
    """Whether a running worker names it, or a job of it was handed out within five minutes."""
    last_at: int | None = None
    """When a job of it was last handed out."""
    completed: int = 0
    failed: int = 0


class Concerns(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """Queues that are paused with jobs in them, whose jobs have waited longest, or of which most attempts failed."""

    queues: list[QueueFacts]
    known: int
    """How many queues there are."""


class WorkerRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`held` counts the active jobs that were handed to it by name; `stale` if it was not heard of for 30 s."""

    record: WorkerRecord
    held: int = 0
    stale: bool = False


class WorkerSummary(Struct, frozen=True, kw_only=True):
    """All workers by state; those that drain count as quiet, those that are stale as nothing else."""

    total: int
    running: int
    quiet: int
    terminate: int
    stale: int
    held: int = 0
    """Active jobs of all of them."""
    held_by_stale: int = 0


class WorkerPage(PageAnswer, frozen=True, kw_only=True, omit_defaults=True):
    workers: list[WorkerRow]
    total: int
    summary: WorkerSummary


class ProjectorStatus(Answer, frozen=True, kw_only=True, omit_defaults=True):
    """One projector. `lag_ms`: how old the last applied record is while more are stored, else 0."""

    instance: str
    applied: int
    lag_ms: int
    relaying: bool
    relayed: int
    """Sequence up to which all transitions are events, as far as this projector has relayed."""
    events: int
    """Events stored by this projector since it started."""
    repaired: dict[str, int]
    """What the safety net has found since it started, by kind."""


class RelayedAnswer(Struct, frozen=True):
    relayed: int


class AskOutcome(Struct, frozen=True, omit_defaults=True):
    """The envelope of every answer: an error or the answer."""

    error: str | None = None
    answer: Raw = Raw(b"")
