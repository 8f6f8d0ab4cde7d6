"""The sources of events: jobs, and the records of features that have a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ojs_engine.domain.events.envelope import Event
from ojs_engine.domain.events.source import EventSource
from ojs_engine.domain.events.vocabulary import events_of
from ojs_engine.domain.job import Entry, Job
from ojs_engine.domain.past import Logged, birth_of
from ojs_engine.store.store import Store
from ojs_index.followed import Followed, Owner
from ojs_index.sqlite.model import Seen


class EventSources:
    """The sources of events of one process, with those of features."""

    def __init__(self, store: Store, followed: Sequence[Followed]) -> None:
        self._store = store
        self._of_features: dict[str, Callable[[Any], EventSource | None]] = {one.reader.kind: one.events for one in followed}
        self._owners = [one.owner for one in followed if one.owner is not None]

    def of(self, seen: Seen) -> EventSource | None:
        """None for what has no events of its own, and for what can't be read."""
        if seen.job is not None:
            return self._job(seen.job)
        if seen.held is not None:
            return self._of_features[seen.record.kind](seen.held)
        return None

    async def creation(self, name: str) -> EventSource | None:
        """Read the creation of what jobs are members of, by its id. Raises OjsError backend_unavailable."""
        for owner in self._owners:
            if (found := await owner.creation(self._store, name)) is not None:
                return found
        return None

    def _job(self, job: Job) -> EventSource:
        owner = next((one for one in self._owners if one.asks(job)), None)
        events = partial(events_of, job) if owner is None else partial(_of_member, job, owner)
        member_of = None if owner is None else owner.id(job)
        return EventSource(job.id, job.created_at, job.queue, job.transitions, birth_of(job.transitions), events, member_of)


def _of_member(job: Job, owner: Owner, entry: Entry) -> list[Event]:
    return [*events_of(job, entry), *owner.events(Logged.of(job, entry))]
