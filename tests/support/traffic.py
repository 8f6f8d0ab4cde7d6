"""What a process sends to NATS, message by message, and what it sends when limits are taken out of the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ojs_engine.domain.job import Job
from ojs_engine.jetstream.connection import Connection
from ojs_engine.store.store import Store

_BESIDES = ("KV_ojs", "$KV.ojs.service", "$KV.ojs.reset", "$JS.API.INFO")
"""What a process sends whether there are jobs or not: it follows small records, measures the clock and the room that is left,
and shows that it lives.
"""


def kind_of(subject: str) -> str:
    """A subject without what is different for each queue, job and process."""
    parts = subject.split(".")
    if subject.startswith("$JS.API."):
        return ".".join(part for part in parts if part.startswith("$") or part.upper() == part)
    return ".".join(parts[: 3 if parts[0] == "$KV" else 2])


@contextmanager
def counted(store: Store) -> Iterator[Counter[str]]:
    """The messages that the store sends for jobs within the block, by kind; reads of records are `read`."""
    found: Counter[str] = Counter()

    def counting(nats: Connection) -> Callable[..., None]:
        original = nats.publish

        def publish(subject: str, payload: bytes, headers: str = "", reply: str = "", *, along: bool = False) -> None:
            if subject.startswith("$JS.API.DIRECT.GET.KV_ojs"):
                found["read"] += 1
            elif not any(name in subject for name in _BESIDES):
                found[kind_of(subject)] += 1
            original(subject, payload, headers, reply, along=along)

        return publish

    connections = (store.nats, store.bulk)
    originals = [nats.publish for nats in connections]
    for nats in connections:
        nats.publish = counting(nats)  # type: ignore[method-assign]
    try:
        yield found
    finally:
        for nats, original in zip(connections, originals, strict=True):
            nats.publish = original  # type: ignore[method-assign]


class _NoQueues:
    async def admit(self, draft: Job) -> Job:
        return draft

    def bound(self, _queue: str) -> int:
        return 0


@contextmanager
def without_limits(store: Store) -> Iterator[None]:
    """Push and fetch as if there were neither settings of queues nor limits nor bounds: what those cost who uses none."""
    before = store.enqueue._queues
    store.enqueue._queues = _NoQueues()  # type: ignore[assignment]
    try:
        yield
    finally:
        store.enqueue._queues = before
