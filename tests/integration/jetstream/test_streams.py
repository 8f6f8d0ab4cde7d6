from __future__ import annotations

import asyncio
import contextlib
import os
import re
from typing import Any

import nats
import pytest
from structlog.testing import capture_logs

from integration.conftest import MakeServer, OpenStore
from integration.samples import acked, draft, fetch
from ojs_engine.base.errors import OjsError
from ojs_engine.base.problems import StartupProblem, Unreachable
from ojs_engine.domain.job import Job, State
from ojs_engine.jetstream.api import call
from ojs_engine.jetstream.connection import Connection
from ojs_engine.jetstream.streams import check_server, provision
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.records.records import job_reader
from ojs_engine.store.store import Store
from support.nats import NatsServer
from support.waiting import eventually


class Elsewhere:
    """What check_server reads of a connection."""

    def __init__(self, server_version: str, max_payload: int = 8 * 1024 * 1024) -> None:
        self.server_version = server_version
        self.max_payload = max_payload


async def opened(nats: Connection, url: str) -> Connection:
    await nats.connect(url)
    return nats


async def drifted(store: Store, **changes: Any) -> StartupProblem:
    """What start-up says when a stream of another bucket differs in `changes` from what is wanted."""
    config = StoreConfig(namespace="drift")
    wanted = config.streams()[0] | {"subjects": ["$KV.drift.>"]} | changes
    wanted.pop("republish", None)
    made = await call(store.nats, "STREAM.CREATE.KV_drift", wanted)
    assert "error" not in made, made
    try:
        with pytest.raises(StartupProblem) as caught:
            await provision(store.nats, config)
    finally:
        await call(store.nats, "STREAM.DELETE.KV_drift")
    return caught.value


async def test_opening_again_changes_nothing(store: Store, open_store: OpenStore, shared_nats_server: NatsServer) -> None:
    names = [stream["name"] for stream in store.config.streams()]
    before = [await call(store.nats, f"STREAM.INFO.{name}") for name in names]
    await open_store(shared_nats_server.url, namespace=store.config.namespace)
    after = [await call(store.nats, f"STREAM.INFO.{name}") for name in names]
    assert [info["config"] for info in before] == [info["config"] for info in after]
    assert [info["created"] for info in before] == [info["created"] for info in after]


async def test_a_store_says_what_nats_server_has_lost(own_server: MakeServer, open_store: OpenStore) -> None:
    with own_server() as server:
        store = await open_store(server.url)
        assert await store.damage() is None
        for number in range(30):
            await store.nats.request(store.config.result(f"job-{number}", "op"), bytes(500_000))
        assert await store.damage() is None
        server.stop()
        first = min(server.folder.glob("store/jetstream/*/streams/KV_ojs/msgs/*.blk"), key=lambda path: int(path.stem))
        os.truncate(first, first.stat().st_size // 2)
        server.start()
        damage = await eventually(lambda: told(store))
        assert re.fullmatch(r"stream KV_ojs has lost \d+ messages: its file is damaged", damage or "")
        await call(store.nats, "STREAM.DELETE.OJS_EVENTS")
        assert "there is no stream OJS_EVENTS any more" in (await store.damage() or "")


async def told(store: Store) -> str | None:
    """What is lost; None while NATS is still away."""
    with contextlib.suppress(OjsError):
        return await store.damage()
    return None


async def test_many_processes_may_make_the_streams_at_once(own_server: MakeServer, open_store: OpenStore) -> None:
    with own_server() as server:
        stores = await asyncio.gather(*(open_store(server.url) for _ in range(6)))
        job = await stores[0].enqueue.push(draft())
        assert (await stores[5].jobs.get(job.id)).id == job.id


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"subject_delete_marker_ttl": 0}, "subject_delete_marker_ttl"),
        ({"max_age": 3_600_000_000_000}, "max_age"),
        ({"max_msgs": 1000}, "max_msgs"),
        ({"max_bytes": 1_000_000}, "max_bytes"),
        ({"max_msgs_per_subject": 5}, "max_msgs_per_subject"),
        ({"storage": "memory"}, "storage"),
        ({"persist_mode": "async", "allow_atomic": False, "allow_msg_schedules": False}, "persist_mode"),
        ({"deny_delete": True}, "deny_delete"),
    ],
)
async def test_a_bucket_that_can_lose_jobs_is_refused_in_words(store: Store, changes: dict[str, Any], word: str) -> None:
    problem = str(await drifted(store, **changes))
    assert "stream KV_drift" in problem
    assert word in problem
    assert "nats stream edit" in problem


async def test_a_stream_of_an_earlier_version_gets_its_limit_of_consumers_and_one_that_an_operator_set_stays(
    own_server: MakeServer, open_store: OpenStore
) -> None:
    async def limit(store: Store, number: int | None = None) -> int:
        name = store.config.ready_stream
        info = await call(store.nats, f"STREAM.INFO.{name}")
        if number is not None:
            info = await call(store.nats, f"STREAM.UPDATE.{name}", info["config"] | {"max_consumers": number})
        return int(info["config"]["max_consumers"])

    with own_server() as server:
        store = await open_store(server.url)
        assert await limit(store, -1) == -1
        assert await limit(await open_store(server.url)) == 2_000
        assert await limit(store, 300) == 300
        assert await limit(await open_store(server.url)) == 300


async def test_an_account_with_few_consumers_is_told_at_the_start(
    own_server: MakeServer, open_store: OpenStore, capsys: pytest.CaptureFixture[str]
) -> None:
    accounts = """
        accounts { OJS { users: [{user: ojs, password: ojs}], jetstream: {max_mem: 64M, max_file: 1G, max_consumers: 40} } }
        no_auth_user: ojs
    """
    with own_server(more=accounts) as server:
        store = await open_store(server.url)
        assert "raise its JetStream limit max_consumers" in capsys.readouterr().out
        assert store.config.busy_queues == 40
        pushed = await store.enqueue.push(draft())
        assert [job.id for job in await fetch(store, pushed.queue)] == [pushed.id]


@pytest.mark.parametrize("version", ["2.10.29", "2.13.9", ""])
def test_an_old_server_is_refused_with_the_remedy(version: str) -> None:
    with pytest.raises(StartupProblem, match=r"too old: ojs-nats needs 2\.14 or newer.*upgrade nats-server"):
        check_server(Elsewhere(version))  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["2.14.0", "2.15.1", "2.16.0-preview.1", "3.0.0"])
def test_a_new_server_is_taken(version: str) -> None:
    check_server(Elsewhere(version))  # type: ignore[arg-type]


@pytest.mark.parametrize(("version", "warned"), [("2.14.0", True), ("2.14.3", True), ("2.14.4", False)])
def test_a_server_with_known_faults_is_warned_of(version: str, *, warned: bool) -> None:
    with capture_logs() as logs:
        check_server(Elsewhere(version))  # type: ignore[arg-type]
    assert [line["reason"] for line in logs] == [
        f"nats-server {version} has faults in atomic batches and message schedules, which 2.14.4 mends"
    ] * warned


async def test_without_jetstream_the_problem_names_the_remedy(own_server: MakeServer, open_store: OpenStore) -> None:
    with own_server(more="jetstream: false") as server, pytest.raises(StartupProblem, match="enable JetStream") as caught:
        await open_store(server.url)
    assert not isinstance(caught.value, Unreachable), "waiting would not help"


async def test_a_server_that_is_not_there_is_worth_another_try(own_server: MakeServer, open_store: OpenStore) -> None:
    with own_server() as server:
        pass
    with pytest.raises(Unreachable, match="start nats-server"):
        await open_store(server.url)


async def test_a_password_is_not_repeated_in_a_problem(own_server: MakeServer, open_store: OpenStore) -> None:
    with own_server() as server:
        pass
    with pytest.raises(Unreachable) as caught:
        await open_store(server.url.replace("//", "//me:secret@"))
    assert "secret" not in str(caught.value)


async def test_natspy_reads_the_records_as_a_bucket(store: Store, shared_nats_server: NatsServer, queue: str) -> None:
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)
    await store.jobs.change(pushed.id, acked)
    client = await nats.connect(shared_nats_server.url)
    try:
        bucket = await client.jetstream().key_value(store.config.bucket)
        entry = await bucket.get(f"job.{pushed.id}")
        assert entry.value is not None
        found: Job = job_reader.decode(entry.key.removeprefix("job."), entry.value)
        assert found == await store.jobs.get(pushed.id)
        assert found.state is State.COMPLETED
    finally:
        await client.close()
