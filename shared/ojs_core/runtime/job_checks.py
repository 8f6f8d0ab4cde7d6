"""The checks of a job before it is pushed, whoever pushes it: its schema, and strict mode."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from ojs_core.domain.job import Job
from ojs_core.domain.schemas.validator import Finding
from ojs_core.domain.strict import Strict
from ojs_core.runtime.settings import Settings

if TYPE_CHECKING:
    from ojs_core.store.schemas import Schemas

JobCheck = Callable[[Job], Awaitable[Sequence[Finding]]]
"""Returns what the sender is warned of. Raises OjsError for a job that isn't taken."""


def strict_of(settings: Settings) -> Strict | None:
    """Return what new jobs are held to in strict mode, None where it is off."""
    return Strict(settings.allowed_types) if settings.strict else None


def job_check(schemas: Schemas, strict: Strict | None) -> JobCheck:
    """Return the check of every job before it is pushed: its schema, and strict mode ahead of it where that is on."""
    if strict is None:
        return schemas.check

    async def check(draft: Job) -> Sequence[Finding]:
        strict.require(draft, has_schema=await schemas.known(draft.type))
        return await schemas.check(draft)

    return check
