"""Which jobs a bulk operation is about: ids, or a filter (ojs-bulk-operations §6-§8)."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ojs_api.bulk import Change
from ojs_engine.domain.job import State
from ojs_engine.domain.members import Found

Operation = Change


class Filter(Found, frozen=True, kw_only=True):
    """Which jobs an operation is about; what is None is not asked about. Times in Unix milliseconds; those of
    the enqueuing are exclusive, `since` and `until` bound the creation and are inclusive.
    """

    states: tuple[State, ...]
    type: str | None = None
    queue: str | None = None
    enqueued_before: int | None = None
    enqueued_after: int | None = None
    priority: int | None = None
    meta: dict[str, Any] | None = None
    since: int | None = None
    until: int | None = None

    @property
    def broad(self) -> bool:
        """Whether it names nothing of a job itself: states and times alone may well fit every job."""
        named = (self.type, self.queue, self.priority, self.meta, *self.texts.values())
        return all(value is None for value in named)


class Selection(Struct, frozen=True, kw_only=True):
    """The jobs of a bulk operation: some ids, or a filter, of which one request takes up to `limit` jobs from `cursor` on."""

    job_ids: tuple[str, ...] = ()
    filter: Filter | None = None
    atomic: bool = False
    dry_run: bool = False
    limit: int
    one_page: bool = False
    """Whether an operator's request ends with `limit` jobs, and doesn't go on with the next ones."""
    cursor: str | None = None
    reason: str = "bulk"
    """Why jobs are cancelled."""
    priority: int | None = None
    """What jobs are reprioritised to; a dry run may leave it open."""
    idempotency_key: str | None = None
