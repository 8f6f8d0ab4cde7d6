"""Following the records of jobs and what goes with them: every revision in order, or the last of several.

After a loss a new consumer begins behind the last record that arrived.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import ClassVar, Final, Literal, NamedTuple

from ojs_engine.base.times import parse_duration_ms
from ojs_engine.jetstream.connection import Collected, Connection, Failed, Reply, header
from ojs_engine.jetstream.consumers import Delivery
from ojs_engine.jetstream.ordered_consumer import OrderedConsumer, OrderedTimings
from ojs_engine.jetstream.subjects import ANY, REST, StoreConfig
from ojs_engine.jetstream.subjects import Kind as Key
from ojs_link.timings import Order, Timings

_BATCH: Final = 1_000
"""What is said once for a batch, numbers and statistics, costs half for each record of what it would for 500."""

FeedKind = Literal[
    "job",
    "gone",
    "worker",
    "queue",
    "barrier",
    "epoch",
]

_FOLLOWED: Final[tuple[tuple[Key, str, FeedKind], ...]] = (
    ("job", REST, "job"),
    ("worker", ANY, "worker"),
    ("queue", ANY, "queue"),
    ("barrier", REST, "barrier"),
    ("reset", "epoch", "epoch"),
)
"""The records that are followed: the first word of their keys, the rest of them, and what they are read as."""
_NAMELESS: Final[frozenset[FeedKind]] = frozenset({"barrier", "epoch"})


class Record(NamedTuple):
    """One message of the bucket. `at`: when it was stored (Unix ms); `ttl_s`: until it leaves by itself, None if it stays.

    `job_id` is a worker's encoded id for `worker`, the name of a feature's record; `gone` is of jobs only, of the others one
    that has left has no data.
    """

    kind: str
    """A `FeedKind`, or the kind of a feature's records."""
    sequence: int
    at: int
    job_id: str
    data: bytes
    ttl_s: int | None


class FeedTimings(Timings, frozen=True, kw_only=True):
    """How long answers with records may take beyond the time for the first."""

    margin_s: float = 2.0
    """An answer that is waited for."""
    ahead_margin_s: float = 10.0
    """One that is asked for before the records of the one before are handled."""
    consumer: OrderedTimings = OrderedTimings()
    """Its consumer."""
    order: ClassVar[Order] = (
        ("margin_s", "ahead_margin_s", "an answer would have less time the earlier it is asked for"),
        ("ahead_margin_s", "consumer.idle_s", "the consumer would leave while its answer is waited for"),
    )


class FeedBatch(NamedTuple):
    """Records in order. `behind` says how many more are stored already."""

    records: list[Record]
    behind: int


class Feed:
    """One follower, on a connection of its own: pulls of 8 MiB would hold up everything else."""

    def __init__(
        self,
        nats: Connection,
        config: StoreConfig,
        name: str,
        features: Iterable[str] = (),
        timings: FeedTimings = FeedTimings(),
    ) -> None:
        """`features` are kinds of their records that are followed, too."""
        self._timings = timings
        self._name = name
        # One filter, though it lets through more: with several, nats-server searches for each message (docs/adr/006).
        self._consumer = OrderedConsumer(nats, config.records_stream, name, [config.records], _BATCH, timings.consumer)
        self._ahead: asyncio.Task[Collected | Failed] | None = None
        self._next = 1
        self._behind = 0
        self._jobs = config.job("").encode()
        self._keys = len(self._jobs) - len("job.")
        self._kinds: dict[bytes, tuple[str, str]] = {key.encode(): (kind, rest) for key, rest, kind in _FOLLOWED}
        self._kinds |= {kind.encode(): (kind, REST) for kind in features}

    async def seek(self, sequence: int) -> None:
        """Go on from `sequence`, inclusive. Raises OjsError backend_unavailable."""
        self._next = sequence
        await self._begin()

    async def next(self, wait_s: float) -> FeedBatch:
        """What is stored and was not read yet, up to 1,000 records; waits up to `wait_s` for the first.

        While there are many more, the server gathers the next ones before it is asked for them. Raises OjsError
        backend_unavailable; the next call goes on where the last one was.
        """
        if not self._consumer.live:
            await self._begin()
        ahead, self._ahead = self._ahead, None
        pull = self._consumer.pull(wait_s, self._timings.margin_s) if ahead is None else ahead
        found = self._consumer.take(await pull)
        if found:
            self._next, self._behind = found[-1].sequence + 1, found[-1].pending
        elif self._behind:
            # The server was too slow for this pull, or what was left has been removed: a new consumer knows.
            self._consumer.drop()
        if self._consumer.live and self._behind > _BATCH:
            self._ahead = asyncio.create_task(
                self._consumer.pull(wait_s, self._timings.ahead_margin_s), name=f"{self._name}-ahead"
            )
            for _ in range(2):  # it runs, and its request leaves, before the caller keeps the loop busy
                await asyncio.sleep(0)
        return FeedBatch([record for one in found if (record := self._read(one)) is not None], self._behind)

    def close(self) -> None:
        """Let the consumer go."""
        if self._ahead is not None:
            self._ahead.cancel()
            self._ahead = None
        self._consumer.drop()

    async def _begin(self) -> None:
        self.close()
        self._behind = await self._consumer.begin({"deliver_policy": "by_start_sequence", "opt_start_seq": max(1, self._next)})

    def _read(self, one: Delivery) -> Record | None:
        """None for what isn't followed."""
        subject, data = one.message.subject, one.message.data
        if subject.startswith(self._jobs):
            job_id = _text(subject[len(self._jobs) :])
            if not data:  # a marker: the record left by its TTL, or was deleted by hand
                return Record("gone", one.sequence, one.at, job_id, b"", None)
            return Record("job", one.sequence, one.at, job_id, data, _ttl_s(one.message))
        key, _, name = subject[self._keys :].partition(b".")
        kind, rest = self._kinds.get(key, (None, ""))
        if kind is None or not _fits(rest, name):
            return None
        if kind in _NAMELESS:
            return Record(kind, one.sequence, one.at, "", b"", None)
        return Record(kind, one.sequence, one.at, _text(name), data, _ttl_s(one.message))


def _fits(rest: str, name: bytes) -> bool:
    return rest == REST or (b"." not in name if rest == ANY else name == rest.encode())


def _ttl_s(message: Reply) -> int | None:
    value = header(message.headers, b"Nats-TTL")
    if not value or value == b"never":
        return None
    try:
        return int(value.removesuffix(b"s"))
    except ValueError:  # as others than we may write it: 1h30m
        try:
            return parse_duration_ms(_text(value)) // 1_000
        except ValueError:
            return None


def _text(name: bytes) -> str:
    """A key as text; one that is none is nobody's name."""
    return name.decode(errors="backslashreplace")
