"""Due messages that could not be handled come again soon, not when the time to handle them is over."""

from __future__ import annotations

from integration.samples import put_raw, subjects
from ojs_engine.base.errors import unavailable
from ojs_engine.due.loop import DueLoop
from ojs_engine.jetstream.due_messages import Due, DueMessages, DueTimings
from ojs_engine.store.store import Store
from support.waiting import eventually

LONG_S = 600
"""Granted for handling a message; no test lasts as long."""


def messages_of(store: Store, service: str) -> DueMessages:
    return DueMessages(store.nats, store.bulk, store.config, service, DueTimings(ack_wait_s=LONG_S, again_ms=(10, 20)))


async def nothing_left(store: Store, service: str) -> bool:
    return not await subjects(store, store.config.records_stream, f"{store.config.namespace}.due.{service}.*")


async def test_what_a_handler_fails_at_or_passes_over_comes_again(store: Store) -> None:
    messages = messages_of(store, "first")
    deliveries: list[int] = []

    async def handle(batch: list[Due]) -> None:
        deliveries.extend(due.deliveries for due in batch)
        match len(deliveries):
            case 1:
                raise unavailable("no leader")
            case 2:
                raise ValueError("a bug")
            case 3:
                return
            case _:
                await messages.done(batch)

    loop = DueLoop("test", messages, handle)
    await put_raw(store, f"{store.config.namespace}.due.first.one", b"")
    await loop.start()
    try:
        await eventually(lambda: nothing_left(store, "first"), 60.0)
    finally:
        await loop.stop()
    assert deliveries == [1, 2, 3, 4]


async def test_what_somebody_answers_for_later_is_not_given_back(store: Store) -> None:
    messages = messages_of(store, "second")
    kept: list[Due] = []
    seen: list[str] = []

    async def handle(batch: list[Due]) -> None:
        for due in batch:
            seen.append(due.job_id)
            if due.job_id == "kept":
                messages.answered([due])
                kept.append(due)
            elif due.deliveries > 1:
                await messages.done([due])

    loop = DueLoop("test", messages, handle)
    await put_raw(store, f"{store.config.namespace}.due.second.kept", b"")
    await put_raw(store, f"{store.config.namespace}.due.second.passed", b"")
    await loop.start()
    try:
        await eventually(lambda: seen.count("passed") == 2, 60.0)
    finally:
        await loop.stop()
    assert seen.count("kept") == 1
    await messages.done(kept)
    assert await nothing_left(store, "second")
