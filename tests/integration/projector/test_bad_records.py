"""Whatever is written into the bucket: one record that can't be read is passed over alone (docs/adr/028)."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from structlog.testing import capture_logs

from integration.conftest import OpenStore
from integration.projector.conftest import StartProjector
from integration.projector.samples import patient
from integration.samples import acked, draft, fetch, new_id, put_raw, refusal, timers
from integration.workflows import flows
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.unique import keyed
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.records.commit import encode_job
from ojs_engine.store.store import Store
from ojs_engine.wire.jobs.job import job_view
from ojs_engine.wire.members import encode
from ojs_engine.wire.workers.answers import fetched_jobs
from ojs_features.all import FEATURES, FOLLOWED, STORE_FEATURES
from ojs_features.crons.changes import Registration, delete
from ojs_features.crons.store import Crons
from ojs_features.limits.limits import Limits
from ojs_features.limits.permits import key_scope
from ojs_features.limits.plug import LIMITS
from ojs_features.limits.subjects import Subjects
from ojs_features.maintenance.unreadable import UnreadableRecords, removable
from ojs_features.pools.rules import Pool
from ojs_features.pools.store import Pools
from ojs_features.schemas.plug import SCHEMAS
from ojs_features.schemas.record import SchemaRecord
from ojs_features.schemas.registry import Schemas
from ojs_features.unique.plug import UNIQUE
from ojs_features.webhooks.subscriptions import Webhooks
from ojs_features.workflows.coordinator import Coordinator
from ojs_features.workflows.index import QUESTION, WorkflowPage, WorkflowsAsk
from ojs_features.workflows.store import Workflows
from ojs_index.asking.messages import JobsAsk, QueuesAsk, UnreadableAsk, WorkersAsk
from ojs_projector.projector import Projector
from ojs_runtime.settings import Settings
from ojs_scheduler import build as scheduler
from support.examples import examples
from support.nats import NatsServer
from support.outside import after
from support.truth import all_events
from support.waiting import answered, eventually

PATIENT: Final = 60.0
HUGE: Final = 10**30
BROKEN: Final = [
    b"{",
    b"null",
    b"[]",
    b'"text"',
    b"\xff\xfe",
    b'{"id": "\xff"}',
    b"DEEP",
    b"LONG",
    b'{"state": 7}',
    b"1" * 400,
]
"""Bodies that are no record of any kind."""
_LARGE: Final = {b"DEEP": b"[" * 5_000, b"LONG": b"{}" * 50_000}
"""What some of them stand for."""


# What is written


def _documents(name: str) -> dict[str, dict[str, Any]]:
    """A record of each kind as it should be, but for what is done to it."""
    job = {"id": name, "type": "t", "args": [1], "state": "available", "queue": "q", "token": "op", "created_at": 1}
    entry = {"n": 1, "op": "op", "event": "pushed", "at": 1, "after": "available"}
    return {
        "job": job
        | {
            "meta": {"a": "b"},
            "retry": {"max_attempts": 3},
            "timer": {"op": "x", "at": 5, "service": "reaper"},
            "rate_limit": {"key": "k", "concurrency": 1},
            "transitions": [entry],
            "errors": [{"code": "c", "type": "t", "message": "m", "attempt": 1, "at": 1, "backtrace": ["x"], "details": {}}],
            "expires_at": 2_000_000_000_000,
        },
        "workflow": {
            "id": name,
            "name": "n",
            "kind": "chain",
            "states": "Rq",
            "created_at": 1,
            "op": "op",
            "timer": {"op": "o", "at": 1},
            "log": [{"n": 1, "op": "op", "event": "started", "at": 1}],
        },
        "cron": {
            "name": name,
            "expression": "* * * * * *",
            "draft": job,
            "created_at": 1,
            "updated_at": 1,
            "anchor": 1,
            "op": "op",
            "next_at": 1,
            "timer": {"op": "o", "at": 1},
            "log": [{"n": 1, "outcome": "triggered", "tick": 1, "at": 1}],
        },
        "worker": {"id": name, "state": "running", "queues": ["q"], "pid": 1, "seen_at": 1, "labels": {"a": 1}},
        "checkpoint": {
            "job_id": name,
            "sequence": 1,
            "at": 1,
            "op": "o",
            "state": {"a": 1},
            "step_index": 2,
            "metadata": {"m": "x"},
        },
        "progress": {"job_id": name, "attempt": 1, "at": 1, "op": "o", "fraction": 0.5, "message": "m", "data": {"a": 1}},
        "unique": {"owner": name, "op": "op", "at": 1, "also": []},
        "limit": {"name": name, "policy": {"key": "k", "concurrency": 1}, "holders": [["j", "o", 1, 1]], "grants": [[1, 1]]},
        "queue": {"name": name, "state": "active", "config": {"rate_limit": {"limit": 1, "period_ms": 1}}, "created_at": 1},
        "pool": {"name": name, "weights": {"x": 1}, "prevention": {"interval_ms": 1, "ratio": 0.1}, "created_at": 1},
        "schema": {"uri": f"urn:{name}", "type": name, "version": "1", "document": {"type": "array"}, "created_at": 1},
        "webhook": {
            "id": name,
            "url": "https://a.b/",
            "events": ["x"],
            "metadata": {"m": 1},
            "secret": "s",
            "old_until": 1,
            "created_at": 1,
        },
        "target": {"succeeded": 1, "failed": 1, "in_a_row": 1, "failing_since": 1, "last_at": 1, "op": "o"},
        "delivery": {
            "id": "del_1",
            "subscription_id": name,
            "event_id": "evt_1",
            "event_type": "job.failed",
            "event": {},
            "created_at": 1,
            "updated_at": 1,
        },
        "idempotency": {"digest": "d", "began": 1, "runner": "r", "taken": 1, "status": 200, "body": {}},
        "stats": {"start": 60_000, "length": 60_000, "queues": {"q": [1, 1, 1]}},
        "service": {"role": "gateway", "instance": name, "since": 1, "at": 1},
        "relay": {"holder": "nobody", "done": 1},
    }


KINDS: Final = tuple(_documents(""))
NASTY: Final[st.SearchStrategy[Any]] = st.sampled_from(
    [
        HUGE,
        -HUGE,
        2**63,
        253_402_300_800_000,
        -1,
        0,
        1.5,
        1e300,
        True,
        None,
        "",
        "x",
        "\x00",
        "a b",
        "*",
        ">",
        "P1D",
        [],
        [[]],
        {},
    ]
)


@st.composite
def mutilated(draw: st.DrawFn, document: Any) -> Any:
    """A document in which some member, somewhere, is another or is missing."""
    if isinstance(document, dict) and document and draw(st.integers(0, 9)):
        name = draw(st.sampled_from(sorted(document)))
        changed = dict(document)
        if draw(st.integers(0, 5)):
            changed[name] = draw(mutilated(document[name]))
        else:
            del changed[name]
        return changed
    if isinstance(document, list) and document and draw(st.booleans()):
        return [draw(mutilated(document[0])), *document[1:]]
    return draw(NASTY)


@st.composite
def writes(draw: st.DrawFn) -> tuple[str, bytes]:
    """A kind, and a body in which `NAME` stands for the record's name."""
    kind = draw(st.sampled_from(KINDS))
    how = draw(st.integers(0, 9))
    if how == 0:
        body = draw(st.sampled_from(BROKEN))
    elif how == 1:
        body = draw(st.binary(min_size=1, max_size=40))
    elif how == 2:
        body = json.dumps(_documents("NAME")[draw(st.sampled_from(KINDS))]).encode()
    else:
        body = json.dumps(draw(mutilated(_documents("NAME")[kind]))).encode()
        if how == 3:  # texts and numbers that are none, where nobody looks at first
            body = body.replace(b'"op"', b'"\xff"').replace(b'"t"', b'"\\ud800"')
        elif how == 4:
            body = body.replace(b'["x"]', b"[1e999]").replace(b'"args": [1]', b'"args": [1e999]')
    return kind, body


_KEYS: Final[dict[str, str]] = {
    "stats": "minute.60.0",
    "service": "gateway.{}",
    "limit": "key.{}",
    "schema": "{}.1=2E0=2E0",
    "delivery": "{}.del_1",
    "relay": "events",
}
_BEGINS_AGAIN: Final = frozenset(
    {
        "due messages failed and will come back",
        "housekeeping failed",
        "query failed",
        "reading failed",
        "relaying failed",
        "the index is broken and is built anew",
        "the relay's lease failed",
        "watch failed and begins again",
    }
)
"""What a loop says that has met what it can't deal with."""


# What goes on


class World:
    """A gateway, a scheduler, a coordinator and a projector in one process, on one server."""

    def __init__(self, store: Store, projector: Projector) -> None:
        self.store = store
        self.projector = projector
        self.queries = patient(store)

    async def write(self, kind: str, body: bytes) -> None:
        """Store a body under a key of its kind; a job's has a token, and is next to be fetched."""
        store = self.store
        name = new_id()
        key = _KEYS.get(kind, "{}").format(name)
        body = _LARGE.get(body, body).replace(b"NAME", key.encode() if kind == "limit" else name.encode())
        await put_raw(store, store.config.record(kind, key), body)
        if kind == "job":
            await put_raw(store, store.config.ready("q", 0), f"{name} op 0".encode())

    async def works(self, queue: str) -> None:
        """Everything that others do is done."""
        store = self.store
        ids = [(await store.enqueue.push(draft(queue="q", args=Raw(b'["good"]')))).id for _ in range(3)]
        got: list[Job] = []

        async def all_fetched() -> bool:
            got.extend(job for job in await fetch(store, "q", count=10, worker="w") if job.id in ids)
            return len(got) == len(ids)

        await eventually(all_fetched, PATIENT)
        encode(fetched_jobs(got))
        for job in got:
            assert (await store.jobs.change(job.id, acked)).after.state is State.COMPLETED
        await self._limited(queue)
        await self._workflow(f"{queue}-steps")
        await self._cron(f"{queue}-cron")
        await self._lists(ids)
        await self._events(ids)

    async def _limited(self, queue: str) -> None:
        limit = Raw(b'{"key":"sound","concurrency":5}')
        pushed = await self.store.enqueue.push(draft(queue=queue, rate_limit=limit))
        [job] = await fetch(self.store, queue)
        assert job.id == pushed.id
        await self.store.jobs.change(job.id, acked)

    async def _workflow(self, queue: str) -> None:
        """The coordinator takes it from step to step."""
        workflow_id = await flows.create(self.store, flows.chain(queue, "one", "two"))

        async def ended() -> bool:
            await flows.end(self.store, queue)
            return (await self.store.of(Workflows).get(workflow_id)).record.terminal

        await eventually(ended, PATIENT)

    async def _cron(self, name: str) -> None:
        """The scheduler creates its jobs."""
        template = Job(id="", type="test.job", args=Raw(b"[]"), state=State.AVAILABLE, queue=name)
        await self.store.of(Crons).register(Registration(name=name, expression="* * * * * *", draft=template))

        async def has_run() -> bool:
            return bool(await fetch(self.store, name))

        await eventually(has_run, PATIENT)
        await self.store.of(Crons).change(name, delete)

    async def _lists(self, ids: list[str]) -> None:
        queries = self.queries
        page = await answered(queries.jobs, JobsAsk(limit=200, whole=True))
        assert set(ids) <= {row.id for row in page.jobs}
        found = await self.store.records.many([row.id for row in page.jobs])
        for stored in found.values():
            if stored.job is not None:
                encode(job_view(stored.job))
        await answered(queries.queues, QueuesAsk())
        await answered(queries.workers, WorkersAsk())
        await answered(lambda ask: queries.ask(QUESTION, ask, WorkflowPage), WorkflowsAsk())
        await self.store.of(Pools).all()
        await self.store.of(Schemas).catalogue()
        await self.store.of(Webhooks).health_of(await self.store.of(Webhooks).all())
        await self.store.of(Webhooks).deliveries.page(None, None, None, 0, 200)
        await self.store.queues.all()
        await self.store.of(Crons).all()
        await self.store.presence.of("*")

    async def _events(self, ids: list[str]) -> None:
        """Of all of them; the relay may have to wait until a lease has run out that nobody holds."""

        async def told() -> bool:
            return set(ids) <= {event.subject_id for event in await all_events(self.store)}

        await eventually(told, PATIENT, every=0.2)


@asynccontextmanager
async def world(url: str, index: Path) -> AsyncIterator[World]:
    stores = [
        await Store.open(url, StoreConfig(), role=role, features=STORE_FEATURES)
        for role in ("gateway", "projector", "scheduler", "coordinator")
    ]
    gateway, reading, scheduling, coordinating = stores
    projector = Projector(reading, index, copied=4_096, features=FOLLOWED)
    services = [projector, scheduler(scheduling, Settings()), Coordinator(coordinating)]
    try:
        for service in services:
            await service.start()
        yield World(gateway, projector)
    finally:
        for service in reversed(services):
            await service.stop()
        for store in stores:
            await store.close()


@settings(
    max_examples=examples(24, least=3, costly=True),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(written=st.lists(writes(), min_size=20, max_size=40))
def test_whatever_is_written_into_the_bucket_everything_else_goes_on(
    nats_server: NatsServer, tmp_path: Path, written: list[tuple[str, bytes]]
) -> None:
    async def live() -> None:
        async with world(nats_server.url, tmp_path / "index") as one:
            for kind, body in written:
                await one.write(kind, body)
            await one.works(f"queue-{new_id()}")

    with capture_logs() as logged:
        asyncio.run(live())
    again = Counter((line["event"], line.get("watch")) for line in logged if line["event"] in _BEGINS_AGAIN)
    assert not again, again


# Looking at them, and removing them


async def _broken(store: Store, **members: Any) -> Job:
    """A job that was pushed, and whose record was then overwritten by hand."""
    job = await store.enqueue.push(draft(queue="q", **members))
    await put_raw(store, store.config.job(job.id), b'{"id": 7}')
    return job


async def test_a_record_that_can_not_be_read_is_listed_until_it_is_removed(
    start_projector: StartProjector, store: Store
) -> None:
    await start_projector()
    asking = patient(store)
    job = await _broken(store, expires_at=store.clock.now() + 3_600_000)
    [row] = (await asking.unreadable(UnreadableAsk())).records
    assert (row.kind, row.key, row.size) == ("job", job.id, 9)
    assert "id" in row.problem
    assert (await asking.unreadable(UnreadableAsk(kind="workflow"))).records == []
    assert (await asking.queue("q")).counts.available == 0, "nobody is shown it"

    await store.of(UnreadableRecords).remove("job", job.id)
    assert (await asking.unreadable(UnreadableAsk())).records == []

    async def is_over() -> bool:
        return not await timers(store, job.id)

    await eventually(is_over, PATIENT)
    again = await store.enqueue.push(draft(id=job.id, queue="q"))
    assert [found.id for found in await fetch(store, "q")] == [again.id], "its id is free, and its old token harmless"


async def test_whoever_takes_the_name_of_a_removed_record_at_once_keeps_his_timer(store: Store) -> None:
    later = store.clock.now() + 3_600_000
    job = await _broken(store, expires_at=later)
    (left_behind,) = await timers(store, job.id)

    async def is_pushed() -> None:
        await store.enqueue.push(draft(id=job.id, queue="q", expires_at=later))

    with after(store.nats, store.config.job(job.id), is_pushed) as removed:
        await store.of(UnreadableRecords).remove("job", job.id)
    assert removed

    async def is_purged() -> bool:
        return left_behind not in await timers(store, job.id)

    await eventually(is_purged, PATIENT)
    assert len(await timers(store, job.id)) == 1


async def test_a_record_that_can_be_read_again_is_no_longer_listed(start_projector: StartProjector, store: Store) -> None:
    await start_projector()
    job = await _broken(store)
    asking = patient(store)
    assert (await asking.unreadable(UnreadableAsk())).total == 1
    await put_raw(store, store.config.job(job.id), encode_job(job))
    assert (await asking.unreadable(UnreadableAsk())).total == 0
    assert (await asking.queue("q")).counts.available == 1


async def test_only_what_can_not_be_read_is_removed(store: Store) -> None:
    job = await store.enqueue.push(draft(queue="q"))
    with refusal("conflict"):
        await store.of(UnreadableRecords).remove("job", job.id)
    assert (await store.jobs.get(job.id)).id == job.id
    with refusal("not_found"):
        await store.of(UnreadableRecords).remove("job", new_id())
    for kind, key in (("barrier", "x"), ("nonsense", "x"), ("job", ">"), ("job", "*")):
        with refusal("invalid_request"):
            await store.of(UnreadableRecords).remove(kind, key)


async def test_every_kind_of_record_can_be_removed(store: Store) -> None:
    features = [reader for feature in FEATURES for reader in feature.records]
    for kind in removable(features):
        await put_raw(store, store.config.record(kind, "any"), b"{")
        await store.of(UnreadableRecords).remove(kind, "any", features)
        with refusal("not_found"):
            await store.of(UnreadableRecords).remove(kind, "any", features)
    await put_raw(store, store.config.record("worker", "w.directive"), b"{")
    await store.of(UnreadableRecords).remove("worker", "w.directive")


# One limit, one pool, one lock


async def test_jobs_of_a_limit_that_can_not_be_read_wait_and_others_go_on(store: Store) -> None:
    limit = Raw(b'{"key":"torn","concurrency":1}')
    held = await store.enqueue.push(draft(queue="q", rate_limit=limit))
    await put_raw(store, Subjects(store.config).limit(key_scope("torn")), b"[1]")
    other = await store.enqueue.push(draft(queue="q"))
    assert [job.id for job in await fetch(store, "q", count=10)] == [other.id]
    waiting = await store.jobs.get(held.id)
    assert (waiting.state, waiting.attempt) == (State.SCHEDULED, 0), "it is looked at again later"
    with refusal("unreadable_record"):
        await store.of(Limits).permits.read(key_scope("torn"))
    await store.of(UnreadableRecords).remove("limit", key_scope("torn"), LIMITS.records)
    assert (await store.of(Limits).permits.read(key_scope("torn")))[1].holders == ()


async def test_a_pool_that_can_not_be_read_leaves_the_others_as_they_are(store: Store, open_here: OpenStore) -> None:
    await store.of(Pools).put(Pool(name="sound", weights={"a": 1, "b": 1}))
    await put_raw(store, store.config.record("pool", "torn"), b'{"name": "torn", "weights": {"c": 0}}')
    late = await open_here()
    assert [pool.name for pool in await late.of(Pools).all()] == ["sound"]
    await late.of(Pools).put(Pool(name="third", weights={"d": 1}))
    with refusal("unreadable_record"):
        await late.of(Pools).get("torn")


async def test_a_schema_that_can_not_be_read_holds_up_no_push(store: Store, open_here: OpenStore) -> None:
    sound = SchemaRecord(uri="urn:sound", type="sound", version="1", document=Raw(b'{"maxItems":0}'), mode="strict")
    await store.of(Schemas).register(sound, 10)
    torn = b'{"uri": "urn:torn", "type": "torn", "version": "1", "document": {"$ref": "http://127.0.0.1/x"}}'
    await put_raw(store, store.config.record("schema", "torn.1=2E0=2E0"), torn)
    late = await open_here()
    assert await late.of(Schemas).check(draft(type="torn")) == ()
    with refusal("schema_validation"):
        await late.of(Schemas).check(draft(type="sound"))
    assert [one.type for one in (await late.of(Schemas).catalogue()).all()] == ["sound"]
    await store.of(UnreadableRecords).remove("schema", "torn.1=2E0=2E0", SCHEMAS.records)


async def test_a_lock_that_can_not_be_read_is_in_the_way_of_its_fingerprint_alone(store: Store) -> None:
    job = keyed(draft(queue="q", unique=Raw(b'{"keys":["type","args"]}')))
    assert job.unique_key is not None
    await put_raw(store, store.config.record("unique", job.unique_key), b'{"owner": 1}')
    with refusal("unreadable_record"):
        await store.enqueue.push(job)
    await store.enqueue.push(keyed(draft(queue="q", args=Raw(b"[2]"), unique=Raw(b'{"keys":["type","args"]}'))))
    await store.of(UnreadableRecords).remove("unique", job.unique_key, UNIQUE.records)
    await store.enqueue.push(job)


async def test_a_record_that_can_not_be_read_is_named_in_the_log_once(store: Store) -> None:
    job = await _broken(store)
    with capture_logs() as logged:
        for _ in range(5):
            with refusal("unreadable_record"):
                await store.jobs.get(job.id)
    assert [line["key"] for line in logged if line["event"] == "record can't be read"] == [job.id]
