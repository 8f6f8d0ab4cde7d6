from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest

from ojs_core.jetstream.connection import Collected, Failed
from ojs_core.jetstream.ordered_consumer import OrderedConsumer
from ojs_core.jetstream.subjects import ANY
from ojs_core.jetstream.watch import Watch
from ojs_core.store.store import Store


async def test_a_copy_is_not_taken_for_complete_before_its_consumer_has_answered(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster a new consumer may not be reached yet: the copy would miss what is stored until the next one is there."""
    watch = Watch(store.nats, store.config, "copy", [store.config.queue(ANY)], lambda: None)
    pull = OrderedConsumer.pull
    loaded: list[bool] = []

    async def lost() -> Failed:
        return Failed("nobody listens there", sent=False)

    def pulled(consumer: OrderedConsumer, wait_s: float, margin_s: float) -> Coroutine[Any, Any, Collected | Failed]:
        loaded.append(watch.loaded)
        return lost() if len(loaded) == 1 else pull(consumer, wait_s, margin_s)

    monkeypatch.setattr(OrderedConsumer, "pull", pulled)
    await watch.begin()
    try:
        assert loaded[:2] == [False, False]
    finally:
        await watch.stop()
