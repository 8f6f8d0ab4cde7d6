"""Every operation of the Python client, against a real server: what it answers fits the types that it is said to have."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any, Unpack

import pytest

from ojs_nats import Client, OjsError, RateLimit, Retry, Unique, chain, group
from ojs_nats.client import JobHandle
from ojs_nats.errors import ConflictError, InvalidRequestError, NotFoundError, QueueClosedError, RefusedError, ResultGone
from ojs_nats.jobs import JobRequest
from ojs_nats.models.events import Event
from ojs_nats.operations.dead_letters import DeadLetterFilter
from ojs_nats.operations.jobs import JobFilter
from ojs_nats.operations.queues import Prevention
from ojs_nats.options import Options, Rate
from support.system import Services, System
from support.waiting import eventually

NOWHERE = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


@pytest.fixture(params=["HTTP", "NATS"])
async def client(system: System, request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async with Client(system.url if request.param == "HTTP" else system.nats_url) as client:
        yield client


def new(job_type: str = "t.one", *args: Any, **options: Unpack[Options]) -> JobRequest[Any]:
    return JobRequest(job_type, args, Options(**{"queue": "q", **options}))


def failed(system: System, queue: str = "q") -> str:
    """The id of a job that was fetched and has failed."""
    [job] = system.fetch(queue, worker_id="w1")
    system.call("POST", "/workers/nack", {"job_id": job["id"], "error": {"message": "boom", "type": "Boom"}})
    return str(job["id"])


async def test_queues(client: Client) -> None:
    queues = client.queues
    made = await queues.create(
        "q",
        max_size=100,
        overflow_policy="reject",
        concurrency=5,
        rate_limit=Rate(100, "1m"),
        visibility_timeout="45s",
        default_retry=Retry(4, initial_interval="2s"),
        retention={"completed": "1d"},
        starvation_prevention=Prevention(interval="30s"),
        allowed_job_types=["t.*"],
        strict_pause=True,
    )
    assert (made.name, made.own_config.max_size, made.own_config.visibility_timeout) == ("q", 100, 45.0)
    assert made.own_config.default_retry is not None
    assert made.own_config.default_retry.initial_interval == "PT2S"
    with pytest.raises(ConflictError):
        await queues.create("q")
    await client.push(new())
    assert (await queues.pause("q")).paused
    with pytest.raises(QueueClosedError):
        await client.push(new())
    assert not (await queues.resume("q")).paused
    with pytest.raises(QueueClosedError):
        await client.push(new("another.type"))
    assert (await queues.configure("q", max_size=None, strict_pause=False)).own_config.max_size is None
    assert (await queues.config("q")).own_config.concurrency == 5
    assert (await queues.config()).name == "_default"
    assert (await queues.limit("q", concurrency=3, rate=Rate(10, 60))).own_config.concurrency == 3
    await eventually_counted(client, "q", 1)
    assert (await queues.get("q")).counts.available == 1
    assert (await queues.priority_stats("q")).total == 1
    history = await queues.history("q", period="1m", since=datetime.now(UTC) - timedelta(minutes=5))
    assert history.period == "1m"
    assert [queue.name async for queue in queues.list()] == ["q"]
    assert (await queues.purge("q", states=["available"])).purged_count == 1
    assert (await queues.delete("q", strategy="discard")).state in {"deleted", "draining"}
    with pytest.raises(NotFoundError):
        await queues.get("nowhere")


async def eventually_counted(client: Client, queue: str, number: int) -> None:
    while (await client.queues.stats(queue)).queue.available != number:  # noqa: ASYNC110
        await asyncio.sleep(0.02)


async def test_lists_go_over_pages(client: Client) -> None:
    pushed = await client.push_all([new("t.many", n) for n in range(450)])
    found = [job.id async for job in client.jobs.list(queue="q", type="t.*", state="available", order="asc")]
    assert sorted(found) == sorted(handle.id for handle in pushed)
    assert len(found) == len(set(found))
    assert len([job async for job in client.jobs.list(limit=230)]) == 230
    assert [job async for job in client.jobs.list(queue="empty")] == []
    since = datetime.now(UTC) + timedelta(hours=1)
    assert [job async for job in client.jobs.list(since=since, meta={"a": "b"})] == []


async def test_a_job_s_life(system: System, client: Client) -> None:
    jobs = client.jobs
    handle = await client.push(
        new(retry=Retry(2, initial_interval="5m", on_exhaustion="dead_letter"), meta={"tenant": "a"}, tags=["x"])
    )
    assert (await jobs.set_priority(handle.id, 7)).previous_priority == 0
    detail = await jobs.detail(handle.id)
    assert (detail.state, detail.priority, detail.tags) == ("available", 7, ["x"])
    assert detail.timeline[0].event
    assert failed(system) == handle.id
    job = await jobs.get(handle.id)
    assert (job.state, job.attempt) == ("retryable", 1)
    assert job.next_attempt_at is not None
    assert job.error is not None
    assert (await jobs.retries(handle.id)).retries[0].error == "boom"
    assert (await jobs.retry(handle.id)).state == "available"
    with pytest.raises(ConflictError):
        await jobs.retry(handle.id)
    [taken] = system.fetch("q", worker_id="w1")
    system.call("PUT", f"/jobs/{handle.id}/progress", {"progress": 0.5, "message": "half"})
    assert (await jobs.progress(handle.id)).progress == 0.5
    system.call("PUT", f"/jobs/{handle.id}/checkpoint", {"state": {"reached": 3}})
    assert (await jobs.checkpoint(handle.id)).state == {"reached": 3}
    assert await jobs.delete_checkpoint(handle.id)
    assert not await jobs.delete_checkpoint(handle.id)
    with pytest.raises(NotFoundError):
        await jobs.checkpoint(handle.id)
    assert (await jobs.result(handle.id)).result is None
    system.call("POST", "/workers/ack", {"job_id": taken["id"], "result": {"n": 1}})
    assert (await jobs.wait(handle.id, "10s")).result == {"n": 1}
    assert (await jobs.result(handle.id)).result == {"n": 1}
    found = await jobs.results([handle.id, NOWHERE])
    assert [found[handle.id].state, found[NOWHERE].state] == ["completed", "not_found"]
    history = [event async for event in jobs.history(handle.id)]
    assert len(history) >= 5
    assert [event.id async for event in jobs.history(handle.id, limit=2)] == [event.id for event in history[:2]]
    assert (await jobs.lineage(handle.id)).job_id == handle.id
    attempts = await jobs.attempts(handle.id)
    assert [attempt.attempt for attempt in attempts][:1] == [1]
    assert (await jobs.attempt(handle.id, attempts[-1].attempt)).started_at == attempts[-1].started_at
    with pytest.raises(NotFoundError):
        await jobs.get(NOWHERE)
    with pytest.raises(InvalidRequestError):
        await client.push(JobRequest("t.one", id="none"))


async def test_pending_and_unique_jobs(client: Client) -> None:
    pending = await client.push(new(pending=True))
    assert (await pending.job()).state == "pending"
    assert [reason.code for reason in (await client.jobs.why(pending.id)).reasons] == ["pending"]
    assert (await client.jobs.activate(pending.id)).state == "available"
    later = await client.push(new(delay="1h"))
    assert (await client.jobs.run_now(later.id)).state == "available"
    only = await client.push(new("t.only", unique=Unique(period="1h")))
    assert [held.job_id async for held in client.jobs.unique()] == [only.id]
    assert (await client.jobs.cancel(only.id, reason="enough")).state == "cancelled"


async def test_many_jobs_at_once(system: System, client: Client) -> None:
    jobs = client.jobs
    first, *rest = await client.push_all([new("t.many", n) for n in range(5)])
    assert [item.status for item in (await jobs.cancel_many([first.id, NOWHERE])).items] == ["cancelled", "skipped"]
    assert [item.status for item in (await jobs.cancel_many([NOWHERE])).items] == ["skipped"], "a 422 that is no error"
    assert (await jobs.get(first.id)).state == "cancelled"
    ranked = await jobs.set_priority_many([job.id for job in rest], 7)
    assert {item.status for item in ranked.items} == {"reprioritised"}
    would = await jobs.cancel_many(JobFilter(type="t.many", states=["available"]), dry_run=True)
    assert (would.dry_run, would.total_matched) == (True, 4)
    page = await jobs.cancel_many(JobFilter(queue="q"), limit=3, reason="enough")
    while page.next_cursor:
        page = await jobs.cancel_many(JobFilter(queue="q"), limit=3, cursor=page.next_cursor)
    assert {(await jobs.get(handle.id)).state for handle in rest} == {"cancelled"}
    await client.push(new(retry=Retry(1)))
    assert [item.status for item in (await jobs.retry_many([failed(system)])).items] == ["retried"]
    assert [item.status for item in (await jobs.delete_many([first.id])).items] == ["deleted"]
    with pytest.raises(InvalidRequestError):
        await jobs.delete_many(JobFilter(older_than="1s"))


async def test_a_bulk_push_tells_of_each_job(client: Client) -> None:
    wrong = JobRequest[Any]("t.one", id="none")
    taken = new("t.taken")
    await client.push(taken)
    pushed, refused, again = await client.push_each([new(), wrong, taken])
    assert isinstance(pushed, JobHandle)
    assert (await pushed.job()).state == "available"
    assert isinstance(refused, InvalidRequestError)
    assert isinstance(again, JobHandle)
    [alone] = await client.push_each([wrong])
    assert isinstance(alone, RefusedError)
    assert await client.push_each([]) == []


async def test_dead_letters(system: System, client: Client) -> None:
    dead = client.dead_letters
    for _ in range(4):
        await client.push(new(retry=Retry(1, on_exhaustion="dead_letter")))
    ids = [failed(system) for _ in range(4)]
    assert {job.id async for job in dead.list(queue="q", error_type="Boom")} == set(ids)
    assert (await dead.get(ids[0])).dead_letter
    assert (await dead.stats("q")).by_queue == {"q": 4}
    assert (await dead.retry(ids[0], args=[1], queue="other", retry=Retry(3))).queue == "other"
    await dead.delete(ids[1])
    with pytest.raises(NotFoundError):
        await dead.get(ids[1])
    assert (await dead.retry_all(DeadLetterFilter(queue="nowhere"))).total_matched == 0
    assert (await dead.purge(DeadLetterFilter(queue="q", type="t.one"))).deleted == 2


async def test_crons(client: Client) -> None:
    crons = client.crons
    made = await crons.register("nightly", "0 3 * * *", new("t.report", "daily"), timezone="Europe/Berlin", overlap="skip")
    assert (made.job_template.type, made.job_template.args, made.enabled) == ("t.report", ["daily"], True)
    assert (await crons.update("nightly", expression="@daily", description="the report")).description == "the report"
    assert not (await crons.pause("nightly")).enabled
    assert [entry.name async for entry in crons.list(enabled=False)] == ["nightly"]
    assert (await crons.resume("nightly")).enabled
    run = await crons.trigger("nightly")
    assert (await client.jobs.get(run.job_id)).type == "t.report"
    assert [told.job_id for told in await crons.history("nightly")] == [run.job_id]
    assert len(await crons.coming("nightly", count=3)) == 3
    assert len(await crons.preview("@hourly", count=2)) == 2
    assert (await crons.get("nightly")).run_count == 1
    await crons.delete("nightly")
    with pytest.raises(NotFoundError):
        await crons.get("nightly")


async def test_workers(system: System, client: Client) -> None:
    workers = client.workers
    system.call("POST", "/workers/register", {"worker_id": "w1", "queues": ["q"], "concurrency": 3, "hostname": "h"})
    await client.push(new())
    [job] = system.fetch("q", worker_id="w1")
    assert [worker.id async for worker in workers.list(state="running")] == ["w1"]
    assert (await workers.summary()).running == 1
    assert [held.id for held in (await workers.get("w1")).jobs] == [job["id"]]
    assert (await workers.health("w1")).status == "healthy"
    assert (await workers.send_directive("w1", "quiet")).directive == "quiet"
    assert (await workers.send_directive_to_all("running")).workers == 1
    with pytest.raises(ConflictError):
        await workers.remove("w1")
    system.call("POST", "/workers/heartbeat", {"worker_id": "w1", "state": "quiet"})
    assert (await workers.health("w1")).status == "draining", "which is answered with the status of an error"
    with pytest.raises(NotFoundError):
        await workers.health("nobody")


async def test_webhooks(client: Client, unused_tcp_port: int) -> None:
    webhooks = client.webhooks
    url = f"http://127.0.0.1:{unused_tcp_port}/hook"
    try:
        made = await webhooks.subscribe(url, ["job.failed"], queues=["q"], metadata={"a": 1})
    except InvalidRequestError:  # targets on this machine need a setting
        made = await webhooks.subscribe("https://example.org/hook", ["job.failed"], queues=["q"], metadata={"a": 1})
    assert made.secret
    assert not (await webhooks.update(made.id, active=False, events=["job.*"])).active
    assert (await webhooks.get(made.id)).events == ["job.*"]
    assert [found.id async for found in webhooks.list()] == [made.id]
    assert (await webhooks.rotate_secret(made.id)).secret != made.secret
    assert [one async for one in webhooks.deliveries(webhook_id=made.id, status="dead")] == []
    assert not (await webhooks.test(made.id)).success
    for asked in (webhooks.delivery("nothing"), webhooks.retry_delivery("nothing")):
        with pytest.raises(NotFoundError):
            await asked
    await webhooks.delete(made.id)
    with pytest.raises(NotFoundError):
        await webhooks.get(made.id)


async def test_schemas(client: Client) -> None:
    schemas = client.schemas
    document = {"type": "array", "items": {"type": "integer"}}
    made = await schemas.register("t.held", 1, document, mode="strict", uri="urn:test:held:1")
    assert made.schema == document
    await schemas.put("t.held", 2, document | {"maxItems": 3}, mode="warn")
    assert [schema.version async for schema in schemas.list()] == [2, 1]
    assert [schema.schema async for schema in schemas.documents()][1] == document
    assert (await schemas.get("t.held")).version == 2
    assert (await schemas.version("t.held", 1)).uri == made.uri
    assert [version.is_latest for version in await schemas.versions("t.held")] == [True, False]
    await schemas.delete_version("t.held", 2)
    with pytest.raises(InvalidRequestError):
        await client.push(new("t.held", "text"))
    await schemas.delete(made.uri)
    with pytest.raises(NotFoundError):
        await schemas.get("t.held")


async def test_rate_limits(system: System, client: Client) -> None:
    await client.push(new(rate_limit=RateLimit("api", concurrency=2, rate=Rate(5, "1m"), throttle=Rate(1, "1s"))))
    system.fetch("q", worker_id="w1")
    limits = client.rate_limits
    known = await limits.get("api")
    assert known.concurrency is not None
    assert known.concurrency.limit == 2
    assert [limit.key async for limit in limits.list()] == ["api"]
    changed = await limits.override(
        "api", concurrency=1, rate=Rate(2, "10s"), expires_at=datetime.now(UTC) + timedelta(hours=1)
    )
    assert changed.override is not None
    assert changed.override.concurrency == 1
    assert (await limits.restore("api")).override is None


async def test_pools(client: Client) -> None:
    pools = client.pools
    made = await pools.put(
        "front", ["a", "b"], strategy="weighted", weights={"a": 3, "b": 1}, starvation_prevention=Prevention(share=0.1)
    )
    assert made.weights == {"a": 3, "b": 1}
    assert (await pools.get("front")).queues == ["a", "b"]
    assert [pool.name for pool in await pools.list()] == ["front"]
    assert (await pools.scheduling_stats()).window
    await pools.delete("front")
    with pytest.raises(NotFoundError):
        await pools.get("front")


async def test_a_job_is_pushed_with_all_that_can_be_said_of_it(client: Client) -> None:
    said = new(
        timeout="30s",
        total_timeout="1h",
        enqueue_ttl="20d",
        heartbeat_timeout="10s",
        grace_period="5s",
        result_ttl=None,
        version="1.2",
        delay="20d",
        unique=Unique(period="20d", states=["scheduled"]),
    )
    job = await (await client.push(said)).job()
    assert (job.state, job.timeout_ms, job.version) == ("scheduled", 30_000, "1.2")


@pytest.mark.parametrize("returns", [Any, int, int | None])
async def test_a_result_that_isn_t_kept_any_more_is_never_none(system: System, client: Client, returns: Any) -> None:
    job: JobRequest[Any] = JobRequest("t.one", (), Options(queue="q", result_ttl="1s"), returns=returns)
    handle = await client.push(job)
    workflow = await client.workflows.start(group(new("t.two", result_ttl="1s"), chain(new("t.three"))))
    for fetched in system.fetch("q", worker_id="w1", count=3):
        result = None if fetched["type"] == "t.three" else 42
        system.call("POST", "/workers/ack", {"job_id": fetched["id"], **({} if result is None else {"result": result})})

    async def gone(asked: Callable[[], Awaitable[Any]]) -> bool:
        try:
            assert await asked() in (42, [42, None])
        except ResultGone:
            return True
        return False

    await eventually(lambda: gone(lambda: handle.result("10s")))
    await eventually(lambda: gone(lambda: workflow.result("10s")))
    assert (await handle.job()).state == "completed"


async def test_a_result_of_another_type_than_its_hint_is_an_ojs_error(system: System, client: Client) -> None:
    for result in ("text", None):
        job: JobRequest[int] = JobRequest("t.one", (), Options(queue="q"), returns=int)
        handle = await client.push(job)
        [fetched] = system.fetch("q", worker_id="w1")
        system.call("POST", "/workers/ack", {"job_id": fetched["id"], **({} if result is None else {"result": result})})
        with pytest.raises(OjsError, match="isn't what its definition says"):
            await handle.result("10s")


async def test_the_system(system: System, client: Client) -> None:
    asked = client.system
    assert (await asked.manifest()).implementation.name == "ojs-nats"
    assert (await asked.health()).status == "ok"
    await client.push(new(retry=Retry(1)))
    job_id = failed(system)
    assert (await asked.stats()).queues >= 1
    assert "queues" in (await asked.findings()).checks
    assert {one.role for one in await asked.services()} >= {"gateway", "projector"}
    assert (await asked.history(period="1m")).period == "1m"
    assert (await asked.config()).backend.type
    assert (await asked.status()).projector is not None
    assert [entry.phase for entry in await asked.middleware()] == ["enqueue"] * len(await asked.middleware())
    assert [found.job_id async for found in asked.failures(queue="q")] == [job_id]
    assert not (await asked.maintenance()).maintenance
    assert (await asked.begin_maintenance(reason="moving", duration="1h", estimated="5m")).reason == "moving"
    assert not (await asked.end_maintenance()).maintenance
    assert [record async for record in asked.unreadable(kind="job")] == []
    with pytest.raises(RefusedError):
        await asked.remove_unreadable("job", NOWHERE)


# Events


async def heard(client: Client, number: int, **wanted: Any) -> list[Event]:
    found: list[Event] = []
    async with aclosing(client.events(**wanted)) as events:
        async for event in events:
            found.append(event)
            if len(found) == number:
                break
    return found


async def test_events_are_followed_from_now_on_and_behind_a_cursor(client: Client) -> None:
    after = await client.events.cursor()
    first = await client.push(new())
    await client.push(new(queue="other"))
    last = await client.push(new())
    found = await heard(client, 2, types=["job.*"], queue="q", after=after)
    assert [(event.type, event.data["job_id"]) for event in found] == [("job.enqueued", first.id), ("job.enqueued", last.id)]
    assert [event.subject for event in await heard(client, 1, queue="q", after=found[0].cursor)] == [last.id]
    page = await client.events.poll(after=after, types=["job.enqueued"], queue="q", job_type="t.one")
    recent = await client.events.recent(type="job.enqueued", queue="q", limit=1)
    assert [event.id for event in recent] == [page.events[-1].id]
    assert [event.subject for event in page.events] == [first.id, last.id]
    assert not page.has_more

    listening = asyncio.create_task(heard(client, 1, types=["job.enqueued"], queue="late"))
    late = await client.push(new(queue="late"))
    while not listening.done():
        late = await client.push(new(queue="late"))
        await asyncio.sleep(0.05)
    assert listening.result()[0].type == "job.enqueued"
    assert (await late.job()).state == "available"


async def test_the_events_of_a_job_end_with_it(system: System, client: Client) -> None:
    after = await client.events.cursor()
    handle = await client.push(new())
    [job] = system.fetch("q", worker_id="w1")
    system.call("POST", "/workers/ack", {"job_id": job["id"]})
    async with asyncio.timeout(60):
        types = [event.type async for event in client.events(job_id=handle.id, after=after)]
    assert types == ["job.enqueued", "job.started", "job.completed"]
    with pytest.raises(NotFoundError):
        await heard(client, 1, job_id=NOWHERE)


async def test_events_go_on_when_a_gateway_is_killed(own_services: Services) -> None:
    async with Client(own_services.url) as client:
        after = await client.events.cursor()
        found: list[str] = []

        async def follow() -> None:
            async with aclosing(client.events(types=["job.enqueued"], after=after)) as events:
                async for event in events:
                    found.append(event.subject)  # noqa: PERF401  # it never ends

        following = asyncio.create_task(follow())
        pushed = [(await client.push(new())).id]
        await eventually(lambda: found == pushed)
        await asyncio.to_thread(own_services.restart, "gateway")
        pushed += [(await client.push(new())).id]
        await eventually(lambda: list(dict.fromkeys(found)) == pushed)
        following.cancel()
