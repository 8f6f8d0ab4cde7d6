"""The operations whose traces are kept, each a function that takes them step by step."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, NamedTuple

from support.traces import Trace
from support.webhook_target import WebhookTarget

System = Literal["shared", "keys", "durables"]
Take = Callable[[Trace], Awaitable[None]]


class Operation(NamedTuple):
    """What is traced: a title, the services that run beside the gateway, and the steps."""

    title: str
    services: tuple[str, ...]
    take: Take
    system: System = "shared"
    """Whether the gateway is the one of the others, or one of its own: with keys, or which takes jobs from durables."""


OPERATIONS: Final[dict[str, Operation]] = {}


def traced(title: str, *services: str, system: System = "shared") -> Callable[[Take], Take]:
    """Have an operation traced under its function's name."""

    def add(take: Take) -> Take:
        OPERATIONS[take.__name__] = Operation(title, services, take, system)
        return take

    return add


def job(**options: Any) -> dict[str, Any]:
    """Return the body of a push."""
    return {"type": "email.send", "args": [1], "options": {"queue": "letters", **options}}


def fetching(*queues: str, **more: Any) -> dict[str, Any]:
    """Return the body of a fetch that doesn't wait."""
    return {"queues": queues or ["letters"], "worker_id": "w", "wait_ms": 0, **more}


async def pushed(t: Trace, **options: Any) -> str:
    """Push a job that the trace doesn't show, and return its id."""
    return str((await t.prepare("POST", "/jobs", job(**options)))["job"]["id"])


async def held(t: Trace, **options: Any) -> str:
    """Push and fetch a job, which the trace doesn't show, and return its id."""
    job_id = await pushed(t, **options)
    assert (await t.prepare("POST", "/workers/fetch", fetching()))["jobs"]
    return job_id


def pushing(name: str, title: str, **options: Any) -> None:
    """Trace a push with these options."""

    async def push(t: Trace) -> None:
        await t.call("POST", "/jobs", job(**options))

    OPERATIONS[name] = Operation(title, (), push)


async def dead(t: Trace) -> str:
    """Have a job fail for good, which the trace doesn't show, and return its id."""
    job_id = await held(t, retry={"max_attempts": 1})
    error = {**ERROR, "action": "DEAD_LETTER"}
    await t.prepare("POST", "/workers/nack", {"job_id": job_id, "worker_id": "w", "error": error})
    return job_id


ERROR: Final = {"type": "E", "message": "no"}
POOL: Final = {"strategy": "weighted", "queues": {"letters": {"weight": 2}, "parcels": {}}}
SCHEMA: Final = {"schema": {"type": "array", "items": [{"type": "integer"}]}, "validation": {"mode": "strict"}}


# Pushes


@traced("A plain push")
async def push_plain(t: Trace) -> None:
    await t.call("POST", "/jobs", job())


pushing("push_delayed", "A push with a delay", delay_until="+PT1H")
pushing("push_expiring", "A push with an expiry", expires_at="2099-01-01T00:00:00Z")
pushing("push_unique", "A push of a unique job", unique={"keys": ["type"], "period": "PT1H", "on_conflict": "reject"})
pushing("push_pending", "A push of a job that waits to be activated", pending=True)
pushing("push_priority", "A push with a high priority", priority="high")
pushing(
    "push_limited_rate",
    "A push limited by a key's rate",
    rate_limit={"key": "k", "rate": {"limit": 1, "period": "PT1H"}},
)
pushing("push_limited_concurrency", "A push limited by a key's concurrency", rate_limit={"key": "k", "concurrency": 1})
pushing("push_tagged", "A push with tags and metadata", tags=["t"], metadata={"n": 1})
pushing("push_timed", "A push with time-outs", timeout=30, total_timeout_ms=60_000, result_ttl=60)


@traced("A push with an id of its own, and once more")
async def push_with_id(t: Trace) -> None:
    body = {**job(), "id": "01a461a8-1a2b-7c3d-8e4f-5a6b7c8d9e01", "meta": {"m": 1}}
    await t.call("POST", "/jobs", body)
    await t.call("POST", "/jobs", body)


@traced("A push of a unique job that is there already")
async def push_duplicate(t: Trace) -> None:
    unique = {"keys": ["type"], "period": "PT1H", "on_conflict": "ignore"}
    await pushed(t, unique=unique)
    await t.call("POST", "/jobs", job(unique=unique))


@traced("A push that replaces a unique job")
async def push_replacing(t: Trace) -> None:
    unique = {"keys": ["type"], "period": "PT1H", "on_conflict": "replace"}
    await pushed(t, unique=unique)
    await t.call("POST", "/jobs", job(unique=unique))


@traced("Pushes to a queue with a bound, the last refused")
async def push_bounded(t: Trace) -> None:
    await t.prepare("PUT", "/queues/letters/config", {"max_size": 1})
    await t.call("POST", "/jobs", job())
    await t.call("POST", "/jobs", job())


@traced("Pushes of a type with a schema, the second refused")
async def push_with_schema(t: Trace) -> None:
    await t.prepare("PUT", "/admin/schemas/email.send/1", SCHEMA)
    await t.call("POST", "/jobs", job())
    await t.call("POST", "/jobs", {**job(), "args": ["no number"]})


@traced("A push of a job of a version")
async def push_versioned(t: Trace) -> None:
    await t.call("POST", "/jobs", {**job(), "meta": {"version": "2.0.0"}})


@traced("A push that is refused")
async def push_refused(t: Trace) -> None:
    await t.call("POST", "/jobs", {"type": "No Name", "args": []})


@traced("A batch of two jobs")
async def push_batch(t: Trace) -> None:
    await t.call("POST", "/jobs/batch", {"jobs": [job(), job(priority=5)]})


@traced("A batch with a unique job, written as a whole")
async def push_batch_unique(t: Trace) -> None:
    await t.call("POST", "/jobs/batch", {"jobs": [job(), job(unique={"keys": ["type"], "period": "PT1H"})]})


@traced("A bulk push of which one is refused")
async def push_bulk(t: Trace) -> None:
    await t.call("POST", "/jobs/bulk", {"jobs": [job(), {"type": "a.b"}], "atomicity": "partial"})


# Fetches


@traced("A fetch of one job")
async def fetch_one(t: Trace) -> None:
    await pushed(t)
    await t.call("POST", "/workers/fetch", fetching())


@traced("A fetch of three jobs")
async def fetch_many(t: Trace) -> None:
    for _ in range(3):
        await pushed(t)
    await t.call("POST", "/workers/fetch", fetching(count=3))


@traced("A fetch from two queues")
async def fetch_two_queues(t: Trace) -> None:
    await pushed(t, queue="parcels")
    await t.call("POST", "/workers/fetch", fetching("letters", "parcels"))


@traced("A fetch of a job whose key's concurrency is taken, and its release")
async def fetch_limited(t: Trace) -> None:
    limit = {"key": "k", "concurrency": 1}
    job_id = await held(t, rate_limit=limit)
    await pushed(t, rate_limit=limit)
    await t.call("POST", "/workers/fetch", fetching())
    await t.call("POST", "/workers/ack", {"job_id": job_id, "worker_id": "w"})
    await t.call("POST", "/workers/fetch", fetching())


@traced("A fetch from a queue with a bound and a concurrency")
async def fetch_bounded(t: Trace) -> None:
    await t.prepare("PUT", "/queues/letters/config", {"max_size": 5, "concurrency": 2})
    await pushed(t)
    await t.call("POST", "/workers/fetch", fetching())


@traced("A fetch from a pool's queues")
async def fetch_pooled(t: Trace) -> None:
    await t.prepare("PUT", "/admin/pools/p", POOL)
    await pushed(t)
    await t.call("POST", "/workers/fetch", fetching("letters", "parcels"))


@traced("A fetch from an empty queue")
async def fetch_empty(t: Trace) -> None:
    await t.call("POST", "/workers/fetch", fetching())


@traced("A fetch from a paused queue")
async def fetch_paused(t: Trace) -> None:
    await pushed(t)
    await t.prepare("POST", "/queues/letters/pause")
    await t.call("POST", "/workers/fetch", fetching())


# What workers tell


@traced("An ack")
async def ack(t: Trace) -> None:
    await t.call("POST", "/workers/ack", {"job_id": await held(t), "worker_id": "w"})


@traced("An ack with a result")
async def ack_with_result(t: Trace) -> None:
    await t.call("POST", "/workers/ack", {"job_id": await held(t), "worker_id": "w", "result": {"ok": True}})


@traced("An ack of a unique job")
async def ack_unique(t: Trace) -> None:
    job_id = await held(t, unique={"keys": ["type"], "period": "PT1H"})
    await t.call("POST", "/workers/ack", {"job_id": job_id, "worker_id": "w"})


@traced("Two acks in one request")
async def ack_many(t: Trace) -> None:
    jobs = [{"job_id": await held(t)}, {"job_id": await held(t)}]
    await t.call("POST", "/workers/acks", {"worker_id": "w", "jobs": jobs})


@traced("A fetch that brings an ack")
async def ack_with_fetch(t: Trace) -> None:
    job_id = await held(t)
    await pushed(t)
    await t.call("POST", "/workers/fetch", fetching(acks=[{"job_id": job_id}]))


@traced("An ack of a job that isn't held")
async def ack_refused(t: Trace) -> None:
    await t.call("POST", "/workers/ack", {"job_id": await pushed(t), "worker_id": "w"})


@traced("A failure that is tried again, and the job's return", "scheduler")
async def nack_retry(t: Trace) -> None:
    job_id = await held(t, retry={"max_attempts": 2, "initial_interval": "PT1S", "jitter": False})
    await t.call("POST", "/workers/nack", {"job_id": job_id, "worker_id": "w", "error": ERROR})
    await t.later("a second later", "scheduler", "$JS.ACK.")


@traced("The last failure, to the dead letters")
async def nack_dead_letter(t: Trace) -> None:
    job_id = await held(t, retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})
    await t.call("POST", "/workers/nack", {"job_id": job_id, "worker_id": "w", "error": ERROR})


@traced("A failure that isn't tried again")
async def nack_final(t: Trace) -> None:
    job_id = await held(t, retry={"max_attempts": 3, "non_retryable_errors": ["E"]})
    await t.call("POST", "/workers/nack", {"job_id": job_id, "worker_id": "w", "error": ERROR})


@traced("A job given back")
async def nack_requeue(t: Trace) -> None:
    await t.call("POST", "/workers/nack", {"job_id": await held(t), "worker_id": "w", "requeue": True})


@traced("A lease that runs out", "reaper")
async def lease_lost(t: Trace) -> None:
    await pushed(t)
    await t.call("POST", "/workers/fetch", fetching(visibility_timeout_ms=1_000))
    await t.later("a second later", "reaper", "$JS.ACK.")


@traced("The first heartbeat of a worker, and another that extends a lease")
async def heartbeat(t: Trace) -> None:
    beat = {"worker_id": "w", "queues": ["letters"], "hostname": "h", "pid": 1, "concurrency": 2, "state": "running"}
    await t.call("POST", "/workers/heartbeat", {**beat, "active_jobs": []})
    job_id = await held(t)
    await t.call("POST", "/workers/heartbeat", {**beat, "active_jobs": [job_id]})


@traced("Progress")
async def progress(t: Trace) -> None:
    body = {"progress": 0.5, "message": "half", "worker_id": "w", "attempt": 1}
    await t.call("PUT", f"/jobs/{await held(t)}/progress", body)


@traced("A checkpoint written, read and removed")
async def checkpoint(t: Trace) -> None:
    path = f"/jobs/{await held(t)}/checkpoint"
    await t.call("PUT", path, {"state": {"step": 1}, "worker_id": "w", "attempt": 1})
    await t.call("GET", path)
    await t.call("DELETE", path)


@traced("A worker that leaves")
async def deregister(t: Trace) -> None:
    await t.prepare("POST", "/workers/register", {"worker_id": "w", "queues": ["letters"], "hostname": "h", "pid": 1})
    await t.call("POST", "/workers/deregister", {"worker_id": "w", "reason": "signal"})


@traced("A worker that is told to take no more", "projector")
async def directive(t: Trace) -> None:
    await t.prepare("GET", "/queues")
    report = {"worker_id": "w", "queues": ["letters"], "hostname": "h", "pid": 1}
    await t.prepare("POST", "/workers/register", report)
    await t.call("POST", "/admin/workers/w/quiet")
    await t.call("POST", "/workers/heartbeat", {**report, "active_jobs": []})


# What operators do with a job


@traced("A look at a job")
async def get(t: Trace) -> None:
    await t.call("GET", f"/jobs/{await pushed(t)}")


@traced("A waiting job is cancelled")
async def cancel_waiting(t: Trace) -> None:
    await t.call("DELETE", f"/jobs/{await pushed(t)}", {"reason": "not needed"})


@traced("An active job is cancelled")
async def cancel_active(t: Trace) -> None:
    await t.call("DELETE", f"/jobs/{await held(t)}")


@traced("A job's priority is changed")
async def change(t: Trace) -> None:
    await t.call("PATCH", f"/jobs/{await pushed(t)}", {"priority": 5})


@traced("A pending job is activated")
async def activate(t: Trace) -> None:
    await t.call("POST", f"/jobs/{await pushed(t, pending=True)}/activate")


@traced("A delayed job is run now")
async def run(t: Trace) -> None:
    await t.call("POST", f"/admin/jobs/{await pushed(t, delay_until='+PT1H')}/run")


@traced("A dead letter is tried again")
async def retry(t: Trace) -> None:
    await t.call("POST", f"/dead-letter/{await dead(t)}/retry")


@traced("A dead letter is discarded")
async def discard(t: Trace) -> None:
    await t.call("DELETE", f"/dead-letter/{await dead(t)}")


@traced("Two jobs are cancelled in bulk")
async def bulk_cancel(t: Trace) -> None:
    await t.call("POST", "/jobs/bulk/cancel", {"job_ids": [await pushed(t), await pushed(t)]})


@traced("A delayed job whose time comes", "scheduler")
async def delay_over(t: Trace) -> None:
    await t.call("POST", "/jobs", job(delay_until="+PT1S"))
    await t.later("a second later", "scheduler", "$JS.ACK.")


# Cron


def entry() -> dict[str, Any]:
    """Return the body of a new cron entry that doesn't tick while a test runs."""
    return {"name": "c", "cron": "0 0 29 2 *", **job()}


@traced("A cron entry is made")
async def cron_create(t: Trace) -> None:
    await t.call("POST", "/cron", entry())


@traced("A cron entry's tick", "scheduler")
async def cron_tick(t: Trace) -> None:
    await t.prepare("POST", "/cron", {**entry(), "cron": "@every 1s"})
    await t.later("a second later", "scheduler", "$JS.ACK.")


@traced("A cron entry is paused and resumed")
async def cron_pause(t: Trace) -> None:
    await t.prepare("POST", "/cron", entry())
    await t.call("POST", "/cron/c/pause")
    await t.call("POST", "/cron/c/resume")


@traced("A cron entry is triggered")
async def cron_trigger(t: Trace) -> None:
    await t.prepare("POST", "/cron", entry())
    await t.call("POST", "/cron/c/trigger")


@traced("A cron entry is removed")
async def cron_delete(t: Trace) -> None:
    await t.prepare("POST", "/cron", entry())
    await t.call("DELETE", "/cron/c")


# Workflows


def step(name: str) -> dict[str, Any]:
    """Return a job of a workflow."""
    return {"type": name, "args": [], "options": {"queue": "letters"}}


async def _first_ends(t: Trace) -> None:
    [first] = (await t.prepare("POST", "/workers/fetch", fetching()))["jobs"]
    await t.call(
        "POST",
        "/workers/ack",
        {"job_id": first["id"], "worker_id": "w", "result": 1},
        until=("coordinator", "$JS.ACK.KV_ojs.coordinator-steps."),
    )


@traced("A chain is made, and its first step ends", "coordinator")
async def workflow_chain(t: Trace) -> None:
    await t.call("POST", "/workflows", {"type": "chain", "steps": [step("a.one"), step("a.two")]})
    await _first_ends(t)


@traced("A group is made, and one of its jobs ends", "coordinator")
async def workflow_group(t: Trace) -> None:
    await t.call("POST", "/workflows", {"type": "group", "jobs": [step("a.one"), step("a.two")]})
    await _first_ends(t)


@traced("A batch with a callback is made, and its job ends", "coordinator")
async def workflow_batch(t: Trace) -> None:
    callbacks = {"on_complete": step("a.end")}
    await t.call("POST", "/workflows", {"type": "batch", "jobs": [step("a.one")], "callbacks": callbacks})
    await _first_ends(t)


@traced("A workflow is cancelled")
async def workflow_cancel(t: Trace) -> None:
    made = await t.prepare("POST", "/workflows", {"type": "chain", "steps": [step("a.one"), step("a.two")]})
    await t.call("DELETE", f"/workflows/{made['workflow']['id']}")


# Queues, limits and pools


@traced("A queue is made with settings")
async def queue_create(t: Trace) -> None:
    config = {"max_size": 10, "default_retry": {"max_attempts": 4}}
    await t.call("POST", "/queues", {"name": "letters", "config": config})


@traced("A queue is paused and resumed")
async def queue_pause(t: Trace) -> None:
    await t.call("POST", "/queues/letters/pause")
    await t.call("POST", "/queues/letters/resume")


@traced("A queue's settings are changed")
async def queue_config(t: Trace) -> None:
    await t.call("PUT", "/queues/letters/config", {"max_size": 10, "allowed_job_types": ["a.*"]})


@traced("A queue is given limits, and loses them")
async def queue_limits(t: Trace) -> None:
    await t.call("PUT", "/admin/queues/letters/rate-limit", {"concurrency": 1, "rate": {"limit": 2, "period": "PT1S"}})
    await t.call("PUT", "/queues/letters/config", {"concurrency": None, "rate_limit": None})


@traced("A key's limit is overridden, and the override removed")
async def limit_override(t: Trace) -> None:
    await pushed(t, rate_limit={"key": "k", "concurrency": 1})
    await t.call("PUT", "/rate-limits/k/override", {"concurrency": 2})
    await t.call("DELETE", "/rate-limits/k/override")


@traced("A pool is made and removed")
async def pool(t: Trace) -> None:
    await t.call("PUT", "/admin/pools/p", POOL)
    await t.call("DELETE", "/admin/pools/p")


@traced("Maintenance begins and ends")
async def maintenance(t: Trace) -> None:
    await t.call("POST", "/admin/maintenance", {"enabled": True, "reason": "upgrade"})
    await t.call("POST", "/admin/maintenance", {"enabled": False})


# Schemas, webhooks and keys


@traced("A schema is registered, and removed")
async def schema(t: Trace) -> None:
    await t.call("PUT", "/admin/schemas/email.send/1", SCHEMA)
    await t.call("DELETE", "/schemas/email.send/1")


@traced("A webhook is made, paused and removed")
async def webhook(t: Trace) -> None:
    wanted = {"url": "http://127.0.0.1:9/", "events": ["queue.paused"], "secret": "some-secret"}
    made = (await t.call("POST", "/webhooks/subscriptions", wanted))["subscription"]["id"]
    await t.call("PATCH", f"/webhooks/subscriptions/{made}", {"active": False})
    await t.call("DELETE", f"/webhooks/subscriptions/{made}")


@traced("A key is made, rotated and revoked", system="keys")
async def key(t: Trace) -> None:
    await t.prepare("POST", "/admin/keys", {"name": "first", "role": "admin"})
    made = (await t.call("POST", "/admin/keys", {"name": "n", "role": "producer"}))["key"]["id"]
    await t.call("POST", f"/admin/keys/{made}/rotate")
    await t.call("DELETE", f"/admin/keys/{made}")


@traced("A request without a key", system="keys")
async def key_missing(t: Trace) -> None:
    t.key = None
    await t.call("POST", "/jobs", job())


@traced("A webhook's delivery", "webhooks")
async def webhook_delivery(t: Trace) -> None:
    with WebhookTarget.started() as target:
        await t.prepare(
            "POST", "/webhooks/subscriptions", {"url": target.url, "events": ["queue.paused"], "secret": "some-secret"}
        )
        await t.call("POST", "/queues/letters/pause", until=("webhooks", "$JS.ACK."))


@traced("A fetch from a queue that has a consumer", system="durables")
async def fetch_durable(t: Trace) -> None:
    await held(t)
    await pushed(t)
    await t.call("POST", "/workers/fetch", fetching())


@traced("A fetch of ten from a queue that has a consumer", system="durables")
async def fetch_durable_many(t: Trace) -> None:
    await held(t)
    for _ in range(10):
        await pushed(t)
    await t.call("POST", "/workers/fetch", fetching(count=10))
