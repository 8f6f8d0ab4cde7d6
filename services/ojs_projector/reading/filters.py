"""What a list is filtered by, and the sets of jobs that the filters name: how large each is, and how it is read as a whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from ojs_core.domain.job import State
from ojs_core.read.messages import JobsAsk
from ojs_projector.index.labels import error_label, is_counted, pair_label, queue_label, tag_label, type_label, worker_label
from ojs_projector.index.texts import condition, words
from ojs_projector.reading.ranges import END

KIND: Final = "kind"
"""The name of the set of a queue, type and state."""
MAX_GATHERED: Final = 8_000
"""A set of up to so many jobs is looked through as a whole."""
MAX_ENTRIES: Final = 50_000
"""How far the entries of an index are counted."""
_OF_LEVELS: Final = (
    "levels CROSS JOIN jobs INDEXED BY ages ON jobs.state = levels.state AND jobs.priority = levels.priority "
    "AND jobs.planned = levels.planned"
)
# With the limit it stays a query of its own, or a range of types would be taken for one of `kinds`, instead of each type.
_OF_KINDS: Final = (
    "(SELECT * FROM counts WHERE {} LIMIT -1) AS counts CROSS JOIN jobs INDEXED BY kinds ON jobs.queue = counts.queue "
    "AND jobs.type = counts.type AND jobs.state = counts.state AND jobs.priority = counts.priority WHERE true"
)
_HIGHEST: Final = "\U0010ffff"
_STATES: Final = tuple(state.value for state in State)


class Subset(NamedTuple):
    """Jobs that one filter names: `size` is exact up to `MAX_GATHERED`, beyond that it is at least so many.

    `source` gives their rows of `jobs`; `name` is that of the filter, for the others to be applied to them.
    """

    name: str
    size: int
    source: str
    values: tuple[Any, ...]


class FilterLevel(NamedTuple):
    """One range of the index `ages`; `planned` is 1 for jobs that have or had a time that they are scheduled for, else 0."""

    state: str
    priority: int
    planned: int


class Filters:
    """The filters of one question."""

    def __init__(self, ask: JobsAsk) -> None:
        self.queue = ask.queue
        self.type = None if ask.type == "*" else ask.type
        self.state = ask.state.value if ask.state is not None else None
        self.since = -END if ask.since is None else ask.since
        self.until = END if ask.until is None else ask.until
        self.labels = [pair_label(key, value) for key, value in ask.meta]
        self.labels += [tag_label(ask.tag)] if ask.tag is not None else []
        self.labels += [worker_label(ask.worker)] if ask.worker is not None else []
        self.labels += [error_label(ask.error_type)] if ask.error_type is not None else []
        self.words = words(ask.text) if ask.text is not None else []

    @property
    def by_time(self) -> bool:
        return (self.since, self.until) != (-END, END)

    @property
    def by_kind(self) -> bool:
        """Whether nothing but queue, type, state and time is asked for."""
        return not self.labels and not self.words

    @property
    def all_kinds(self) -> bool:
        """Whether jobs of all queues and types are asked for."""
        return self.queue is None and self.type is None

    @property
    def only_label(self) -> str | None:
        """The label, if nothing beside it but state and time is asked for."""
        return self.labels[0] if len(self.labels) == 1 and not self.words and self.all_kinds else None

    def is_kept(self, label: str) -> bool:
        """Whether a number is kept of the jobs in this state and time that have a label."""
        return is_counted(label) and not self.by_time

    @property
    def states(self) -> Sequence[str]:
        return _STATES if self.state is None else (self.state,)

    # As conditions on rows

    def kind(self, table: str = "counts") -> tuple[str, list[Any]]:
        """Queue, type and state, as a condition on a table that has them; with `+`, one that no index is chosen for."""
        parts: list[str] = ["true"]
        values: list[Any] = []
        if self.queue is not None:
            parts.append(f"{table}.queue = ?")
            values.append(self.queue)
        if self.type is not None and self.type.endswith("*"):
            # Type by type, each is one range of `counts`.
            types = "SELECT DISTINCT substr(label, 2) FROM label_counts WHERE label BETWEEN ? AND ?"
            parts.append(f"{table}.type IN ({types})")
            values += [type_label(self.type[:-1]), type_label(self.type[:-1]) + _HIGHEST]
        elif self.type is not None:
            parts.append(f"{table}.type = ?")
            values.append(self.type)
        if self.state is not None:
            parts.append(f"{table}.state = ?")
            values.append(self.state)
        return " AND ".join(parts), values

    def others(self, but: str | None = None) -> tuple[str, list[Any]]:
        """All filters but one, as a condition on a row of `jobs`."""
        kind, values = self.kind("+jobs") if but != KIND else ("true", [])
        parts = [kind]
        if self.by_time:
            parts.append("+jobs.created_at BETWEEN ? AND ?")
            values += [self.since, self.until]
        for label in self.labels:
            if label != but:
                parts.append(
                    "EXISTS (SELECT 1 FROM labels WHERE label = ? AND labels.state = jobs.state AND at = jobs.created_at "
                    "AND labels.id = jobs.id)"
                )
                values.append(label)
        wanted = [word for word in self.words if word != but]
        if wanted:
            texts, bodies = condition(wanted)
            parts.append(f"EXISTS (SELECT 1 FROM texts WHERE texts.place = jobs.place AND {texts})")
            values += bodies
        return " AND ".join(parts), values

    # As sets

    def kinds(self, db: sqlite3.Connection) -> int:
        """How many jobs there are of this queue, type and state, whatever else is asked for."""
        if self.all_kinds:
            state = "" if self.state is None else " WHERE state = ?"
            return _number(db, f"SELECT coalesce(sum(n), 0) FROM levels{state}", *self._state())
        if self.queue is not None and self.type is not None:
            where, values = self.kind()
            return _number(db, f"SELECT coalesce(sum(n), 0) FROM counts WHERE {where}", *values)
        if self.queue is not None:
            return self._counted(db, queue_label(self.queue))
        assert self.type is not None
        if not self.type.endswith("*"):
            return self._counted(db, type_label(self.type))
        prefix = type_label(self.type[:-1])
        return self._counted(db, prefix, prefix + _HIGHEST)

    def number_of_kinds(self, db: sqlite3.Connection, most: int) -> int:
        where, values = self.kind()
        return _bounded(db, f"counts WHERE {where}", values, most)

    def levels(self, db: sqlite3.Connection) -> list[FilterLevel]:
        state = "" if self.state is None else " AND state = ?"
        found = db.execute(f"SELECT state, priority, planned FROM levels WHERE n > 0{state}", self._state())
        return [FilterLevel(*row) for row in found]

    def within(self, db: sqlite3.Connection, most: int) -> int:
        """How many jobs of this queue, type and state were created in the time asked for, counted up to `most`."""
        where, values = self.kind()
        source = _OF_KINDS.format(where)
        if self.all_kinds:
            state = "true" if self.state is None else "levels.state = ?"
            source = f"{_OF_LEVELS} WHERE {state}"
        return _bounded(db, f"{source} AND created_at BETWEEN ? AND ?", [*values, self.since, self.until], most)

    def labelled(self, db: sqlite3.Connection, label: str, most: int) -> int:
        """How many jobs in this state and time have a label; counted up to `most` where no number is kept."""
        if self.is_kept(label):
            return self._counted(db, label)
        left = most
        for state in self.states:
            where = "labels WHERE label = ? AND state = ? AND at BETWEEN ? AND ?"
            left -= _bounded(db, where, [label, state, self.since, self.until], left)
        return most - left

    def subsets(self, db: sqlite3.Connection) -> list[Subset]:
        """The sets that the filters name, the smallest first."""
        where, values = self.kind()
        most = MAX_GATHERED + 1
        found = [
            Subset(
                KIND,
                self.kinds(db),
                _OF_KINDS.format(where),
                tuple(values),
            )
        ]
        if self.by_time:
            state = "true" if self.state is None else "levels.state = ?"
            source = f"{_OF_LEVELS} WHERE {state} AND created_at BETWEEN ? AND ?"
            bounds = (*self._state(), self.since, self.until)
            found.append(Subset("time", _bounded(db, source, bounds, most), source, bounds))
        for label in self.labels:
            marks = ", ".join("?" * len(self.states))
            source = (
                "labels CROSS JOIN jobs ON jobs.id = labels.id "
                f"WHERE label = ? AND labels.state IN ({marks}) AND at BETWEEN ? AND ?"
            )
            size = self.labelled(db, label, most)
            found.append(Subset(label, size, source, (label, *self.states, self.since, self.until)))
        for word in self.words:
            source = (
                "words CROSS JOIN texts ON texts.place = words.rowid CROSS JOIN jobs ON jobs.id = texts.job_id "
                "AND jobs.place = texts.place WHERE words MATCH ?"
            )
            asked = f'"{word}"'
            found.append(Subset(word, _bounded(db, "words WHERE words MATCH ?", [asked], most), source, (asked,)))
        return sorted(found, key=lambda one: one.size)

    def _state(self) -> list[str]:
        return [] if self.state is None else [self.state]

    def _counted(self, db: sqlite3.Connection, label: str, last: str | None = None) -> int:
        state = "" if self.state is None else " AND state = ?"
        names = (label, label if last is None else last)
        return _number(
            db, f"SELECT coalesce(sum(n), 0) FROM label_counts WHERE label BETWEEN ? AND ?{state}", *names, *self._state()
        )


def _number(db: sqlite3.Connection, statement: str, *values: Any) -> int:
    number: int = db.execute(statement, values).fetchone()[0]
    return number


def _bounded(db: sqlite3.Connection, source: str, values: Sequence[Any], most: int) -> int:
    return _number(db, f"SELECT count(*) FROM (SELECT 1 FROM {source} LIMIT ?)", *values, most)
