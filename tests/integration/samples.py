"""Jobs to store, ways to look into the streams, and trouble on the way to NATS (support.network has more)."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_engine.base.ids import new_job_id
from ojs_engine.domain.job import NOTHING, Job, Retry, State
from ojs_engine.domain.queues.config import QueueConfig
from ojs_engine.domain.queues.record import configured
from ojs_engine.domain.transitions import Failure, JobHolder, Moment, Transition, ack, nack
from ojs_engine.jetstream import contents
from ojs_engine.jetstream.connection import Connection, Failed, ReplyOrFailure
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.dispatch.queue_consumers import ConsumerTimings
from ojs_engine.store.dispatch.timings import DispatchTimings
from ojs_engine.store.store import Store, StoreTimings
from ojs_features.all import FEATURES
from support.nats import NatsServer
from support.outside import Send, standing, tapped
from support.waiting import answered, eventually

KINDS: Final = [reader.kind for feature in FEATURES for reader in feature.records]
"""The kinds of records that features have, which a reset removes, too."""
ANYONE: Final = JobHolder()
_count = count(1)


def new_id() -> str:
    return new_job_id(1_800_000_000_000 + next(_count))


def draft(**members: Any) -> Job:
    return Job(**({"id": new_id(), "type": "test.job", "args": Raw(b"[1]"), "state": State.AVAILABLE} | members))


BRIEFLY_MS: Final = 20
"""How long a fetch waits that finds nothing: NATS tells a consumer of a token a moment after it has stored it."""


async def fetch(store: Store, *queues: str, count: int = 1, worker: str | None = None, **more: Any) -> list[Job]:
    """Fetch what is there, or wait as told by `wait_ms`; `lease_ms` is half an hour unless given."""

    async def within(wait_ms: int) -> list[Job]:
        return await store.dispatcher.fetch(queues, count, worker, more.get("lease_ms"), wait_ms, more.get("pool"))

    wait_ms = more.get("wait_ms")
    return await within(wait_ms) if wait_ms is not None else await within(0) or await within(BRIEFLY_MS)


async def delayed(store: Store, ms: int, **members: Any) -> Job:
    """Push a job that is due in so many milliseconds; it is stored as scheduled though the push may take longer."""
    with standing(store):
        return await store.enqueue.push(draft(scheduled_at=store.clock.now() + ms, **members))


def acked(job: Job, moment: Moment) -> Transition:
    return ack(job, NOTHING, ANYONE, moment)


def failed(job: Job, moment: Moment) -> Transition:
    return nack(job, Failure(message="no"), ANYONE, moment)


def requeued(job: Job, moment: Moment) -> Transition:
    return nack(job, Failure(message="not now", requeue=True), ANYONE, moment)


def once() -> Retry:
    return Retry(max_attempts=1)


@contextmanager
def refusal(code: str) -> Iterator[None]:
    """The block must end in an OjsError of this code."""
    with pytest.raises(OjsError) as caught:
        yield
    assert caught.value.code == code, caught.value.message


# Times of the stores


def timed(**parts: Any) -> pytest.MarkDecorator:
    """Give a test's stores other times."""
    return pytest.mark.parametrize("timings", [StoreTimings(**parts)], ids=["timed"])


def dispatching(**parts: Any) -> StoreTimings:
    return StoreTimings(dispatch=DispatchTimings(**parts))


def from_heads(**dispatch: Any) -> StoreTimings:
    """Have tokens taken from the heads of their subjects, as of those that are asked for seldom."""
    return dispatching(consumers=ConsumerTimings(busy_pulls=1_000_000), **dispatch)


def from_durables(**dispatch: Any) -> StoreTimings:
    """Have tokens pulled from durables, as of busy subjects."""
    return dispatching(consumers=ConsumerTimings(busy_pulls=0), **dispatch)


# Queues with settings


async def configure(store: Store, queue: str, **config: Any) -> QueueConfig:
    """Give a queue these settings and no others."""
    wanted = QueueConfig(**config)
    await store.queues.change(queue, lambda old, moment: configured(old, queue, wanted, moment))
    return wanted


async def set_up(stores: Sequence[Store], queue: str, **config: Any) -> None:
    """Configure a queue and wait until every process knows."""
    wanted = await configure(stores[0], queue, **config)
    for store in stores:

        async def known(one: Store = store) -> bool:
            settings = await one.queues.settings(queue)
            return settings is not None and settings.config == wanted

        await eventually(known)


async def attempt(store: Store, queue: str, **members: Any) -> Job | None:
    """Push a job to a bounded queue; None if it is full. It is sent again, as clients do, while others always win the place."""
    try:
        return await answered(store.enqueue.push, draft(queue=queue, **members))
    except OjsError as error:
        if error.code != "queue_full":
            raise
        return None


# Looking at jobs and into the streams


async def in_state(store: Store, job_id: str, *states: State) -> Job | None:
    """The job, if it is in one of these states."""
    job = await store.jobs.get(job_id)
    return job if job.state in states else None


async def subjects(store: Store, stream: str, wildcard: str) -> dict[str, int]:
    """Subjects of a stream that match, with the number of messages of each."""
    return await contents.subjects_of(store.nats, stream, wildcard)


async def timers(store: Store, job_id: str) -> list[str]:
    """The ops of a job's live timers."""
    found = await subjects(store, store.config.records_stream, store.config.timer(job_id, ANY))
    return [subject.rpartition(".")[2] for subject in found]


async def due_subjects(store: Store, job_id: str) -> list[str]:
    return list(await subjects(store, store.config.records_stream, store.config.due(ANY, job_id)))


async def tokens(store: Store, queue: str) -> int:
    """How many tokens a queue holds, those in somebody's hands included; places that pushes hold aren't."""
    found = await subjects(store, store.config.ready_stream, store.config.ready_of_queue(queue))
    return sum(number for subject, number in found.items() if not store.config.seat_size(subject))


async def message(store: Store, subject: str) -> tuple[bytes, dict[str, str]] | None:
    """Body and headers of the last message of a subject in the bucket's stream."""
    found = await contents.message(store.nats, store.config.records_stream, {"last_by_subj": subject}, "a record")
    if found is None:
        return None
    lines = found.hdrs.decode().splitlines()[1:]
    return found.data, dict(line.split(": ", 1) for line in lines if line)


async def put_raw(store: Store, subject: str, body: bytes, headers: str = "") -> int:
    """Publish something and return its sequence."""
    answer = await store.nats.request(subject, body, headers)
    assert not isinstance(answer, Failed), answer
    ack: dict[str, Any] = msgspec.json.decode(answer.data)
    assert "error" not in ack, ack
    return int(ack["seq"])


# Trouble on the way


@asynccontextmanager
async def frozen(server: NatsServer) -> AsyncIterator[None]:
    """A server that keeps its connections and answers nothing. A signal takes effect a moment after it is sent."""
    pid = server.pid

    def stopped() -> bool:
        threads = Path(f"/proc/{pid}/task").iterdir()
        return all((thread / "stat").read_text().rpartition(")")[2].split()[0] == "T" for thread in threads)

    os.kill(pid, signal.SIGSTOP)
    try:
        await eventually(stopped, every=0.001)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextmanager
def losing_answers(
    nats: Connection, beginning: str, times: int = 1, meanwhile: Callable[[], Awaitable[object]] | None = None
) -> Iterator[list[str]]:
    """The next `times` requests to subjects with this beginning are carried out, and then their answers are lost.

    Before the loss is noticed, `meanwhile` is done.

    Then, and not at once: another connection's request could be carried out before one that was sent earlier.
    """
    lost: list[str] = []

    async def unheard(answer: Awaitable[Any]) -> Failed:
        await answer
        if meanwhile is not None:
            await meanwhile()
        return Failed("NATS did not answer in time", sent=True)

    def tap(send: Send, subject: str, payload: bytes, headers: str, timeout_s: float) -> Awaitable[ReplyOrFailure] | None:
        if not subject.startswith(beginning) or len(lost) >= times:
            return None
        lost.append(subject)
        return unheard(send(subject, payload, headers, timeout_s))

    with tapped(nats, tap):
        yield lost


@contextmanager
def unreachable(nats: Connection, beginning: str, times: int = 1) -> Iterator[list[str]]:
    """The next `times` requests to subjects with this beginning meet no leader: they are refused and do nothing."""
    refused: list[str] = []

    def tap(_send: Send, subject: str, _payload: bytes, _headers: str, _timeout_s: float) -> Awaitable[ReplyOrFailure] | None:
        if not subject.startswith(beginning) or len(refused) >= times:
            return None
        refused.append(subject)
        return no_leader()

    with tapped(nats, tap):
        yield refused


class Held:
    """What is kept from being sent: `waits` is set when there is something, `go` lets it, and all that comes later, pass."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.go = asyncio.Event()

    async def met(self, sender: asyncio.Task[Any]) -> None:
        """Return when something is held. A sender that ends without it fails at once."""
        waits = asyncio.ensure_future(self.waits.wait())
        await asyncio.wait((waits, sender), return_when=asyncio.FIRST_COMPLETED)
        if waits.cancel():
            raise AssertionError(f"nothing was held: {sender}")


@contextmanager
def holding(nats: Connection, ending: str, number: int = 1) -> Iterator[Held]:
    """Writes to subjects with this ending are not sent until they are let go, from the `number`-th on."""
    held = Held()
    met = count(1)

    async def late(send: Send, *request: Any) -> ReplyOrFailure:
        await held.go.wait()
        return await send(*request)

    def tap(send: Send, subject: str, payload: bytes, headers: str, timeout_s: float) -> Awaitable[ReplyOrFailure] | None:
        if subject.startswith("$JS.API.") or not subject.endswith(ending) or next(met) < number:
            return None
        held.waits.set()
        return late(send, subject, payload, headers, timeout_s)

    with tapped(nats, tap):
        try:
            yield held
        finally:
            held.go.set()


def no_leader() -> asyncio.Future[ReplyOrFailure]:
    """NATS's answer while a stream has no leader: nothing is done."""
    future: asyncio.Future[ReplyOrFailure] = asyncio.get_running_loop().create_future()
    future.set_result(Failed("NATS has no leader for this yet", sent=False))
    return future
