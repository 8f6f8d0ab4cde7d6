"""Acting on notes of limits: blocked jobs go on when there is room."""

from __future__ import annotations

from ojs_engine.due.loop import Again, DueLoop, Handled, one_by_one
from ojs_engine.jetstream.due_messages import Due, DueMessages
from ojs_engine.store.store import Store
from ojs_features.limits.limits import Limits


def blocked_jobs_loop(store: Store) -> DueLoop:
    """Return the loop that takes the notes. Any number may run: two that check one limit move a token twice at worst."""
    blocked = store.of(Limits).blocked
    messages = DueMessages(store.nats, store.bulk, store.config, "limit", subject=store.config.notes("limit"))

    async def look(due: Due) -> Handled:
        scope, _, ended = due.job_id.rpartition(".")
        again_ms = await blocked.look(scope, ended, due.data, due.at)
        return "done" if again_ms is None else Again(again_ms)

    return DueLoop("limit", messages, one_by_one(messages, "hint to a limit", look, lambda due: due.job_id.rpartition(".")[0]))
