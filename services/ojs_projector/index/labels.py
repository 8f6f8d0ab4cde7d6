"""What jobs are found by beside queue, type and state: a row for each tag, member of `meta`, worker and error type of a job.

A label is a letter for its kind and its text; rows stand in the order of lists. Those of few values are counted. Which labels
a job has is decided here once (`labels_of`), and kept with its row.
"""

from __future__ import annotations

import hashlib
import itertools
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw

from ojs_core.domain.job import EMPTY_OBJECT, Job

if TYPE_CHECKING:
    from ojs_projector.index.schema import Row

MAX_PAIRS: Final = 16
"""Members of a job's `meta` that it is found by: the first ones with a plain value."""
_MAX_LABEL: Final = 200
_EMPTY: Final = bytes(EMPTY_OBJECT)
_ERROR, _PAIR, _TAG, _WORKER = "emtw"

SCHEMA: Final = """
CREATE TABLE labels (
    label TEXT NOT NULL,
    state TEXT NOT NULL,
    at INTEGER NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (label, state, at, id)
) WITHOUT ROWID;
CREATE TABLE label_counts (
    label TEXT NOT NULL,
    state TEXT NOT NULL,
    n INTEGER NOT NULL,
    PRIMARY KEY (label, state)
) WITHOUT ROWID;
"""

ROWS: Final = (
    "INSERT INTO labels SELECT value, state, created_at, jobs.id FROM jobs, json_each(jobs.labels) ORDER BY 1, 2, 3, 4"
)
"""A statement that makes all rows of `labels` from `jobs`, in its own order."""
COUNTED: Final = (
    "INSERT INTO label_counts SELECT label, state, count(*) FROM labels "
    f"WHERE label < '{_PAIR}' OR label >= '{chr(ord(_PAIR) + 1)}' GROUP BY label, state"
)
"""A statement that counts them."""

_decode_texts: Final = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_strings: Final = msgspec.json.Decoder(dict[str, str]).decode
_decode_meta: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_text: Final = msgspec.json.Decoder(str).decode
_encode: Final = msgspec.json.Encoder().encode

_Line = tuple[str, str, int, str]


def tag_label(tag: str) -> str:
    return _label(_TAG, tag)


def worker_label(worker: str) -> str:
    return _label(_WORKER, worker)


def error_label(error_type: str) -> str:
    return _label(_ERROR, error_type)


def queue_label(queue: str) -> str:
    """It has no rows: queues and types have indexes of their own. But it is counted, as are the next two."""
    return f"q{queue}"


def type_label(job_type: str) -> str:
    return f"y{job_type}"


def dead_label(queue: str) -> str:
    """Of the dead letters of a queue."""
    return f"d{queue}"


def pair_label(key: str, value: str) -> str:
    """`value` is a string's text, or a number, true, false or null as JSON writes it."""
    return _label(_PAIR, f"{key}\x1f{value}")


def _label(kind: str, text: str) -> str:
    """Long ones are known by their hash, as are those that SQLite's JSON would cut short."""
    if len(text) < _MAX_LABEL and "\0" not in text:
        return f"{kind}{text}"
    return f"{kind}\x1e{hashlib.blake2b(text.encode(errors='surrogatepass'), digest_size=16).hexdigest()}"


def is_counted(label: str) -> bool:
    """Whether `label_counts` knows it. Values of `meta` may be as many as jobs, so those are not."""
    return not label.startswith(_PAIR)


def number_of(db: sqlite3.Connection, label: str, state: str) -> int:
    """Of a label that is counted."""
    found = db.execute("SELECT n FROM label_counts WHERE label = ? AND state = ?", (label, state)).fetchone()
    return found[0] if found is not None else 0


def counts_of_queues(db: sqlite3.Connection) -> dict[tuple[str, str], int]:
    """Jobs by queue and state."""
    found = db.execute("SELECT substr(label, 2), state, n FROM label_counts WHERE label >= 'q' AND label < 'r'")
    return {(queue, state): n for queue, state, n in found}


def dead_of_queues(db: sqlite3.Connection) -> dict[str, int]:
    """Dead letters by queue."""
    return dict(db.execute("SELECT substr(label, 2), n FROM label_counts WHERE label >= 'd' AND label < 'e'"))


def labels_of(job: Job) -> str | None:
    """All labels of a job, as JSON; None if it has none. Metadata that can't be read has none."""
    labels = [] if job.meta == _EMPTY else _pairs(job.meta)
    if job.tags:
        labels += [tag_label(tag) for tag in job.tags]
    if job.worker is not None:
        labels.append(worker_label(job.worker))
    if job.error is not None:
        labels.append(error_label(job.error.type))
    return _encode(list(dict.fromkeys(labels))).decode() if labels else None


def _pairs(meta: Raw) -> list[str]:
    try:
        texts = _decode_strings(meta)
    except msgspec.ValidationError:  # not all of them are strings
        return _mixed_pairs(meta)
    except ValueError:
        return []
    return [pair_label(key, texts[key]) for key in itertools.islice(texts, MAX_PAIRS)]


def _mixed_pairs(meta: Raw) -> list[str]:
    labels: list[str] = []
    try:
        for key, raw in _decode_meta(meta).items():
            value = bytes(raw)
            if value[:1] not in b"{[":
                labels.append(pair_label(key, _decode_text(value) if value[:1] == b'"' else value.decode()))
            if len(labels) == MAX_PAIRS:
                break
    except ValueError:
        return []
    return labels


def keep_labels(db: sqlite3.Connection, rows: Iterable[Row], gone: Iterable[Row], known: Mapping[str, Row]) -> None:
    """Follow what becomes of `jobs`: `rows` are written over those that are `known`, `gone` deleted."""
    old = list(gone)
    new = []
    for row in rows:
        before = known.get(row.id)
        if before is None:
            new.append(row)
        elif _labelled(before) != _labelled(row):
            old.append(before)
            new.append(row)
    left, come = _lines(old), _lines(new)
    if not left and not come:
        return
    numbers: Counter[tuple[str, str]] = Counter(line[:2] for line in come if is_counted(line[0]))
    numbers.subtract(line[:2] for line in left if is_counted(line[0]))
    db.executemany("DELETE FROM labels WHERE label = ? AND state = ? AND at = ? AND id = ?", left)
    db.executemany("INSERT INTO labels VALUES (?, ?, ?, ?)", sorted(come))
    count_labels(db, numbers)


def count_labels(db: sqlite3.Connection, numbers: Mapping[tuple[str, str], int]) -> None:
    """Add to the numbers of labels in states."""
    db.executemany(
        "INSERT INTO label_counts VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
        [(*label, n) for label, n in numbers.items() if n],
    )
    db.executemany(
        "DELETE FROM label_counts WHERE label = ? AND state = ? AND n = 0", [label for label, n in numbers.items() if n < 0]
    )


def _labelled(row: Row) -> tuple[Any, ...]:
    return row.state, row.created_at, row.labels


def _lines(rows: Iterable[Row]) -> list[_Line]:
    return [(label, row.state, row.created_at, row.id) for row in rows for label in _labels(row)]


def _labels(row: Row) -> Sequence[str]:
    return _decode_texts(row.labels) if row.labels is not None else ()
