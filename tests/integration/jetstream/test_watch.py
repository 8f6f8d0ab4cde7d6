from __future__ import annotations

from ojs_engine.jetstream.connection import Collected, Failed
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.jetstream.watch import Watch
from ojs_engine.store.store import Store
from support.outside import Collect, collecting


async def test_a_copy_is_not_taken_for_complete_before_its_consumer_has_answered(store: Store) -> None:
    """On a cluster a new consumer may not be reached yet: the copy would miss what is stored until the next one is there."""
    watch = Watch(store.nats, store.config, "copy", [store.config.queue(ANY)], lambda: None)
    loaded: list[bool] = []

    async def pulled(collect: Collect, subject: str, payload: bytes, wanted: int, timeout_s: float) -> Collected | Failed:
        if "CONSUMER.MSG.NEXT" in subject:
            loaded.append(watch.loaded)
            if len(loaded) == 1:
                return Failed("nobody listens there", sent=False)
        return await collect(subject, payload, wanted, timeout_s)

    with collecting(store.nats, pulled):
        await watch.begin()
        try:
            assert loaded[:2] == [False, False]
        finally:
            await watch.stop()
