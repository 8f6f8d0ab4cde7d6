"""What a process sends to NATS, message by message, and what it sends when limits are taken out of the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ojs_nats.job import Job
from ojs_nats.limits import MANY, Room
from ojs_nats.store import Store
from ojs_nats.store.gate import Candidate, Outcome
from ojs_nats.store.link import Link

__all__ = ["counted", "kind_of", "without_limits"]

_BESIDES = ("KV_ojs", "$KV.ojs.service", "$KV.ojs.reset")
"""What a process sends whether there are jobs or not: it follows small records, measures the clock and shows that it lives."""


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

    def counting(link: Link) -> Callable[..., None]:
        original = link.publish

        def publish(subject: str, payload: bytes, headers: str = "", reply: str = "") -> None:
            if subject.startswith("$JS.API.DIRECT.GET.KV_ojs"):
                found["read"] += 1
            elif not any(name in subject for name in _BESIDES):
                found[kind_of(subject)] += 1
            original(subject, payload, headers, reply)

        return publish

    links = (store.link, store.bulk)
    originals = [link.publish for link in links]
    for link in links:
        link.publish = counting(link)  # type: ignore[method-assign]
    try:
        yield found
    finally:
        for link, original in zip(links, originals, strict=True):
            link.publish = original  # type: ignore[method-assign]


class _NoGate:
    async def room(self, _queue: str) -> Room:
        return Room(MANY)

    async def judge(self, _queue: str, candidates: Sequence[Candidate]) -> Outcome:
        return Outcome([candidate.transition for candidate in candidates])

    async def emptied(self, _queue: str, _last: str | None) -> None:
        return

    async def missed(self, _job: Job) -> None:
        return


class _NoBounds:
    async def fetched(self, _queue: str, _ready: int) -> None:
        return


class _NoQueues:
    async def admit(self, draft: Job) -> Job:
        return draft

    def bound(self, _queue: str) -> int:
        return 0


@contextmanager
def without_limits(store: Store) -> Iterator[None]:
    """Push and fetch as if there were neither settings of queues nor limits nor bounds: what those cost who uses none."""
    parts: tuple[tuple[object, str, object], ...] = (
        (store.handout, "_gate", _NoGate()),
        (store.handout, "_bounds", _NoBounds()),
        (store.jobs, "_queues", _NoQueues()),
    )
    before = [getattr(owner, name) for owner, name, _ in parts]
    for owner, name, part in parts:
        setattr(owner, name, part)
    try:
        yield
    finally:
        for (owner, name, _), part in zip(parts, before, strict=True):
            setattr(owner, name, part)
