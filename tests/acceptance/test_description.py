"""What the running server answers is what its own description says."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable
from typing import Any, Final

import pytest

from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_features.all import FEATURES
from ojs_gateway.openapi.document import document
from ojs_gateway.routes import parts
from script.pages.endpoints import own_description, reference
from support.described import Described
from support.system import System, send
from support.waiting import until

API: Final = "/ojs/v1"
JOB: Final[dict[str, Any]] = {"type": "a.b", "args": [1, {"x": None}]}
NOBODY: Final = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
ELSEWHERE: Final = {
    ("GET", "/metrics"),  # text
    ("GET", "/ojs/v1/events/stream"),  # streams
    ("GET", "/ojs/v1/jobs/{job_id}/events"),
    ("GET", "/ojs/v1/jobs/{job_id}/progress/stream"),
    ("GET", "/ojs/v1/queues/{queue}/events"),
    ("GET", "/ojs/v1/admin/stats/stream"),
    ("GET", "/ojs/v1/ws"),
}
KEYED: Final = {
    ("GET", "/ojs/v1/admin/keys"),  # a key would shut the door to other tests: tests/acceptance/test_keys.py
    ("POST", "/ojs/v1/admin/keys"),
    ("GET", "/ojs/v1/admin/keys/{key_id}"),
    ("DELETE", "/ojs/v1/admin/keys/{key_id}"),
    ("POST", "/ojs/v1/admin/keys/{key_id}/rotate"),
    ("PUT", "/ojs/v1/admin/keys/{key_id}/limits"),
    ("GET", "/ojs/v1/session"),
    ("POST", "/ojs/v1/session"),
    ("DELETE", "/ojs/v1/session"),
}


class Client:
    """Sends requests to the shared system and holds every answer to the description."""

    def __init__(self, system: System, described: Described) -> None:
        self._system = system
        self._described = described
        self.put_record = system.put_record

    def __call__(self, method: str, path: str, body: object = None, status: int = 200) -> Any:
        path = path[1:] if path.startswith("//") else API + path
        answer = self._system.request(method, path, body)
        assert answer.status == status, (method, path, answer)
        self._described.check(method, path, answer, strict=True)
        if body is not None and status < 207:  # 207: an item of it was refused
            self._described.check_request(method, path, body)
        return answer.body

    def push(self, queue: str = "de.a", **options: Any) -> str:
        return str(self("POST", "/jobs", {**JOB, "options": {"queue": queue, **options}}, 201)["job"]["id"])

    def fetch(self, queue: str = "de.a") -> list[dict[str, Any]]:
        body = {"queues": [queue], "worker_id": "w", "count": 10, "wait_ms": 0, "visibility_timeout_ms": 30_000}
        jobs: list[dict[str, Any]] = self("POST", "/workers/fetch", body)["jobs"]
        return jobs

    def fail(self, queue: str = "de.a", **options: Any) -> str:
        """A job that has failed for good."""
        job_id = self.push(queue, retry={"max_attempts": 1}, **options)
        assert [job["id"] for job in self.fetch(queue)] == [job_id]
        error = {"message": "no", "type": "E", "details": {"a": 1}, "backtrace": ["x"], "action": "DEAD_LETTER"}
        self("POST", "/workers/nack", {"job_id": job_id, "worker_id": "w", "attempt": 1, "error": error})
        return job_id


@pytest.fixture(scope="module")
def described(_shared_system: System) -> Described:
    return Described.by(_shared_system.url)


@pytest.fixture
def client(system: System, described: Described) -> Client:
    return Client(system, described)


def test_the_description_of_a_running_server_is_that_which_unit_tests_hold_to_openapi(described: Described) -> None:
    assert described.document == json.loads(document(parts(FEATURES), DEFAULT_LIMITS, test_mode=True))


def test_the_page_of_endpoints_can_be_made_from_a_running_server(system: System) -> None:
    assert reference(own_description(system.url)) == reference(own_description())


def jobs(client: Client) -> None:
    everything = {
        **JOB,
        "specversion": "1.0",
        "id": "01a461a8-1a2b-7c3d-8e4f-5a6b7c8d9e01",
        "meta": {"m": 1},
        "schema": "urn:x",
        "own": {"kept": True},
        "options": {
            "queue": "de.all",
            "priority": "high",
            "tags": ["t"],
            "delay_until": "+PT1H",
            "expires_at": "2099-01-01T00:00:00Z",
            "retry": {"max_attempts": 2, "initial_interval": "PT2S", "nonRetryableErrors": ["x"]},
            "timeout": 30,
            "total_timeout_ms": 60_000,
            "result_ttl": 60,
            "result_size_limit": 1_000,
            "unique": {"keys": ["type"], "period": "PT1H", "on_conflict": "ignore"},
            "rate_limit": {"key": "de-key", "concurrency": 2},
            "metadata": {"n": 1},
        },
    }
    full = client("POST", "/jobs", {name: value for name, value in everything.items() if name != "own"}, 201)["job"]
    other = {**everything, "id": NOBODY}
    del other["own"]
    assert client("POST", "/jobs", other)["deduplicated"] is True
    client("POST", "/jobs", {**JOB, "id": full["id"]}, 409)
    client("POST", "/jobs", {"type": "No Name", "args": []}, 400)
    client("POST", "/jobs", {**JOB, "options": {"retry": {"max_attempts": -1}}}, 422)
    client("GET", f"/jobs/{NOBODY}", status=404)
    client("GET", f"/jobs/{full['id']}")
    client("GET", f"/admin/jobs/{full['id']}")
    client("PATCH", f"/jobs/{full['id']}", {"priority": 5})
    client("GET", "/jobs?queue=de.all&state=scheduled&tag=t&sort=priority&order=asc&limit=1")
    client("GET", "/jobs?state=wrong", status=400)
    client("GET", "/jobs?meta.m=1")
    client("GET", "/admin/jobs?page=1&per_page=1")
    client("DELETE", f"/jobs/{full['id']}", {"reason": "not needed"})
    client("DELETE", f"/jobs/{full['id']}", status=409)
    client("POST", f"/admin/jobs/{client.push('de.c')}/cancel", {"reason": "x"})
    client("POST", f"/jobs/{client.push('de.p', pending=True)}/activate")
    dead = client.fail()
    client("GET", f"/jobs/{dead}/retries")
    client("GET", f"/jobs/{dead}/result")
    client("GET", f"/admin/jobs/{dead}")
    client("GET", f"/admin/jobs/{dead}/trace")
    client("GET", f"/events/{dead}/history")
    first = client("GET", f"/jobs/{dead}/history?limit=2")
    client("GET", f"/jobs/{dead}/history?cursor={first['next_cursor']}")
    client("GET", f"/jobs/{dead}/history?cursor=x", status=400)
    client("GET", f"/jobs/{NOBODY}/history", status=404)
    client("GET", f"/jobs/{dead}/lineage")
    client("GET", f"/debug/jobs/{dead}/traces")
    client("GET", f"/debug/jobs/{dead}/traces/1")
    client("GET", f"/debug/jobs/{dead}/traces/x", status=400)
    client("GET", f"/debug/jobs/{dead}/traces/2", status=404)
    client("GET", "/debug/failures?limit=1&queue=de.a")
    client("GET", "/debug/failures?cursor=x", status=400)
    client("GET", "/debug/status")
    client("GET", "/unique-jobs")
    client("POST", "/jobs/results", {"ids": [dead, "nothing"]})
    client("GET", f"/jobs/{dead}/progress")
    client("GET", f"/jobs/{NOBODY}/progress", status=404)
    client("PUT", f"/jobs/{NOBODY}/progress", {"progress": 0.5}, 404)
    running = client.push("de.pr")
    assert len(client.fetch("de.pr")) == 1
    whole = {"progress": 0.5, "message": "half", "data": {"rows": 7}, "worker_id": "w", "attempt": 1}
    assert client("PUT", f"/jobs/{running}/progress", whole)["accepted"] is True
    client("POST", "/workers/progress", {"job_id": running, "percentage": 60})
    client("PUT", f"/jobs/{running}/progress", {"message": "no number"}, 400)
    client("GET", f"/jobs/{running}/progress")
    for method, path in (("PUT", f"/jobs/{running}/checkpoint"), ("POST", f"/jobs/{running}/checkpoint")):
        client(method, path, {"state": {"step": 1}, "worker_id": "w", "attempt": 1})
    for method in ("POST", "PUT"):
        client(method, f"/checkpoints/{running}", {"state": [1], "step_index": 2, "metadata": {"attempt": "1"}})
    for path in (f"/jobs/{running}/checkpoint", f"/checkpoints/{running}"):
        client("PUT", path, {"state": {}})
        client("GET", path)
        client("GET", f"/checkpoints/{running}/resume")
        client("DELETE", path)
    client("GET", f"/checkpoints/{running}/resume")
    client("GET", f"/jobs/{running}/checkpoint", status=404)
    client("PUT", f"/jobs/{running}/checkpoint", {"state": 1, "worker_id": "another"}, 409)
    client("PUT", f"/jobs/{running}/checkpoint", {}, 400)
    client("POST", f"/admin/jobs/{dead}/retry")
    client("GET", f"/admin/jobs/{dead}/why")
    client("POST", f"/admin/jobs/{dead}/run", status=409)
    client("POST", f"/admin/jobs/{client.push(delay_until='+PT1H')}/run")
    client("GET", f"/jobs/{dead}/result?wait=true&timeout=0", status=408)
    client.fetch()


def bulk(client: Client) -> None:
    client("POST", "/jobs/batch", {"jobs": [JOB, JOB]}, 201)
    client("POST", "/jobs/batch", {"jobs": [JOB, {"type": "a.b"}]}, 400)
    client("POST", "/jobs/bulk", {"jobs": [JOB, {"type": "a.b"}], "atomicity": "partial"}, 207)
    client("POST", "/jobs/bulk", {"jobs": [{"type": "a.b"}]}, 422)
    done = client("POST", "/jobs/bulk", {"jobs": [{**JOB, "options": {"queue": "de.b"}}], "idempotency_key": "k"}, 201)
    one = done["items"][0]["job"]["id"]
    client("POST", "/jobs/bulk/cancel", {"filter": {"queue": "de.b", "state": ["available"]}, "dry_run": True})
    client("POST", "/jobs/bulk/cancel", {"job_ids": [one, NOBODY]}, 207)
    client("POST", "/jobs/bulk/retry", {"job_ids": [client.fail("de.b")]})
    client("POST", "/jobs/bulk/retry", {"job_ids": [one]}, 422)
    client("POST", "/jobs/bulk/delete", {"filter": {"queue": "de.b", "older_than": "PT1H"}, "limit": 1})
    client.fetch("de.b")
    ranked = {"filter": {"queue": "de.b", "tag": "t", "error_type": "E", "worker": "w"}, "priority": 3}
    client("POST", "/jobs/bulk/reprioritise", ranked)
    client("POST", "/admin/jobs/bulk/reprioritise", {**ranked, "confirm": True})
    for operation in ("retry", "cancel", "delete"):
        client("POST", f"/admin/jobs/bulk/{operation}", {"filter": {"queue": "de.b"}, "confirm": True})
        client("POST", f"/admin/jobs/bulk/{operation}", {"filter": {}}, 400)


def workers(client: Client) -> None:
    report = {"worker_id": "w", "queues": ["de.a"], "hostname": "h", "pid": 1, "concurrency": 2, "labels": {"a": "b"}}
    client("POST", "/workers/register", report)
    acked, together, requeued, failed = (client.push("de.w") for _ in range(4))
    held = client.fetch("de.w")
    assert len(held) == 4
    client("POST", "/workers/heartbeat", {**report, "active_jobs": [acked], "state": "running"})
    client("DELETE", f"/jobs/{client.push('de.w2')}")
    client("GET", "/admin/workers/w")
    client("GET", "/workers/w/health")
    client("POST", "/workers/ack", {"job_id": acked, "worker_id": "w", "result": {"ok": True}})
    client("POST", "/workers/ack", {"job_id": acked}, 409)
    client("POST", "/workers/ack", {"job_id": NOBODY}, 404)
    client("POST", "/workers/ack", {}, 400)
    client("POST", "/workers/acks", {"worker_id": "w", "jobs": [{"job_id": together, "result": 1}]})
    client("POST", "/workers/acks", {"worker_id": "w", "jobs": [{"job_id": together}, {"job_id": NOBODY}]}, 207)
    client("POST", "/workers/acks", {"jobs": []}, 400)
    client("POST", "/workers/fetch", {"queues": ["de.w"], "worker_id": "w", "acks": [{"job_id": together}, {"job_id": NOBODY}]})
    client("GET", f"/jobs/{acked}/result")
    client("POST", "/workers/nack", {"job_id": requeued, "requeue": True})
    client("POST", f"/jobs/{failed}/nack", {"error": "plain words"})
    client("POST", "/workers/fetch", {"queues": []}, 400)
    client("GET", "/admin/workers?state=running&limit=1")
    client("GET", "/workers")
    client("POST", "/admin/workers/w/quiet")
    client("POST", "/admin/workers/w/directive", {"directive": "running"})
    client("POST", "/admin/workers/directive", {"directive": "quiet"})
    client("DELETE", "/admin/workers/w", status=409)
    client("DELETE", "/admin/workers/nobody", status=404)
    client("POST", "/workers/deregister", {"worker_id": "w", "reason": "signal"})


def queues(client: Client) -> None:
    settings = {
        "max_size": 10,
        "overflow_policy": "reject",
        "warning_threshold": 0.5,
        "concurrency": 3,
        "rate_limit": {"limit": 5, "period": "PT1M"},
        "visibility_timeout": 60,
        "default_timeout": "PT2M",
        "default_retry": {"max_attempts": 4},
        "retention": {"completed": "P3D"},
        "allowed_job_types": ["a.*"],
        "starvation_prevention": {"enabled": True, "rotation_interval": "PT1M"},
        "strict_pause": True,
        "schema_validation": "off",
    }
    client("POST", "/queues", {"name": "de.q", "config": settings}, 201)
    client("POST", "/queues", {"name": "de.q"}, 409)
    client("PUT", "/queues/de.q/config", {"max_size": 1, "retention": None, "concurrency": None, "rate_limit": None})
    client("PUT", "/queues/de.q/config", {"max_size_bytes": 1}, 422)
    client("GET", "/queues/_default/config")
    client.push("de.q")
    client("POST", "/jobs", {**JOB, "options": {"queue": "de.q"}}, 429)
    client("POST", "/jobs", {"type": "b.c", "args": [], "options": {"queue": "de.q"}}, 400)
    for path in ("/queues/de.q", "/queues/de.q/stats", "/queues/de.q/priority-stats", "/queues", "/admin/queues?page=1"):
        client("GET", path)
    client("GET", "/queues/de.none", status=404)
    client("POST", "/queues/de.q/pause")
    client("GET", "/queues/de.q")
    client("POST", "/queues/de.q/resume")
    client("PUT", "/admin/queues/de.q/rate-limit", {"concurrency": 1, "rate": {"limit": 2, "period": "PT1S"}})
    client("DELETE", "/queues/de.q", status=409)
    client("POST", "/queues/de.q/purge")
    client(
        "DELETE", "/admin/queues/de.q/jobs", {"states": ["cancelled"], "older_than": "2020-01-01T00:00:00Z", "confirm": True}
    )
    client("DELETE", "/queues/de.q?strategy=discard")


def dead_letters(client: Client) -> None:
    first, second, third = client.fail("de.d"), client.fail("de.d"), client.fail("de.d")
    client("GET", "/dead-letter?queue=de.d&error_type=E&limit=2")
    client("GET", "/admin/dead-letter")
    client("GET", "/dead-letter/stats?queue=de.d")
    client("GET", f"/dead-letter/{first}")
    client("GET", f"/dead-letter/{NOBODY}", status=404)
    override = {"queue": "de.d2", "meta": {"again": 1}, "args": [2], "retry": {"max_attempts": 2}}
    client("POST", f"/dead-letter/{first}/retry", {"override": override})
    client("DELETE", f"/dead-letter/{second}")
    client("DELETE", f"/admin/dead-letter/{third}", status=204)
    client("POST", "/dead-letter/retry", {"filter": {"queue": "de.d"}, "confirm": True})
    client("POST", "/dead-letter/purge", {"filter": {"queue": "de.d"}, "confirm": True})
    client("DELETE", "/dead-letter", {"filter": {"queue": "de.d", "older_than": "1h"}, "confirm": True})
    client("DELETE", "/dead-letter", {}, 400)


def crons(client: Client) -> None:
    entry = {"name": "de-cron", "cron": "0 9 * * *", **JOB, "options": {"queue": "de.cron"}, "description": "d"}
    client("POST", "/cron", entry, 201)
    template = {**JOB, "options": {"queue": "de.cron"}}
    client("POST", "/cron", {"name": "de-cron", "expression": "@hourly", "timezone": "Europe/Zurich", "job_template": template})
    client("POST", "/cron", {"name": "de-cron", "cron": "never", **JOB}, 400)
    client("GET", "/cron?enabled=true&limit=1")
    client("GET", "/crons?page=1")
    client("GET", "/cron/de-cron")
    client("GET", "/cron/none", status=404)
    client("PATCH", "/cron/de-cron", {"enabled": True})
    client("PATCH", "/cron/de-cron", {"overlap_policy": "allow", "options": {"priority": 1}})
    client("POST", "/cron/de-cron/trigger", status=201)
    client("GET", "/cron/de-cron/history")
    client("GET", "/cron/de-cron/next?count=2")
    client("GET", "/crons/de-cron/next?count=x", status=400)
    client("POST", "/admin/cron/preview", {"cron": "0 9 * * *", "timezone": "Europe/Zurich", "count": 3})
    client("POST", "/cron/de-cron/pause")
    client("POST", "/cron/de-cron/resume")
    client("DELETE", "/cron/de-cron")


def workflows(client: Client) -> None:
    def step(name: str, **more: Any) -> dict[str, Any]:
        return {"type": name, "args": [], "options": {"queue": "de.wf", "retry": {"max_attempts": 1}}, **more}

    batch = {"type": "batch", "jobs": [step("w.a")], "callbacks": {"on_complete": step("w.b")}}
    made = client("POST", "/workflows", {"type": "chain", "name": "n", "steps": [step("w.x"), batch]}, 201)["workflow"]
    client("POST", "/workflows", {"type": "chain", "steps": []}, 400)
    [job] = client.fetch("de.wf")
    client("POST", "/workers/nack", {"job_id": job["id"], "error": {"message": "no"}})

    def failed() -> bool:
        return bool(client("GET", f"/workflows/{made['id']}")["workflow"]["state"] == "failed")

    until(failed)
    client("POST", f"/workflows/{made['id']}/retry")
    client("GET", f"/workflows/{made['id']}/progress")
    client("GET", f"/workflows/{made['id']}?limit=1")
    client("GET", f"/workflows/{NOBODY}", status=404)
    client("GET", "/workflows?limit=1")
    client("DELETE", f"/workflows/{made['id']}")
    client("DELETE", f"/workflows/{made['id']}", status=409)
    untyped = [step("w.a", id="a"), step("w.b", id="b", depends_on=["a"])]
    client("POST", "/workflows", {"name": "dag", "steps": untyped}, 201)


def limits(client: Client) -> None:
    rates = {"rate": {"limit": 1, "period": "PT1H"}, "throttle": {"limit": 1, "period": "PT1S"}}
    client.push("de.l", rate_limit={"key": "de-limit", "concurrency": 1, **rates})
    [held] = client.fetch("de.l")
    closed = {"message": "later", "rate_limit_until": "2099-01-01T00:00:00Z"}
    client("POST", "/workers/nack", {"job_id": held["id"], "error": closed})
    client("GET", "/rate-limits/de-limit")
    client("GET", "/rate-limits/none", status=404)
    client("PUT", "/rate-limits/de-limit/override", {"concurrency": 0, **rates, "expires_at": "2099-01-01T00:00:00Z"})
    client("GET", "/rate-limits")
    client("DELETE", "/rate-limits/de-limit/override")
    client("PUT", "/admin/pools/de-pool", {"strategy": "weighted", "queues": {"de.a": {"weight": 2}, "de.b": {}}}, 201)
    client("PUT", "/admin/pools/de-pool", {"queues": ["de.a"]})
    client("PUT", "/admin/pools/de-pool", {"queues": []}, 400)
    client("GET", "/admin/pools")
    client("GET", "/admin/pools/de-pool")
    client("GET", "/admin/scheduling/stats")
    client("DELETE", "/admin/pools/de-pool")
    client("DELETE", "/admin/pools/de-pool", status=404)


def schemas(client: Client) -> None:
    document = {"type": "array", "items": [{"type": "string"}]}
    body = {"uri": "urn:de:1", "type": "de.schema", "version": 1, "schema": document, "validation": {"mode": "warn"}}
    client("POST", "/schemas", body | {"compatibility": "full"}, 201)
    client("POST", "/schemas", body, 409)
    client("POST", "/schemas", {"job_type": "de.schema", "version": "2.0.0", "schema": {"$ref": "http://x"}}, 400)
    client("PUT", "/admin/schemas/de.schema/2.0.0", {"args_schema": document, "validation": {}}, 201)
    client("PUT", "/admin/schemas/de.schema/2.0.0", {"schema": document, "validation": {"mode": "strict"}})
    client("GET", "/schemas?limit=1")
    client("GET", "/schemas/urn:de:1")
    client("GET", "/schemas/de.none", status=404)
    client("GET", "/schemas/de.schema/versions")
    client("GET", "/schemas/de.schema/1")
    client("GET", "/admin/schemas")
    client("GET", "/admin/schemas/de.schema")
    client("GET", "/admin/schemas/de.schema/2.0.0")
    client("POST", "/jobs", {"type": "de.schema", "args": [1]}, 400)
    client("DELETE", "/schemas/de.schema/2.0.0")
    client("DELETE", "/schemas/de.schema/2.0.0", status=404)
    client("POST", "/jobs", {"type": "de.schema", "args": [1]}, 201)
    client("DELETE", "/schemas/urn:de:1")


def webhooks(client: Client) -> None:
    nowhere = {"url": "https://127.0.0.1:9/", "events": ["job.nothing"]}
    full = {**nowhere, "filter": {"queues": ["de.a"], "job_types": ["a.b"]}, "metadata": {"a": 1}, "secret": "some-secret"}
    made = client("POST", "/webhooks/subscriptions", full, 201)["subscription"]["id"]
    client("POST", "/webhooks/subscriptions", {"url": "http://a.b/", "events": ["*"]}, 400)
    client("GET", "/webhooks/subscriptions?limit=1")
    client("GET", f"/webhooks/subscriptions/{made}")
    client("PATCH", f"/webhooks/subscriptions/{made}", {"active": False})
    client("POST", f"/webhooks/subscriptions/{made}/test")
    client("POST", f"/webhooks/subscriptions/{made}/rotate-secret")
    lost = {"id": "del_1", "subscription_id": made, "event_id": "evt_1", "event_type": "job.failed", "event": {}}
    lost |= {"status": "dead", "attempts": 8, "created_at": 1, "updated_at": 2, "last_status": 500}
    client.put_record(f"delivery.{made}.del_1", json.dumps(lost).encode())
    client("GET", f"/webhooks/deliveries?subscription_id={made}&status=dead")
    client("GET", f"/webhooks/subscriptions/{made}/deliveries")
    client("GET", "/webhooks/deliveries/del_1")
    client("POST", "/webhooks/deliveries/del_1/retry")
    client("DELETE", f"/webhooks/subscriptions/{made}")
    client("GET", f"/webhooks/subscriptions/{made}", status=404)


def unreadable(client: Client) -> None:
    client.put_record("queue.torn", b"[]")
    client("GET", "/admin/unreadable?kind=queue")
    client("DELETE", "/admin/unreadable/queue/torn")
    client("DELETE", "/admin/unreadable/queue/torn", status=404)


def system_itself(client: Client) -> None:
    for path in (
        "//ojs/manifest",
        "//healthz",
        "/health",
        "/metrics",
        "/openapi.json",
        "/admin/stats",
        "/admin/findings",
        "/admin/services",
        "/admin/stats?detail=true",
        "/admin/stats?queue=de.a",
        "/admin/stats/history?period=1h&since=2d",
        "/queues/de.a/stats/history?period=1m",
    ):
        client("GET", path)
    client("GET", "/metrics?format=xml", status=400)
    client("POST", "/admin/system/maintenance", {"enabled": True, "reason": "r", "duration": "PT1H", "estimated_duration": 60})
    client("GET", "/admin/system/maintenance")
    client("GET", "/admin/audit?operation=setMaintenance&limit=1")
    client("POST", "/admin/system/maintenance", {"enabled": False})
    client("GET", "/admin/system/config")
    client("GET", "/middleware")
    client("GET", "/events?types=job.*&limit=5")
    client("GET", "/events?type=job.completed&page=1&per_page=50")
    client("GET", "/events?types=!", status=400)
    client("POST", "/admin/reset")


WALKS: Final[tuple[Callable[[Client], None], ...]] = (
    jobs,
    bulk,
    workers,
    queues,
    dead_letters,
    crons,
    workflows,
    limits,
    schemas,
    webhooks,
    unreadable,
    system_itself,
)


def test_every_operation_answers_as_it_is_described(client: Client, described: Described) -> None:
    for walk in WALKS:
        walk(client)
    own = {key for key, one in described.operations.items() if not one.get("description", "").startswith("Another name of")}
    met = {(method, path) for method, path, status in described.answered if status < 300}
    assert own - met - ELSEWHERE - KEYED == {
        ("DELETE", "/ojs/v1/admin/workers/{worker_id}")
    }  # of a worker that is silent for 30 s


def test_streams_and_texts_have_the_media_type_of_their_description(system: System, described: Described) -> None:
    job_id = send("POST", f"{system.url}{API}/jobs", JOB).body["job"]["id"]
    paths = {template: template.format(job_id=job_id, queue="default") for _, template in ELSEWHERE if "/ws" not in template}
    for template, path in paths.items():
        with urllib.request.urlopen(system.url + path, timeout=60) as answer:
            assert [answer.headers["Content-Type"]] == list(
                described.operations["GET", template]["responses"]["200"]["content"]
            )
    assert "101" in described.operations["GET", f"{API}/ws"]["responses"]
