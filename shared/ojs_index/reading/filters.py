"""What a list is filtered by: as conditions on a row of `jobs`, and as sets of jobs that an index has together."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ojs_engine.domain.job import State
from ojs_engine.domain.members import LABELLED
from ojs_index.asking.messages import JobsAsk
from ojs_index.sqlite.labels import label_of, pair_label
from ojs_index.sqlite.numbers import ALL, DEAD

END: Final = 1 << 62
"""Beyond all times."""
HIGHEST: Final = "\U0010ffff"
"""Behind all texts."""
_STATES: Final = tuple(state.value for state in State)


class Condition(NamedTuple):
    """On a row of `jobs`."""

    sql: str
    values: tuple[Any, ...]


class Subset(NamedTuple):
    """The jobs that some filters name, as ranges of one index, each with a tuple of `ranges` for the marks of `where`.

    `names` are those of the filters; `at` is the creation time there, by which a range is ordered unless that is None.
    """

    names: frozenset[str]
    table: str
    join: str
    at: str | None
    where: str
    ranges: Sequence[tuple[Any, ...]]

    @property
    def source(self) -> str:
        return f"{self.table}{self.join}"

    @property
    def condition(self) -> str:
        """`where`, as a condition on a row of `jobs`."""
        if not self.join:
            return self.where
        same = f"{self.at} = jobs.created_at AND {self.table}.n = jobs.n"
        return f"EXISTS (SELECT 1 FROM {self.table} WHERE {self.where} AND {same})"


class Filters:
    """The filters of one question."""

    def __init__(self, ask: JobsAsk) -> None:
        self._queue = ask.queue
        self._type = None if ask.type == "*" else ask.type
        self._state = ask.state.value if ask.state is not None else None
        self._states = _STATES if self._state is None else (self._state,)
        self._worker = ask.worker
        self._error_type = ask.error_type
        self.since = -END if ask.since is None else ask.since
        self.until = END if ask.until is None else ask.until
        self._labels = [pair_label(key, value) for key, value in ask.meta]
        self._labels += [label_of(by.letter, text) for by in LABELLED if (text := getattr(ask, by.name)) is not None]
        self._conditions = dict(self._all())

    # As conditions

    def _all(self) -> Iterator[tuple[str, Condition]]:
        if self._state is not None:
            yield "state", Condition("jobs.state = ?", (self._state,))
        if self._queue is not None:
            yield "queue", Condition("jobs.queue = ?", (self._queue,))
        if self._type is not None and self._type.endswith("*"):
            prefix = self._type[:-1]
            yield "type", Condition("substr(jobs.type, 1, ?) = ?", (len(prefix), prefix))
        elif self._type is not None:
            yield "type", Condition("jobs.type = ?", (self._type,))
        if self._worker is not None:
            yield "worker", Condition("jobs.worker = ?", (self._worker,))
        if self._error_type is not None:
            yield "error", Condition("jobs.error_type = ?", (self._error_type,))
        for label in self._labels:
            has = "EXISTS (SELECT 1 FROM labels WHERE label = ? AND labels.at = jobs.created_at AND labels.n = jobs.n)"
            yield label, Condition(has, (label,))

    def but(self, subset: Subset) -> Condition | None:
        """All filters but those of a set and the time, as one; None if there are no others."""
        left = [one for name, one in self._conditions.items() if name not in subset.names]
        if not left:
            return None
        return Condition(" AND ".join(one.sql for one in left), tuple(value for one in left for value in one.values))

    # As sets

    def ordered(self) -> Iterator[Subset]:
        """The sets that are in order, those first that usually have the fewest jobs; the last one is of all jobs in a state."""
        for label in self._labels:
            join = " CROSS JOIN jobs ON jobs.n = labels.n"
            yield Subset(frozenset({label}), "labels", join, "labels.at", "label = ?", [(label,)])
        if self._worker is not None:
            yield self.by_state("of_worker", "worker = ? AND state = ?", "worker", self._worker)
        if self._error_type is not None:
            yield self._of_column("of_error", "error_type = ?", self._error_type, "error")
        if self._queue is not None:
            yield self.by_state("of_queue", "queue = ? AND state = ?", "queue", self._queue)
        if self._type is not None and not self._type.endswith("*"):
            yield self._of_column("of_type", "type = ?", self._type, "type")
        yield self.by_state("of_state", "state = ?")

    def unordered(self) -> Iterator[Subset]:
        """The others, which can only be read as a whole."""
        if self._type is not None and self._type.endswith("*"):
            index = "jobs INDEXED BY of_type"
            yield Subset(frozenset({"type"}), index, "", None, "type BETWEEN ? AND ?", [_span(self._type)])

    def by_state(self, index: str, where: str, name: str = "state", *values: str) -> Subset:
        """A set with a range for each state; `name` is that of the filter that the first `values` are of."""
        ranges = [(*values, state) for state in self._states]
        return Subset(frozenset({"state", name}), f"jobs INDEXED BY {index}", "", "jobs.created_at", where, ranges)

    def _of_column(self, index: str, where: str, value: str, name: str) -> Subset:
        return Subset(frozenset({name}), f"jobs INDEXED BY {index}", "", "jobs.created_at", where, [(value,)])

    def size(self, db: sqlite3.Connection, subset: Subset, most: int) -> int:
        """How many jobs a set has in the time asked for, up to `most`; of one without an order at any time."""
        kept = self.counted(db, subset.names)
        if kept is not None:
            return min(kept, most)
        left = most
        for values in subset.ranges:
            where = subset.where if subset.at is None else f"{subset.where} AND {subset.at} BETWEEN ? AND ?"
            bounds = () if subset.at is None else (self.since, self.until)
            counted = f"SELECT count(*) FROM (SELECT 1 FROM {subset.table} WHERE {where} LIMIT ?)"
            left -= db.execute(counted, (*values, *bounds, left)).fetchone()[0]
        return most - left

    def leave_out_empty_states(self, db: sqlite3.Connection) -> None:
        """States in which no job of the queue and the type is, by the kept numbers, are no ranges of a set."""
        if self._state is None:
            job_type = self._type if self._type is not None and not self._type.endswith("*") else ALL
            kept = "SELECT state FROM counts WHERE queue = ? AND type = ? AND n > 0"
            found = db.execute(kept, (self._queue or ALL, job_type)).fetchall()
            self._states = tuple(state for state in _STATES if (state,) in found)

    def counted(self, db: sqlite3.Connection, names: frozenset[str] | None = None) -> int | None:
        """How many jobs fit these filters, or all, by the numbers that are kept; None if that takes more than queue,
        type and state.
        """
        asked = self._conditions.keys() if names is None else names & self._conditions.keys()
        if not asked <= {"queue", "type", "state"} or (self.since, self.until) != (-END, END):
            return None
        queue = (self._queue if "queue" in asked else None) or ALL
        first, last = _span((self._type if "type" in asked else None) or ALL)
        if "state" in asked:
            condition, state = "state = ?", self._state
        else:
            condition, state = "state <> ?", DEAD
        values = (queue, first, last, state)
        summed = f"SELECT coalesce(sum(n), 0) FROM counts WHERE queue = ? AND type BETWEEN ? AND ? AND {condition}"
        number: int = db.execute(summed, values).fetchone()[0]
        return number


def _span(job_type: str) -> tuple[str, str]:
    """The first and the last type that fits one, or all that begin as one with `*` at its end does."""
    prefix = job_type.removesuffix("*")
    return (prefix, prefix if job_type == prefix else prefix + HIGHEST)
