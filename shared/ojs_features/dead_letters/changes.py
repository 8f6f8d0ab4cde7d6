"""Dead letters: retrying and deleting them, one by one or by what they have in common (ojs-dead-letter)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from ojs_engine.base.errors import OjsError, not_found
from ojs_engine.base.portions import AT_ONCE, in_portions
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import Moment, RetryOverride, Transition
from ojs_engine.domain.transitions.result import Change
from ojs_engine.store.store import Store
from ojs_index.asking.client import Queries
from ojs_index.asking.messages import DeadLettersAsk, JobRow
from ojs_index.asking.walk import walk

_MAX_BULK: Final = 10_000
"""Dead letters that one request changes; its answer says how many remain."""
_MAX_ERRORS: Final = 100
"""Skipped ones of which the answer says why."""


class DeadLettersChanged(NamedTuple):
    """`matched` when it began; `errors` are ids and reasons of some that were skipped."""

    matched: int
    done: int
    skipped: int
    errors: list[tuple[str, str]]


class DeadLetters:
    """Operations on dead letters. A job that isn't one is `not_found`.

    `own` raises not_found for a job that the caller may not touch.
    """

    def __init__(self, store: Store, queries: Queries, own: Callable[[Job], Job]) -> None:
        self._own = own
        self._store = store
        self._queries = queries

    async def get(self, job_id: str) -> Job:
        """Raises OjsError not_found."""
        return self._dead(await self._store.jobs.get(job_id))

    async def retry(self, job_id: str, override: Callable[[Job], RetryOverride] = lambda _job: RetryOverride()) -> Change:
        """Give one a new life under its id, changed by what `override` makes of it. Raises not_found, conflict, duplicate."""

        def decide(job: Job, moment: Moment) -> Transition:
            return transitions.retry_discarded(self._dead(job), override(job), moment)

        return await self._store.jobs.revive(job_id, decide)

    async def delete(self, job_id: str) -> None:
        """Raises OjsError not_found."""
        await self._store.jobs.change(job_id, lambda job, moment: transitions.delete(self._dead(job), moment))

    async def retry_all(self, wanted: DeadLettersAsk) -> DeadLettersChanged:
        """Retry all that match, up to `_MAX_BULK`."""
        return await self._all(wanted, self.retry)

    async def delete_all(self, wanted: DeadLettersAsk) -> DeadLettersChanged:
        """Delete all that match, up to `_MAX_BULK`."""
        return await self._all(wanted, self.delete)

    async def _all(self, wanted: DeadLettersAsk, change: Callable[[str], Awaitable[object]]) -> DeadLettersChanged:
        """Change everything that matches, page by page; what has left meanwhile is skipped."""
        matched: int | None = None
        reasons: list[tuple[str, str] | None] = []

        async def one(row: JobRow) -> tuple[str, str] | None:
            """Why it was skipped."""
            try:
                await change(row.id)
            except OjsError as error:
                if error.code not in {"not_found", "conflict", "duplicate"}:
                    raise
                return row.id, error.message
            return None

        async for page in walk(self._queries.dead_letters, wanted):
            matched = page.total if matched is None else matched
            reasons += await in_portions(page.jobs, one, AT_ONCE)
            if len(reasons) >= _MAX_BULK:
                break
        errors = [reason for reason in reasons if reason is not None]
        return DeadLettersChanged(matched or 0, len(reasons) - len(errors), len(errors), errors[:_MAX_ERRORS])

    def _dead(self, job: Job) -> Job:
        if not self._own(job).dead_letter:
            raise not_found("dead_letter", job.id)
        return job
