"""Queues over HTTP: configuration in layers, pause, purge and deletion."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import pytest

from support.examples import examples
from support.system import Processes, System, send
from support.waiting import until


def refusal(system: System, queue: str, status: int, job_type: str = "test.queue") -> Any:
    """Return the error of a push that is refused."""
    job = {"type": job_type, "args": [], "options": {"queue": queue}}
    return system.call("POST", "/jobs", job, status)["error"]


def test_a_paused_queue_takes_jobs_and_hands_none_out(system: System) -> None:
    view = system.call("POST", "/queues/mail/pause")
    assert (view["queue"]["name"], view["queue"]["paused"], view["queue"]["status"]) == ("mail", True, "paused")
    assert view["paused_at"].endswith("Z")
    job = system.push("test.queue", queue="mail")
    assert job["state"] == "available"
    assert system.fetch("mail") == []
    listed = next(queue for queue in system.call("GET", "/queues")["queues"] if queue["name"] == "mail")
    assert (listed["status"], listed["paused"]) == ("paused", True)
    assert system.call("GET", "/queues/mail/stats")["queue"]["paused"] is True
    resumed = system.call("POST", "/queues/mail/resume")
    assert (resumed["queue"]["status"], "paused_at" in resumed) == ("active", False)
    assert [one["id"] for one in system.fetch("mail")] == [job["id"]]
    assert system.call("GET", "/queues/mail/stats")["queue"]["paused"] is False


def test_clients_of_the_binding_get_the_queues_name_as_text(system: System) -> None:
    connection = http.client.HTTPConnection(urlsplit(system.url).netloc)
    connection.request("POST", "/ojs/v1/queues/mail/pause", b"{}", {"OJS-Version": "1.0", "Content-Type": "application/json"})
    body = json.load(connection.getresponse())
    connection.close()
    assert (body["queue"], body["status"]) == ("mail", "paused")


def test_pause_and_resume_are_events(system: System) -> None:
    for action in ("pause", "resume"):
        system.call("POST", f"/queues/mail/{action}")
    events = system.call("GET", "/events?types=queue.*")["events"]
    assert [(event["type"], event["subject"], event["data"]["queue"]) for event in events] == [
        ("queue.paused", "mail", "mail"),
        ("queue.resumed", "mail", "mail"),
    ]


def test_a_queue_is_created_once_with_its_configuration(system: System) -> None:
    body = {
        "name": "pay",
        "config": {
            "default_timeout": 60,
            "visibility_timeout": 300,
            "retention": {"completed": "P3D"},
            "allowed_job_types": ["pay.*"],
            "default_retry": {"max_attempts": 5, "initial_interval": "PT5S"},
        },
    }
    made = system.call("POST", "/queues", body, 201)
    assert (made["name"], made["status"]) == ("pay", "active")
    assert made["config"]["retention"] == {"completed": "PT72H"}
    assert made["config"]["default_retry"]["max_attempts"] == 5
    assert system.call("POST", "/queues", body, 409)["error"]["canonical_code"] == "QUEUE_EXISTS"
    read = system.call("GET", "/queues/pay")
    assert read["config"] == made["config"]
    assert read["depth"] == 0
    assert "pay" in [queue["name"] for queue in system.call("GET", "/queues")["queues"]]

    job = system.push("pay.charge", 1, queue="pay")
    assert (job["timeout_ms"], job["visibility_timeout_ms"], job["max_attempts"]) == (60_000, 300_000, 5)
    own = system.push("pay.charge", 1, queue="pay", timeout_ms=1_000, retry={"max_attempts": 1})
    assert (own["timeout_ms"], own["max_attempts"]) == (1_000, 1)
    refused = refusal(system, "pay", 400, "mail.send")
    assert (refused["code"], refused["details"]["type"]) == ("job_type_not_allowed", "mail.send")
    assert system.call("GET", "/queues/pay")["counts"]["available"] == 2


def test_the_common_policy_lies_below_every_queue_and_changes_no_job_that_is_there(system: System) -> None:
    old = system.push("test.queue", queue="first")
    system.call("PUT", "/queues/_default/config", {"default_timeout": 30, "visibility_timeout": 40})
    system.call("PUT", "/queues/second/config", {"default_timeout": 20})
    assert system.call("GET", "/queues/_default/config")["config"] == {"visibility_timeout": 40, "default_timeout": 30}
    second = system.call("GET", "/queues/second/config")
    assert second["config"] == {"visibility_timeout": 40, "default_timeout": 20}
    assert second["own_config"] == {"default_timeout": 20}
    assert system.push("test.queue", queue="first")["timeout_ms"] == 30_000
    assert system.push("test.queue", queue="second")["timeout_ms"] == 20_000
    assert system.job(old["id"])["timeout_ms"] == old["timeout_ms"]
    system.call("PUT", "/queues/_default/config", {"default_timeout": None})
    assert system.push("test.queue", queue="first")["timeout_ms"] == old["timeout_ms"]


def test_a_strict_queue_refuses_jobs_while_it_is_paused(system: System) -> None:
    system.call("PUT", "/queues/mail/config", {"strict_pause": True})
    system.call("POST", "/queues/mail/pause")
    assert refusal(system, "mail", 422)["code"] == "queue_paused"
    system.call("POST", "/queues/mail/resume")
    system.push("test.queue", queue="mail")


def test_a_queue_with_unfinished_jobs_is_not_deleted_unless_told_what_becomes_of_them(system: System) -> None:
    job = system.push("test.queue", queue="old")
    refused = system.call("DELETE", "/queues/old", None, 409)["error"]
    assert refused["details"] == {"queue": "old", "jobs": 1}
    assert system.push("test.queue", queue="old")["state"] == "available"  # it goes on as before
    assert system.fetch("old")[0]["id"] == job["id"]


def test_discarding_a_queue_discards_what_waits_in_it(system: System) -> None:
    waiting = [system.push("test.queue", queue="old")["id"], system.push("test.queue", queue="old", delay_until="+PT1H")["id"]]
    gone = system.call("DELETE", "/queues/old", {"strategy": "discard"})
    assert (gone["state"], gone["jobs_affected"]) == ("deleted", 2)
    for job_id in waiting:
        job = system.job(job_id)
        assert (job["state"], job["error"]["type"]) == ("discarded", "queue_deleted")
    assert system.push("test.queue", queue="old")["state"] == "available"  # implicitly there again


def test_moving_a_queue_moves_what_waits_and_drains_until_active_jobs_are_done(system: System) -> None:
    active = system.push("test.queue", queue="old")
    assert system.fetch("old")
    later = system.push("test.queue", queue="old", delay_until="+PT1H")
    first, second = system.push("test.queue", queue="old"), system.push("test.queue", queue="old")
    moving = system.call("DELETE", "/queues/old?strategy=move&target_queue=new", None, 202)
    assert (moving["state"], moving["jobs_affected"], moving["jobs_remaining"]) == ("draining", 3, 1)
    assert refusal(system, "old", 422)["code"] == "queue_draining"
    assert [job["id"] for job in system.fetch("new", count=5)] == [first["id"], second["id"]]
    assert system.job(later["id"])["queue"] == "new"
    system.call("POST", "/workers/ack", {"job_id": active["id"]})
    gone = system.call("DELETE", "/queues/old?strategy=move&target_queue=new")
    assert gone["state"] == "deleted"
    assert system.push("test.queue", queue="old")["queue"] == "old"


def test_a_purge_removes_what_waits_or_what_it_is_told_to(system: System) -> None:
    waiting, done = system.push("test.queue", queue="q"), system.push("test.queue", queue="q", priority=5)
    assert [job["id"] for job in system.fetch("q")] == [done["id"]]
    system.call("POST", "/workers/ack", {"job_id": done["id"]})
    system.call("DELETE", "/admin/queues/q/jobs", {"states": ["completed"]}, 400)
    system.call("DELETE", "/admin/queues/q/jobs", {"states": [], "confirm": True}, 400)  # a form where nothing is ticked
    system.call("POST", "/queues/q/purge", {"states": []}, 400)
    system.call("POST", "/queues/q/purge", {"confirm": False}, 400)
    answer = system.call("POST", "/queues/q/purge")
    assert (answer["purged_count"], answer["remaining"]) == (1, 0)
    system.call("GET", f"/jobs/{waiting['id']}", None, 404)
    system.call("GET", f"/jobs/{done['id']}")
    kept = {"states": ["completed"], "older_than": "2020-01-01T00:00:00Z", "confirm": True}
    assert system.call("DELETE", "/admin/queues/q/jobs", kept)["purged_count"] == 0
    assert system.call("DELETE", "/admin/queues/q/jobs", {"states": ["completed"], "confirm": True})["purged_count"] == 1
    system.call("GET", f"/jobs/{done['id']}", None, 404)
    system.call("DELETE", "/admin/queues/q/jobs", {"states": ["active"], "confirm": True}, 400)


def test_an_unknown_queue_is_not_found(system: System) -> None:
    assert system.call("GET", "/queues/nobodys", None, 404)["error"]["details"]["resource_type"] == "queue"
    system.call("DELETE", "/queues/nobodys", None, 404)
    assert system.call("POST", "/queues/nobodys/resume")["queue"]["paused"] is False


@pytest.mark.slow
def test_a_pause_through_one_gateway_holds_on_the_other_at_once(processes: Processes) -> None:
    processes.start("scheduler").ready()
    urls = [processes.start("gateway").ready()["url"] for _ in range(2)]

    def ask(gateway: int, method: str, path: str, body: object = None) -> Any:
        answer = send(method, f"{urls[gateway]}/ojs/v1{path}", body)
        assert answer.status < 300, answer
        return answer.body

    def fetched(gateway: int) -> list[Any]:
        jobs: list[Any] = ask(gateway, "POST", "/workers/fetch", {"queues": ["q"], "wait_ms": 0})["jobs"]
        return jobs

    for _ in range(examples(10, least=4)):
        for _ in range(2):
            ask(0, "POST", "/jobs", {"type": "test.pause", "args": [], "options": {"queue": "q"}})
        assert fetched(1)  # its durable is in use
        ask(0, "POST", "/queues/q/pause")
        assert fetched(1) == []
        assert fetched(0) == []
        ask(1, "POST", "/queues/q/resume")
        assert until(lambda: fetched(0), 3)


def test_a_full_queue_refuses_with_its_numbers_and_warns_before(system: System) -> None:
    bounds = {"backpressure": {"max_depth": 4, "strategy": "reject", "warning_threshold": 0.5}}
    assert system.call("PUT", "/admin/queues/full/config", bounds)["config"]["max_size"] == 4
    pressures = []
    for _ in range(4):
        answer = system.request("POST", "/ojs/v1/jobs", {"type": "test.full", "args": [], "options": {"queue": "full"}})
        assert answer.status == 201
        pressures.append(answer.headers.get("X-OJS-Queue-Pressure"))
    assert pressures == [None, "0.50", "0.75", "1.00"]
    refused = system.request("POST", "/ojs/v1/jobs", {"type": "test.full", "args": [], "options": {"queue": "full"}})
    assert refused.status == 429
    assert (refused.body["error"]["code"], refused.body["error"]["retryable"]) == ("QUEUE_FULL", True)
    assert (refused.headers["X-OJS-Queue-Depth"], refused.headers["X-OJS-Queue-Bound"]) == ("4", "4")
    assert int(refused.headers["Retry-After"]) > 0
    stats = system.call("GET", "/queues/full/stats")["stats"]
    assert (stats["depth"], stats["max_depth"], stats["pressure"]) == (4, 4, 1.0)
    [event] = system.call("GET", "/events?types=backpressure.rejected")["events"]
    assert event["data"] == {"queue": "full", "depth": 4, "bound": 4, "strategy": "reject", "job_type": "test.full"}
    system.call("PUT", "/queues/full/config", {"max_size": None})
    system.push("test.queue", queue="full")


def test_a_purge_or_a_cancellation_makes_room_at_once(system: System) -> None:
    system.call("PUT", "/queues/full/config", {"max_size": 3})

    def pushed() -> tuple[int, str | None]:
        answer = system.request("POST", "/ojs/v1/jobs", {"type": "test.full", "args": [], "options": {"queue": "full"}})
        return answer.status, answer.headers.get("X-OJS-Queue-Depth")

    assert [pushed() for _ in range(4)] == [(201, None), (201, None), (201, "3"), (429, "3")]
    assert system.call("POST", "/queues/full/purge")["purged_count"] == 3
    assert [pushed() for _ in range(4)] == [(201, None), (201, None), (201, "3"), (429, "3")]
    one = system.call("GET", "/jobs?queue=full&state=available&limit=1")["jobs"][0]["id"]
    system.call("DELETE", f"/jobs/{one}")
    assert system.call("GET", "/queues/full/stats")["stats"]["depth"] == 2
    assert [pushed() for _ in range(2)] == [(201, "3"), (429, "3")]
    assert len(system.fetch("full", count=5)) == 3


def test_a_key_is_limited_shown_and_overridden(system: System) -> None:
    policy = {"key": "tenant:acme", "concurrency": 2}
    jobs = [system.push("test.queue", queue="reports", rate_limit=policy)["id"] for _ in range(4)]
    other = system.push("test.queue", queue="reports")["id"]
    running = [job["id"] for job in system.fetch("reports", count=10)]
    assert running[:2] == jobs[:2]
    assert until(lambda: running if other in running else running.extend(job["id"] for job in system.fetch("reports")))
    view = system.call("GET", "/rate-limits/tenant:acme")
    assert (view["key"], view["concurrency"], view["waiting_count"]) == (
        "tenant:acme",
        {"limit": 2, "active": 2, "available": 0},
        2,
    )
    raised = system.call("PUT", "/rate-limits/tenant:acme", {"concurrency": 3})
    assert raised["override"] == {"concurrency": 3}
    assert [job["id"] for job in until(lambda: system.fetch("reports", count=5))] == jobs[2:3]
    assert [view["key"] for view in system.call("GET", "/rate-limits")["items"]] == ["tenant:acme"]
    system.call("DELETE", "/rate-limits/tenant:acme/override")
    for job_id in jobs[:2]:
        system.call("POST", "/workers/ack", {"job_id": job_id})
    assert [job["id"] for job in until(lambda: system.fetch("reports", count=5))] == jobs[3:]
    for name in ("a", "b"):
        system.call("PUT", f"/rate-limits/{name}", {"concurrency": 1})
    page = system.call("GET", "/rate-limits?limit=2")
    cursor = page["pagination"]["next_cursor"]
    system.call("PUT", "/rate-limits/aa", {"concurrency": 1})  # ahead of the cursor: the walk goes on where it was
    rest = system.call("GET", f"/rate-limits?limit=2&cursor={cursor}")
    assert [[view["key"] for view in one["items"]] for one in (page, rest)] == [["a", "b"], ["tenant:acme"]]
    assert not rest["pagination"]["has_more"]
    for method, path in (
        ("GET", "/rate-limits/nobody"),
        ("DELETE", "/rate-limits/nobody/override"),
        ("GET", "/rate-limits/nobody"),
    ):
        system.call(method, path, None, 404)
    system.call("PUT", "/rate-limits/tenant:acme", {"concurrency": -1}, 400)


def test_a_push_of_a_limited_job_says_what_can_be_told_of_its_limit(system: System) -> None:
    def told(**limit: Any) -> dict[str, str]:
        job = {"type": "a.b", "args": [], "options": {"queue": "told", "rate_limit": limit}}
        headers = system.request("POST", "/ojs/v1/jobs", job).headers
        return {name: value for name, value in headers.items() if name.startswith("X-RateLimit-")}

    rate = {"key": "told", "rate": {"limit": 2, "period": "PT1H"}}
    before = told(**rate)
    assert (before["X-RateLimit-Limit"], before["X-RateLimit-Remaining"]) == ("2", "2")
    assert system.fetch("told")
    assert told(**rate)["X-RateLimit-Remaining"] == "1"
    assert system.fetch("told")
    after = told(**rate)
    assert (after["X-RateLimit-Limit"], after["X-RateLimit-Remaining"]) == ("2", "0")
    assert 3_500 < int(after["X-RateLimit-Reset"]) - int(before["X-RateLimit-Reset"]) < 3_700
    assert told(key="told.at.once", concurrency=3) == {"X-RateLimit-Limit": "3"}
    assert told(key="told.both", concurrency=3, rate={"limit": 2, "period": "PT1H"}) == {"X-RateLimit-Limit": "2"}


def test_a_queues_limit_is_set_by_its_own_path(system: System) -> None:
    view = system.call("PUT", "/admin/queues/slow/rate-limit", {"concurrency": 1, "rate": {"limit": 5, "period": "PT1S"}})
    assert view["config"] == {"concurrency": 1, "rate_limit": {"limit": 5, "period": "PT1S"}}
    first, second = system.push("test.queue", queue="slow")["id"], system.push("test.queue", queue="slow")["id"]
    assert [job["id"] for job in system.fetch("slow", count=5)] == [first]
    assert system.fetch("slow", count=5) == []
    system.call("POST", "/workers/ack", {"job_id": first})
    assert [job["id"] for job in system.fetch("slow", count=5)] == [second]


def test_batch_and_bulk_pushes_are_warned_and_refused_like_single_ones(system: System) -> None:
    system.call("PUT", "/queues/full/config", {"max_size": 4, "warning_threshold": 0.5})
    jobs = [{"type": "test.full", "args": [], "options": {"queue": queue}} for queue in ("plain", "full", "full")]
    taken = system.request("POST", "/ojs/v1/jobs/batch", {"jobs": jobs})
    assert (taken.status, taken.headers["X-OJS-Queue-Pressure"]) == (201, "0.50")
    refused = system.request("POST", "/ojs/v1/jobs/batch", {"jobs": [*jobs, jobs[1]]})
    assert (refused.status, refused.headers["X-OJS-Queue-Bound"]) == (429, "4")
    error = refused.body["error"]
    numbers = {"queue": "full", "depth": 2, "bound": 4, "strategy": "reject"}
    assert error["details"] == numbers
    assert {name: error[name] for name in numbers} == numbers
    assert int(refused.headers["Retry-After"]) > 0

    bulk = system.request("POST", "/ojs/v1/jobs/bulk", {"jobs": jobs})
    assert (bulk.status, bulk.headers["X-OJS-Queue-Pressure"]) == (201, "1.00")
    assert "Retry-After" not in bulk.headers
    partly = system.request("POST", "/ojs/v1/jobs/bulk", {"jobs": jobs})
    assert (partly.status, partly.body["succeeded"]) == (207, 1)
    assert partly.body["items"][1]["error"]["code"] == "QUEUE_FULL"
    assert partly.headers["Retry-After"] == "1"
    whole = system.request("POST", "/ojs/v1/jobs/bulk", {"jobs": jobs, "atomicity": "atomic"})
    assert (whole.status, whole.headers["Retry-After"], whole.headers["X-OJS-Queue-Depth"]) == (422, "1", "4")
    assert [item["error"]["code"] for item in whole.body["items"]] == ["rolled_back", "QUEUE_FULL", "QUEUE_FULL"]


def test_a_workflow_that_a_queue_refuses_says_where_and_when_to_come_back(system: System) -> None:
    system.call("PUT", "/queues/full.w/config", {"max_size": 2, "allowed_job_types": ["ok.*"]})
    group = {"type": "group", "jobs": [{"type": "ok.a", "args": [], "options": {"queue": "full.w"}}] * 2}
    made = system.request("POST", "/ojs/v1/workflows", group)
    assert (made.status, made.headers["X-OJS-Queue-Pressure"]) == (201, "1.00")
    refused = system.request("POST", "/ojs/v1/workflows", group)
    assert (refused.status, refused.headers["Retry-After"], refused.headers["X-OJS-Queue-Bound"]) == (429, "1", "2")
    chain = {"type": "chain", "steps": [group["jobs"][0], {"type": "bad.b", "args": [], "options": {"queue": "full.w"}}]}
    error = system.call("POST", "/workflows", chain, 400)["error"]
    assert (error["code"], error["details"]["field"]) == ("job_type_not_allowed", "$.steps[1]")
    cron = {"name": "bad", "cron": "0 0 1 1 *", "type": "bad.c", "options": {"queue": "full.w"}}
    assert system.call("POST", "/cron", cron, 400)["error"]["code"] == "job_type_not_allowed"
    system.call("POST", "/cron", cron | {"type": "ok.c"}, 201)
    assert system.call("PATCH", "/cron/bad", {"type": "bad.c"}, 400)["error"]["code"] == "job_type_not_allowed"
    system.call("PUT", "/queues/full.w/config", {"allowed_job_types": ["no.*"]})
    assert system.call("POST", "/cron/bad/trigger", None, 400)["error"]["code"] == "job_type_not_allowed"
    events = system.call("GET", "/events?types=backpressure.rejected")["events"]
    assert [event["data"]["job_type"] for event in events] == ["ok.a"]


def test_crossings_of_a_bound_are_events_in_the_order_in_which_they_happened(system: System) -> None:
    system.call("PUT", "/queues/full/config", {"max_size": 2, "warning_threshold": 0.5})
    for _ in range(2):
        system.push("test.queue", queue="full")
    assert system.fetch("full", count=5)
    types = "types=backpressure.*,queue.full"

    def told() -> list[str]:
        system.fetch("full")
        return [event["type"] for event in system.call("GET", f"/events?{types}&queues=full")["events"]]

    assert until(lambda: told() if len(told()) > 2 else None)
    assert told() == ["backpressure.warning", "queue.full", "backpressure.cleared"]


def test_what_a_handler_was_told_stops_its_key_until_then(system: System) -> None:
    policy = {"key": "stripe", "concurrency": 5}
    retry = {"max_attempts": 3, "initial_interval": "PT0.1S"}
    first = system.push("test.queue", queue="pay", rate_limit=policy, retry=retry)["id"]
    second = system.push("test.queue", queue="pay", rate_limit=policy)["id"]
    assert [job["id"] for job in system.fetch("pay")] == [first]
    error = {"type": "RateLimitExceeded", "message": "slow down", "rate_limit_until": "2999-01-01T00:00:00Z"}
    late = {"job_id": first, "attempt": 2, "error": error}
    system.call("POST", "/workers/nack", late, 409)
    assert "rate_limit_until" not in system.call("GET", "/rate-limits/stripe")
    answer = system.call("POST", "/workers/nack", {"job_id": first, "error": error})
    until_then = answer["rate_limit_until"]
    assert until_then < "2999"
    assert system.call("GET", "/rate-limits/stripe")["rate_limit_until"] == until_then
    assert system.fetch("pay", count=5) == []
    assert system.job(second)["rate_limit_until"] == until_then
    events = system.call("GET", "/events?types=rate_limit.*")["events"]
    assert [(event["type"], event["data"].get("strategy")) for event in events] == [
        ("rate_limit.dynamic_adjusted", None),
        ("rate_limit.exceeded", "dynamic"),
    ]
    assert events[0]["data"] == {"key": "stripe", "until": until_then, "reason": "slow down"}
    system.call("DELETE", "/rate-limits/stripe/override")
    assert until(lambda: system.fetch("pay", count=5))
    assert "rate_limit_until" not in system.call("GET", "/rate-limits/stripe")


def test_a_limit_that_only_an_operator_has_set_has_its_keys_name(system: System) -> None:
    view = system.call("PUT", "/rate-limits/tenant:new", {"concurrency": 1})
    assert view["key"] == "tenant:new"
    assert [view["key"] for view in system.call("GET", "/rate-limits")["items"]] == ["tenant:new"]
    assert system.call("PUT", "/rate-limits/-no", {"concurrency": 1}, 400)["error"]["details"]["field"] == "key"
