"""Acting on hints to limits: jobs that were put aside go on when there is room."""

from __future__ import annotations

import asyncio

import structlog

from ojs_core.base.errors import OjsError
from ojs_core.jetstream.due_messages import Due, DueMessages
from ojs_core.runtime.dueloop import DueLoop
from ojs_core.store.store import Store

log = structlog.get_logger(__name__)


class BlockedJobsWorker:
    """Any number may run: a limit that two look at moves a token twice at worst, which does no harm."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._messages = DueMessages(store.nats, store.bulk, store.config, "limit", subject=store.config.limit_steps)
        self._loop = DueLoop("limit", self._messages, self._handle)

    async def start(self) -> None:
        await self._loop.start()

    async def stop(self) -> None:
        """Finish the batch in hand."""
        await self._loop.stop()

    async def _handle(self, batch: list[Due]) -> None:
        by_scope: dict[str, list[Due]] = {}
        for due in batch:
            by_scope.setdefault(due.job_id.rpartition(".")[0], []).append(due)
        handled = await asyncio.gather(*(self._one(scope, hints) for scope, hints in by_scope.items()))
        await self._messages.done([due for group in handled for due in group])

    async def _one(self, scope: str, hints: list[Due]) -> list[Due]:
        """Act on the hints to one limit, one after the other; those that are done with."""
        done: list[Due] = []
        for due in hints:
            ended = due.job_id.rpartition(".")[2]
            try:
                again_ms = await self._store.blocked.look(scope, ended, due.data, due.at)
            except OjsError as error:
                log.warning("hint to a limit waits", scope=scope, reason=error.message)
            except Exception:  # one limit's trouble must not keep the others waiting
                log.exception("hint to a limit failed and will come back", scope=scope)
            else:
                if again_ms is None:
                    done.append(due)
                else:
                    self._messages.later(due, again_ms)
        return done
