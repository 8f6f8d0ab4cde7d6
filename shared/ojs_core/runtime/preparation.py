"""What a job goes through before it is enqueued, whoever enqueues it: the enqueue middleware, then its schema."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
from msgspec.structs import replace

from ojs_core.base.errors import OjsError
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.base.problems import StartupProblem
from ojs_core.domain.job import SYSTEM_RETRY, Job
from ojs_core.domain.schemas.validator import Finding
from ojs_core.domain.strict import Strict
from ojs_core.runtime.middleware import EnqueueChain, MiddlewareProblem
from ojs_core.runtime.settings import Settings
from ojs_core.wire.jobs.enqueue import parse_enqueue
from ojs_core.wire.jobs.job import envelope
from ojs_core.wire.members import encode

if TYPE_CHECKING:
    from ojs_core.store.schemas import Schemas

log = structlog.get_logger(__name__)

Check = Callable[[Job], Awaitable[Sequence[Finding]]]
"""Raises OjsError for a job that isn't taken."""


def configured_chain(settings: Settings) -> EnqueueChain:
    """The middleware that the settings name. Raises StartupProblem if one can't be imported."""
    try:
        return EnqueueChain.load(settings.enqueue_middleware)
    except MiddlewareProblem as problem:
        raise StartupProblem(f"{problem}; correct enqueue_middleware") from problem


def strict_of(settings: Settings) -> Strict | None:
    """What new jobs are held to in strict mode, None where it is off."""
    return Strict(settings.allowed_types) if settings.strict else None


def checks(schemas: Schemas, strict: Strict | None) -> Check:
    """What every job is held to before it is pushed: its schema, and strict mode ahead of it where that is on."""
    if strict is None:
        return schemas.check

    async def check(draft: Job) -> Sequence[Finding]:
        strict.require(draft, has_schema=await schemas.known(draft.type))
        return await schemas.check(draft)

    return check


class Preparation:
    """The chain in front of a push, and the check of what comes out of it.

    `now` is server time in Unix milliseconds, for relative times that middleware sets. `check` is one of `checks`.
    """

    def __init__(self, chain: EnqueueChain, limits: PayloadLimits, now: Callable[[], int], check: Check) -> None:
        self._chain = chain
        self._now = now
        self._check = check
        # What middleware hands back is spelt out in full, so it may be longer than what the client sent.
        self._limits = msgspec.structs.replace(limits, max_envelope_bytes=2 * limits.max_body_bytes)

    async def __call__(self, draft: Job, told: list[Finding] | None = None) -> Job | None:
        """The draft as the chain leaves it, validated again; None if a middleware dropped it. What its sender is warned of is
        added to `told`. Raises OjsError.
        """
        prepared = draft if not len(self._chain) else await self._run(draft)
        if prepared is not None and (found := await self._check(prepared)) and told is not None:
            told += found
        return prepared

    async def template(self, draft: Job, told: list[Finding]) -> None:
        """Hold what jobs will be made of to its schema, unless middleware changes each of them first: then it is their turn.

        Raises OjsError schema_validation.
        """
        if not len(self._chain):
            await self(draft, told)

    async def _run(self, draft: Job) -> Job | None:
        try:
            changed: Any = await self._chain.run(envelope(draft))
            if changed is None:
                return None
            if not isinstance(changed, dict) or changed.get("id") != draft.id:
                raise TypeError("it must return the job as a dict with its id unchanged, or None")
            body = encode(changed)
        except OjsError:
            raise
        except Exception as error:
            log.exception("enqueue middleware failed", job_id=draft.id)
            raise OjsError("backend_error", "an enqueue middleware failed; nothing was enqueued") from error
        prepared = parse_enqueue(body, self._now(), self._limits)
        if draft.retry is SYSTEM_RETRY and prepared.retry == SYSTEM_RETRY:  # spelt out on the way, and still nobody's wish
            return replace(prepared, retry=SYSTEM_RETRY)
        return prepared
