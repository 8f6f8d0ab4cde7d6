"""What jobs are found by that they may have any number of: a row for each tag and each member of `meta` of a job.

A label is a letter for its kind and its text. No row says what state its job is in, so a transition leaves them
alone. Which labels a job has is decided here once (`labels_of`), and kept with its row.
"""

from __future__ import annotations

import hashlib
import itertools
import sqlite3
from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import Raw

from ojs_engine.domain.job import EMPTY_OBJECT, Job
from ojs_engine.domain.members import LABELLED

MAX_PAIRS: Final = 16
"""Members of a job's `meta` that it is found by: the first ones with a plain value."""
_MAX_LABEL: Final = 200
_PAIR: Final = "m"

SCHEMA: Final = """
CREATE TABLE labels (label TEXT NOT NULL, at INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (label, at, n)) WITHOUT ROWID;
"""

ROWS: Final = "INSERT INTO labels SELECT value, created_at, jobs.n FROM jobs, json_each(jobs.labels) ORDER BY 1, 2, 3"
"""A statement that makes all rows of `labels` from `jobs`, in its own order."""

_decode_texts: Final = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_strings: Final = msgspec.json.Decoder(dict[str, str]).decode
_decode_meta: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_decode_text: Final = msgspec.json.Decoder(str).decode
_encode: Final = msgspec.json.Encoder().encode

Labelled = tuple[int, int, str | None]
"""A job's number, its creation time and its labels."""


def pair_label(key: str, value: str) -> str:
    """`value` is a string's text, or a number, true, false or null as JSON writes it."""
    return label_of(_PAIR, f"{key}\x1f{value}")


def label_of(kind: str, text: str) -> str:
    """Return the label of a text.

    Long ones are known by their hash, as are those that SQLite's JSON would cut short.
    """
    if len(text) < _MAX_LABEL and "\0" not in text:
        return f"{kind}{text}"
    return f"{kind}\x1e{hashlib.blake2b(text.encode(errors='surrogatepass'), digest_size=16).hexdigest()}"


def labels_of(job: Job) -> str | None:
    """All labels of a job, as JSON; None if it has none. Metadata that can't be read has none."""
    labels = [] if job.meta == EMPTY_OBJECT else _pairs(job.meta)
    for by in LABELLED:
        if texts := getattr(job, by.field):
            labels += [label_of(by.letter, text) for text in ((texts,) if isinstance(texts, str) else texts)]
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


def keep_labels(db: sqlite3.Connection, come: Iterable[Labelled], gone: Iterable[Labelled]) -> None:
    """Follow jobs that come and leave."""
    db.executemany("DELETE FROM labels WHERE label = ? AND at = ? AND n = ?", _lines(gone))
    db.executemany("INSERT INTO labels VALUES (?, ?, ?)", sorted(_lines(come)))


def _lines(jobs: Iterable[Labelled]) -> list[tuple[str, int, int]]:
    return [(label, at, n) for n, at, labels in jobs if labels is not None for label in _decode_texts(labels)]
