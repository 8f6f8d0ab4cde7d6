"""Two kinds of messages: notes that a member of a workflow starts or ends, and timers of workflows that fired."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ojs_engine.due.loop import DueLoop, Handled, one_by_one
from ojs_features.workflows.steps import StepWorker
from ojs_features.workflows.store import Workflows

if TYPE_CHECKING:
    from ojs_engine.jetstream.due_messages import Due
    from ojs_engine.store.store import Store


class Coordinator:
    """Each kind has a loop of its own, so that a large workflow's creation holds up no steps."""

    def __init__(self, store: Store) -> None:
        self._workflows = workflows = store.of(Workflows)
        timers = workflows.timer_messages()
        steps = StepWorker(store)
        self._loops = (
            DueLoop("workflow-steps", steps.messages, steps.handle),
            DueLoop("workflow-timers", timers, one_by_one(timers, "workflow's timer", self._timer)),
        )

    async def start(self) -> None:
        for loop in self._loops:
            await loop.start()

    async def stop(self) -> None:
        """Finish the batches in hand."""
        await asyncio.gather(*(loop.stop() for loop in self._loops))

    async def _timer(self, due: Due) -> Handled:
        await self._workflows.due(due.job_id, due.at)
        return "done"
