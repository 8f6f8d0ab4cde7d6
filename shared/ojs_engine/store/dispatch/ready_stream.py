"""Questions to the ready stream: which subjects hold tokens, and how many."""

from __future__ import annotations

import asyncio

from ojs_engine.jetstream.contents import ask_info, messages, read_info, sequence_of
from ojs_engine.store.dispatch.head_tokens import TokenTimings
from ojs_engine.store.dispatch.ready_subjects import hand_out_order
from ojs_engine.store.dispatch.wakeups import Wakeups
from ojs_engine.store.records.bucket import Bucket
from ojs_engine.telemetry import metrics


class ReadyStream:
    """Asks about tokens without taking them. Everything that waits raises OjsError backend_unavailable."""

    def __init__(self, bucket: Bucket, wakeups: Wakeups, timings: TokenTimings) -> None:
        self._bulk = bucket.bulk
        self._config = bucket.config
        self._wakeups = wakeups
        self._timings = timings
        self._asking: dict[str, asyncio.Task[dict[str, int]]] = {}

    async def learn(self, queue: str) -> None:
        """Ask what a queue holds, together with other fetches that are just asking."""
        asking = self._asking.get(queue)
        if asking is None:
            asking = self._asking[queue] = asyncio.create_task(self.subjects(queue), name=f"ask-{queue}")
            asking.add_done_callback(lambda done: self._learnt(queue, done))
        await asyncio.shield(asking)

    def _learnt(self, queue: str, asking: asyncio.Task[dict[str, int]]) -> None:
        del self._asking[queue]
        if not asking.cancelled():
            asking.exception()  # who waits hears of it, if anybody still does

    async def subjects(self, queue: str) -> dict[str, int]:
        """Return the ready subjects of a queue that hold tokens, in the order of dispatch, and how many they hold."""
        known = self._wakeups.ready(queue)
        arrivals = 0 if known is None else known.arrivals
        began = asyncio.get_running_loop().time()
        stream = self._config.ready_stream
        info = read_info(await ask_info(self._bulk, stream, self._config.ready_of_queue(queue)), "to say what is ready")
        metrics.consumers(stream, info.state.consumer_count, info.config.max_consumers)
        found = info.state.subjects
        names = sorted((subject for subject in found if not self._config.seat_size(subject)), key=hand_out_order)
        ready = {subject: found[subject] for subject in names}
        if known is not None:
            known.told(ready, arrivals, began)
        return ready

    async def places(self, subject: str, start: int, number: int) -> list[int]:
        """Return the places of up to `number` tokens of a subject, from one on."""
        which = {"seq": start, "next_by_subj": subject, "batch": number}
        read, _ = await messages(self._bulk, self._config.ready_stream, which, "tokens", self._timings.pull_timeout_s)
        return [sequence_of(message) for message in read]
