"""Following the records of jobs and what goes with them: every revision in order, or the last of several.

A consumer that acknowledges nothing: who follows knows how far it has come, and whatever is lost on the way shows as a gap in
the consumer's own count, after which a new consumer begins behind the last record that arrived.
"""

from __future__ import annotations

import asyncio
from typing import Final, Literal, NamedTuple

import msgspec
import structlog

from ojs_core.base.errors import unavailable
from ojs_core.base.times import parse_duration_ms
from ojs_core.jetstream.api import ask
from ojs_core.jetstream.connection import Collected, Connection, Failed, Reply, header, status
from ojs_core.jetstream.subjects import ANY, REST, StoreConfig
from ojs_core.jetstream.subjects import Kind as Key

log = structlog.get_logger(__name__)

_BATCH: Final = 500
_BATCH_BYTES: Final = 8 * 1024 * 1024
_ROOM: Final = 64 * 1024
"""For subject and headers of a record as large as nats-server takes."""
_SECOND_NS: Final = 1_000_000_000
_IDLE_NS: Final = 30 * _SECOND_NS
_MARGIN_S: Final = 2.0
_AHEAD_MARGIN_S: Final = 10.0
"""For a pull that is asked for before its predecessor's records are dealt with."""
_NOTHING: Final = frozenset({404, 408})

FeedKind = Literal[
    "job", "gone", "workflow", "cron", "worker", "unique", "crossing", "queue", "pool", "stats", "barrier", "epoch"
]

_FOLLOWED: Final[tuple[tuple[Key, str, FeedKind], ...]] = (
    ("job", REST, "job"),
    ("workflow", ANY, "workflow"),
    ("cron", ANY, "cron"),
    ("worker", ANY, "worker"),
    ("unique", ANY, "unique"),
    ("crossing", REST, "crossing"),
    ("queue", ANY, "queue"),
    ("pool", ANY, "pool"),
    ("stats", REST, "stats"),
    ("barrier", REST, "barrier"),
    ("reset", "epoch", "epoch"),
)
"""The records that are followed: the first word of their keys, the rest of them, and what they are read as."""
_NAMELESS: Final[frozenset[FeedKind]] = frozenset({"barrier", "epoch"})


class Record(NamedTuple):
    """One message of the bucket. `at`: when it was stored (Unix ms); `ttl_s`: until it leaves by itself, None if it stays.

    `job_id` is a workflow's id for `workflow`, an encoded name for `cron`, a worker's encoded id for `worker`, a fingerprint
    for `unique`, a scope for `crossing`, the name of a span of time for `stats`; `gone` is of jobs only,
    of the others one that has left has no data.
    """

    kind: FeedKind
    sequence: int
    at: int
    job_id: str
    data: bytes
    ttl_s: int | None


class FeedBatch(NamedTuple):
    """Records in order. `behind` says how many more are stored already."""

    records: list[Record]
    behind: int


class Feed:
    """One follower, on a connection of its own: pulls of 8 MiB would hold up everything else."""

    def __init__(self, nats: Connection, config: StoreConfig, name: str) -> None:
        self._nats = nats
        self._config = config
        self._name = name
        self._incarnation = 0
        self._consumer: str | None = None
        self._ahead: asyncio.Task[Collected | Failed] | None = None
        self._mark = b""
        self._next = 1
        self._count = 0
        self._behind = 0
        self._bytes = max(_BATCH_BYTES, nats.max_payload) + _ROOM
        self._jobs = config.job("").encode()
        self._keys = len(self._jobs) - len("job.")
        self._kinds = {key.encode(): kind for key, _, kind in _FOLLOWED}

    async def seek(self, sequence: int) -> None:
        """Go on from `sequence`, inclusive. Raises OjsError backend_unavailable."""
        self._next = sequence
        await self._begin()

    async def next(self, wait_s: float) -> FeedBatch:
        """What is stored and was not read yet, up to 500 records; waits up to `wait_s` for the first.

        While there are many more, the server gathers the next ones before it is asked for them. Raises OjsError
        backend_unavailable; the next call goes on where the last one was.
        """
        if self._consumer is None:
            await self._begin()
        ahead, self._ahead = self._ahead, None
        outcome = await (ahead if ahead is not None else self._pull(wait_s, _MARGIN_S))
        if isinstance(outcome, Failed):
            self._consumer = None
            raise unavailable(f"job records can't be read: {outcome.reason}")
        # What an earlier consumer still had on its way is none of this one's business.
        messages = [message for message in outcome.messages if self._mark in message.reply]
        records = [record for message in messages if (record := self._read(message)) is not None]
        if len(records) < len(messages):
            log.warning("records were lost on the way and are read again", after=self._next - 1)
            self._consumer = None
        elif outcome.closing is None or (not records and status(outcome.closing) not in _NOTHING):
            self._consumer = None  # it is gone, or its leader is
        elif not records and self._behind:
            # The server was too slow for this pull, or what was left has been removed: a new consumer knows.
            self._consumer = None
        if self._consumer is not None and self._behind > _BATCH:
            self._ahead = asyncio.create_task(self._pull(wait_s, _AHEAD_MARGIN_S), name=f"{self._name}-ahead")
            for _ in range(2):  # it runs, and its request leaves, before the caller keeps the loop busy
                await asyncio.sleep(0)
        return FeedBatch(records, self._behind)

    async def _pull(self, wait_s: float, margin_s: float) -> Collected | Failed:
        pull = f"$JS.API.CONSUMER.MSG.NEXT.{self._config.records_stream}.{self._consumer}"
        request = {"batch": _BATCH, "max_bytes": self._bytes, "no_wait": True, "expires": int(wait_s * _SECOND_NS)}
        return await self._nats.collect(pull, msgspec.json.encode(request), _BATCH, wait_s + margin_s)

    def close(self) -> None:
        """Let the consumer go."""
        self._drop()

    async def _begin(self) -> None:
        self._drop()
        self._incarnation += 1
        name = f"{self._name}-{self._incarnation}"
        stream = self._config.records_stream
        config = {
            "name": name,
            "filter_subjects": [self._config.record(key, rest) for key, rest, _ in _FOLLOWED],
            "deliver_policy": "by_start_sequence",
            "opt_start_seq": max(1, self._next),
            "ack_policy": "none",
            "mem_storage": True,
            "num_replicas": 1,
            "inactive_threshold": _IDLE_NS,
        }
        request = {"stream_name": stream, "config": config}
        answer = await ask(self._nats, f"CONSUMER.CREATE.{stream}.{name}", request, "a consumer of the job records")
        self._behind = int(answer.get("num_pending", 0))
        self._count = 0
        self._consumer = name
        self._mark = f".{name}.".encode()

    def _drop(self) -> None:
        """The server would find out by itself after half a minute."""
        if self._ahead is not None:
            self._ahead.cancel()
            self._ahead = None
        if self._consumer is not None:
            delete = f"$JS.API.CONSUMER.DELETE.{self._config.records_stream}.{self._consumer}"
            self._nats.publish(delete, b"", reply=self._nats.nobody)
            self._consumer = None

    def _read(self, message: Reply) -> Record | None:
        """None from the first gap on."""
        # $JS.ACK.<stream>.<consumer>.<deliveries>.<stream sequence>.<consumer sequence>.<timestamp ns>.<pending>
        parts = message.reply.rsplit(b".", 4)
        sequence, count, at = int(parts[1]), int(parts[2]), int(parts[3]) // 1_000_000
        if count != self._count + 1:
            return None
        self._count = count
        self._next = sequence + 1
        self._behind = int(parts[4])
        subject = message.subject
        if subject.startswith(self._jobs):
            job_id = _text(subject[len(self._jobs) :])
            if not message.data:  # a marker: the record left by its TTL, or was deleted by hand
                return Record("gone", sequence, at, job_id, b"", None)
            return Record("job", sequence, at, job_id, message.data, _ttl_s(message))
        key, _, name = subject[self._keys :].partition(b".")
        kind = self._kinds[key]
        if kind in _NAMELESS:
            return Record(kind, sequence, at, "", b"", None)
        return Record(kind, sequence, at, _text(name), message.data, _ttl_s(message))


def _ttl_s(message: Reply) -> int | None:
    value = header(message, b"Nats-TTL") if message.headers is not None else None
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
