"""Records as the follower hands them on."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw

from ojs_engine.domain.job import Entry, Job, State
from ojs_engine.jetstream.feed import Record
from ojs_features.statistics.plug import STATISTICS
from ojs_index.sqlite.model import Model, Seen

NOW = 1_800_000_000_000
STREAM = "KV_ojs 2027-01-15T08:00:00Z"


def job(job_id: str = "job-1", state: State = State.AVAILABLE, **members: Any) -> Job:
    defaults: dict[str, Any] = {"type": "test.job", "args": Raw(b"[]"), "created_at": NOW, "enqueued_at": NOW}
    return Job(**({"id": job_id} | defaults | {"state": state} | members))


def logged(*events: str, **members: Any) -> Job:
    """A job whose log has these words, numbered from 1."""
    log = tuple(Entry(n=n, op=f"op{n}", event=event, at=NOW + n, after=State.AVAILABLE) for n, event in enumerate(events, 1))
    return job(transitions=log, **members)


def seen(sequence: int, found: Job, ttl_s: int | None = None) -> Seen:
    return Seen(Record("job", sequence, NOW + sequence, found.id, msgspec.json.encode(found), ttl_s), found)


def gone(sequence: int, job_id: str) -> Seen:
    return Seen(Record("gone", sequence, NOW + sequence, job_id, b"", None), None)


def epoch(sequence: int) -> Seen:
    return Seen(Record("epoch", sequence, NOW + sequence, "", b"", None), None)


def barrier(sequence: int) -> Seen:
    return Seen(Record("barrier", sequence, NOW + sequence, "", b"", None), None)


def fresh(last_sequence: int = 0, copied: int = 0) -> Model:
    model = Model(None, copied, followed=STATISTICS.followed)
    model.attach(STREAM, last_sequence)
    return model
