"""Answers that come when nobody waits for them any more: they must not be taken for those of the next pull."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from integration.samples import draft
from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.connection import Collected, Connection, Failed, Reply, status
from ojs_engine.jetstream.contents import messages
from ojs_engine.jetstream.feed import Feed
from ojs_engine.store.store import Store
from support.nats import NatsServer
from support.waiting import answered

COMPLETED = "NATS/1.0 409 Batch Completed\r\nNats-Pending-Messages: 0\r\nNats-Pending-Bytes: 9\r\n\r\n"


def payloads(outcome: Collected | Failed) -> list[bytes]:
    assert isinstance(outcome, Collected)
    return [message.data for message in outcome.messages]


async def test_the_server_says_that_a_pull_with_max_bytes_is_over_after_its_last_message(store: Store) -> None:
    """Why `Batch Completed` is no answer: it comes when the pull has all that it asked for."""
    stream = "LATE"
    await call(store.nats, f"STREAM.CREATE.{stream}", {"name": stream, "subjects": ["late"], "storage": "memory"})
    config = {"durable_name": "c", "ack_policy": "none"}
    await call(store.nats, f"CONSUMER.CREATE.{stream}.c", {"stream_name": stream, "config": config})
    for n in range(3):
        await store.nats.request("late", str(n).encode())
    heard: asyncio.Queue[Reply] = asyncio.Queue()
    await store.nats.listen("heard", heard.put_nowait)
    store.nats.publish(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.c", b'{"batch":3,"max_bytes":10000}', reply="heard")
    async with asyncio.timeout(60):
        told = [await heard.get() for _ in range(4)]
    assert [message.data for message in told] == [b"0", b"1", b"2", b""]
    assert status(told[-1]) == 409
    assert COMPLETED.encode().startswith((told[-1].headers or b"").split(b"\r\n")[0])


async def test_a_pull_is_not_ended_by_the_last_word_of_the_one_before(store: Store) -> None:
    """Pulls share an inbox, one after the other; here the server says at the worst moment that the first was over."""
    server = await store.connect("server")

    def answer(request: Reply) -> None:
        inbox = request.reply.decode()
        if request.data == b"second":
            frame = COMPLETED.encode()
            # A status line is not a header, which is all that `publish` sends.
            server._write(f"HPUB {inbox} {len(frame)} {len(frame)}\r\n".encode() + frame + b"\r\n")
        for n in range(3):
            server.publish(inbox, request.data + str(n).encode())

    try:
        await server.listen("pull", answer)
        await server.request("$JS.API.INFO")  # the server has seen the subscription
        assert payloads(await store.bulk.collect("pull", b"first", 3, 5.0)) == [b"first0", b"first1", b"first2"]
        assert payloads(await store.bulk.collect("pull", b"second", 3, 5.0)) == [b"second0", b"second1", b"second2"]
    finally:
        await server.close()


class _Echo(Connection):
    """Hands over once more, ahead of the answers to a pull, what the pull before it brought."""

    def __init__(self) -> None:
        super().__init__("feed")
        self.last: list[Reply] = []

    async def collect(self, subject: str, payload: bytes, wanted: int, timeout_s: float) -> Collected | Failed:
        outcome = await super().collect(subject, payload, wanted, timeout_s)
        assert isinstance(outcome, Collected)
        late, self.last = self.last, outcome.messages
        return outcome._replace(messages=late + outcome.messages)


async def test_a_feed_does_not_take_an_earlier_consumers_records_for_its_own(
    store: Store, shared_nats_server: NatsServer, queue: str
) -> None:
    pushed = [(await store.enqueue.push(draft(queue=queue))).id for _ in range(6)]
    nats = _Echo()
    await nats.connect(shared_nats_server.url)
    feed = Feed(nats, store.config, "late")
    try:
        read = [record for record in (await feed.next(1.0)).records if record.job_id in pushed]
        assert [record.job_id for record in read] == pushed
        await feed.seek(read[3].sequence)  # a new consumer, whose first record is the fourth
        again = [record.job_id for record in (await feed.next(1.0)).records]
        assert again == pushed[3:]
    finally:
        feed.close()
        await nats.close()


async def test_every_record_is_read_when_all_pulls_are_full(store: Store, shared_nats_server: NatsServer, queue: str) -> None:
    """Each pull of a full batch is followed by a last word of its own, and by the next pull if there is much more."""

    async def stored(job: Job) -> None:
        """Push a job; one that is there already was stored by a push whose answer came too late."""
        try:
            await store.enqueue.push(job)
        except OjsError as error:
            if error.code != "duplicate":
                raise

    jobs = [draft(queue=queue) for _ in range(2_600)]
    for start in range(0, len(jobs), 200):
        await asyncio.gather(*(answered(stored, job) for job in jobs[start : start + 200]))
    nats = Connection("feed")
    await nats.connect(shared_nats_server.url)
    feed = Feed(nats, store.config, "full")
    found: set[str] = set()
    sequences = []
    try:
        behind = 1
        while behind:
            batch = await answered(feed.next, 1.0)
            behind = batch.behind
            found |= {record.job_id for record in batch.records}
            sequences += [record.sequence for record in batch.records]
            await asyncio.sleep(0)  # the last word has its chance to come before the next pull, or after it
        assert {job.id for job in jobs} <= found
        assert sequences == sorted(sequences)
    finally:
        feed.close()
        await nats.close()


async def test_a_read_that_nats_refuses_names_its_subject(tmp_path: Path) -> None:
    one = 'user: one, password: secret, permissions: { publish: { deny: "$JS.API.DIRECT.GET.KV_ojs" } }'
    with NatsServer(tmp_path / "nats", more=f"authorization {{ users: [ {{ {one} }} ] }}") as server:
        link = Connection("one")
        await link.connect(f"nats://one:secret@127.0.0.1:{server.port}")
        try:
            with pytest.raises(OjsError, match=r"may not publish on \$JS.API.DIRECT.GET.KV_ojs$"):
                await messages(link, "KV_ojs", {"multi_last": ["$KV.ojs.job.*"]}, "records")
        finally:
            await link.close()
