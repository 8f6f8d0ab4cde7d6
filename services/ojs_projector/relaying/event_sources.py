"""What the relay needs to know of a record: one function for each kind of record that has a log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ojs_core.domain.cron.record import Cron
from ojs_core.domain.events.crons import events_of_cron
from ojs_core.domain.events.envelope import Event
from ojs_core.domain.events.vocabulary import events_of
from ojs_core.domain.events.workflows import events_of_workflow
from ojs_core.domain.job import Job
from ojs_core.domain.past import birth_of
from ojs_core.domain.workflows.record import Workflow
from ojs_core.jetstream.subjects import encode_token
from ojs_projector.index.model import Seen

# Where the events of a job's subject name its queue.
_WORKFLOWS: Final = "workflow"
_CRONS: Final = "cron"


class Numbered(Protocol):
    """An entry of a log."""

    @property
    def n(self) -> int:
        """Counts from 1, and goes on when the log is cut."""


class EventSource(Struct, frozen=True):
    """A record as the relay sees it."""

    id: str
    """The last token of its events' subjects."""
    created_at: int
    """When this life began (Unix ms): ids may be used again."""
    scope: str
    entries: Sequence[Numbered]
    first: int
    """The number of the entry with which its life began, or of the first one that is kept; 0 if there is none.

    It is 1 unless the log was cut, or goes on from that of a deleted record with the same id.
    """
    events: Callable[[Any], list[Event]]
    """The events of one of its entries."""
    member_of: str | None = None
    """The workflow that some of its events are about, too."""


def told_of(seen: Seen) -> EventSource | None:
    """None for what has no events of its own, and for what can't be read."""
    if seen.job is not None:
        return _job(seen.job)
    if seen.workflow is not None:
        return _workflow(seen.workflow)
    if seen.cron is not None:
        return _cron(seen.cron)
    return None


def _job(job: Job) -> EventSource:
    first, member_of = birth_of(job.transitions), None if job.workflow is None else job.workflow.id
    return EventSource(job.id, job.created_at, job.queue, job.transitions, first, partial(events_of, job), member_of)


def creation_of(workflow: Workflow) -> EventSource:
    """A workflow of which no more is to be told than that it was created."""
    whole = _workflow(workflow)
    return replace(whole, entries=[entry for entry in workflow.log if entry.n == whole.first == 1])


def _workflow(workflow: Workflow) -> EventSource:
    events = partial(events_of_workflow, workflow)
    return EventSource(workflow.id, workflow.created_at, _WORKFLOWS, workflow.log, _first(workflow.log), events)


def _cron(cron: Cron) -> EventSource:
    events = partial(events_of_cron, cron)
    return EventSource(encode_token(cron.name), cron.created_at, _CRONS, cron.log, _first(cron.log), events)


def _first(log: Sequence[Numbered]) -> int:
    return log[0].n if log else 0
