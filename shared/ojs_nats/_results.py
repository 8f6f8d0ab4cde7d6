"""Results of jobs as the types that their definitions name; None is one only where a handler has returned it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import NoneType
from typing import Any, Final

import msgspec

from ojs_nats._foreign import reader
from ojs_nats._hooks import ClientHooks
from ojs_nats._refusals import refused
from ojs_nats.errors import NotFoundError, OjsError

_AT_ONCE: Final = 8
_GONE: Final = 410

Ask = Callable[[str], Awaitable[Any]]
"""Asks for the result of a job by its id. Raises ResultGone if it isn't kept any more, NotFoundError if the job isn't."""


class Results:
    """Results that were read with their jobs. One that is missing is None, or isn't kept any more: `settled` asks."""

    def __init__(self, hooks: ClientHooks) -> None:
        self._surroundings = hooks
        self._missing: dict[str, Any] = {}

    def read(self, job_id: str, result: Any, returns: Any) -> Any:
        """Return it as its type. Raises OjsError for one that isn't of that type."""
        if result is None:
            if returns is not NoneType:
                self._missing[job_id] = returns
            return None
        return _fitting(job_id, self._surroundings.decoded(result), returns)

    async def settled(self, ask: Ask) -> None:
        """Return if handlers have returned each None.

        Raises ResultGone otherwise, OjsError if None isn't of the result's type, and what `ask` does.
        """
        room = asyncio.Semaphore(_AT_ONCE)

        async def look(job_id: str) -> None:
            async with room:
                try:
                    await ask(job_id)
                except NotFoundError:
                    message = f"the result of job {job_id} is not kept any more, nor is the job"
                    raise refused("result_pruned", message, status=_GONE, details={"job_id": job_id}) from None

        try:
            async with asyncio.TaskGroup() as looking:
                for job_id in self._missing:
                    looking.create_task(look(job_id))
        except* OjsError as errors:
            raise errors.exceptions[0] from None
        for job_id, returns in self._missing.items():
            _fitting(job_id, None, returns)


def _fitting(job_id: str, result: Any, returns: Any) -> Any:
    try:
        return reader(returns)(result)
    except msgspec.ValidationError as error:
        raise OjsError(f"what the job {job_id} returned isn't what its definition says: {error}") from error
