"""Two kinds of messages: hints that a member of a workflow starts or ends, and timers of workflows that fired."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from ojs_coordinator.steps import StepWorker
from ojs_core.base.errors import OjsError
from ojs_core.runtime.dueloop import DueLoop

if TYPE_CHECKING:
    from ojs_core.jetstream.due_messages import Due
    from ojs_core.store.store import Store

log = structlog.get_logger(__name__)


class Coordinator:
    """Each kind has a loop of its own, so that a large workflow's creation holds up no steps."""

    def __init__(self, store: Store) -> None:
        self._workflows = store.workflows
        self._timers = store.workflows.timer_messages()
        steps = StepWorker(store)
        self._loops = (
            DueLoop("workflow-steps", steps.messages, steps.handle),
            DueLoop("workflow-timers", self._timers, self._handle_timers),
        )

    async def start(self) -> None:
        for loop in self._loops:
            await loop.start()

    async def stop(self) -> None:
        """Finish the batches in hand."""
        await asyncio.gather(*(loop.stop() for loop in self._loops))

    async def _handle_timers(self, batch: list[Due]) -> None:
        outcomes = await asyncio.gather(*(self._one(due) for due in batch))
        await self._timers.done([due for due, done in zip(batch, outcomes, strict=True) if done])

    async def _one(self, due: Due) -> bool:
        try:
            await self._workflows.due(due.job_id, due.at)
        except OjsError as error:
            log.warning("workflow's timer waits", workflow_id=due.job_id, reason=error.message)
            return False
        except Exception:  # one workflow's trouble must not keep the others of its batch waiting
            log.exception("workflow's timer can't be handled and will come back", workflow_id=due.job_id)
            return False
        return True
