"""The events of jobs, with those that features make of the same logs."""

from __future__ import annotations

from ojs_engine.domain.events.envelope import Event
from ojs_engine.domain.events.vocabulary import events_of
from ojs_engine.domain.job import Entry, Job
from ojs_engine.domain.past import Logged
from ojs_features.all import FOLLOWED


def all_events_of(job: Job, entry: Entry) -> list[Event]:
    """Return the events of one entry of a job's log, in the order in which the relay stores them."""
    owners = [one.owner for one in FOLLOWED if one.owner is not None and one.owner.asks(job)]
    return [*events_of(job, entry), *(event for owner in owners for event in owner.events(Logged.of(job, entry)))]
