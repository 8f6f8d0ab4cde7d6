"""Batch and bulk requests over HTTP."""

from __future__ import annotations

import itertools
import json
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ojs_engine.base.ids import new_job_id
from support.system import Answer, Processes, System, send
from support.waiting import until

JOBS = "/ojs/v1/jobs"
_queues = itertools.count(1)


@pytest.fixture
def queue() -> str:
    return f"bulk-{next(_queues)}"


def job(queue: str, number: int = 0, **options: Any) -> dict[str, Any]:
    return {"type": "bulk.job", "args": [{"n": number}], "options": {"queue": queue, **options}}


def fetched(system: System, queue: str, count: int = 1_000) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = system.fetch(queue, count=count, worker_id="w1", wait_ms=0)
    return jobs


def batch(system: System, *jobs: object) -> Answer:
    return system.request("POST", f"{JOBS}/batch", {"jobs": jobs})


def bulk(system: System, operation: str, **body: Any) -> Answer:
    return system.request("POST", f"{JOBS}/bulk/{operation}", body)


def statuses(answer: Answer) -> list[str]:
    return [item["status"] for item in answer.body["items"]]


# Batch


def test_a_batch_honours_every_attribute_and_keeps_the_order(system: System, queue: str) -> None:
    answer = batch(
        system,
        job(queue, 0, priority=3, tags=["a"], timeout_ms=5_000),
        job(queue, 1, delay_until="+PT1H"),
        job(queue, 2, pending=True),
        {"type": "bulk.flat", "args": [], "queue": queue, "meta": {"k": 1}, "x_own": True},
    )
    assert (answer.status, answer.body["count"]) == (201, 4)
    jobs = answer.body["jobs"]
    assert [one["state"] for one in jobs] == ["available", "scheduled", "pending", "available"]
    assert (jobs[0]["priority"], jobs[0]["tags"], jobs[0]["timeout_ms"]) == (3, ["a"], 5_000)
    assert (jobs[3]["meta"], jobs[3]["x_own"]) == ({"k": 1}, True)
    assert [one["id"] for one in fetched(system, queue)] == [jobs[0]["id"], jobs[3]["id"]]


@pytest.mark.slow
def test_jobs_of_a_batch_that_is_fetched_in_several_times_come_in_order_and_too_many_are_refused(
    system: System, queue: str
) -> None:
    """That as many as there may be are taken is shown by test_no_request_holds_it_up.py."""
    answer = batch(system, *(job(queue, number) for number in range(1_000)))
    assert (answer.status, answer.body["count"]) == (201, 1_000)
    numbers = [one["args"][0]["n"] for _ in range(3) for one in fetched(system, queue, 400)]
    assert numbers == list(range(1_000))
    too_many = batch(system, *(job(queue, number) for number in range(10_001)))
    error = too_many.body["error"]
    assert (too_many.status, error["max_batch_size"], error["details"]["max_batch_size"]) == (413, 10_000, 10_000)
    assert too_many.headers["X-OJS-Max-Batch-Size"] == "10000"
    assert fetched(system, queue) == []


def test_one_bad_job_refuses_the_batch_by_its_index(system: System, queue: str) -> None:
    answer = batch(system, job(queue), job(queue), {"args": []})
    error = answer.body["error"]
    assert (answer.status, error["code"], error["details"]["index"]) == (400, "invalid_request", 2)
    assert "jobs[2]" in error["message"]
    assert fetched(system, queue) == []


# Bulk enqueue


def test_the_good_jobs_of_a_bulk_request_are_enqueued_and_the_bad_ones_named(system: System, queue: str) -> None:
    policy = {"keys": ["type", "args"]}
    answer = system.request(
        "POST",
        f"{JOBS}/bulk",
        {"jobs": [job(queue, 0), {"type": "", "args": []}, job(queue, 2, unique=policy), job(queue, 2, unique=policy)]},
    )
    assert answer.status == 207
    assert statuses(answer) == ["created", "failed", "created", "duplicate"]
    assert (answer.body["total"], answer.body["succeeded"], answer.body["failed"]) == (4, 2, 2)
    assert answer.headers["X-OJS-Batch-Size"] == "4"
    items = answer.body["items"]
    assert [item["index"] for item in items] == [0, 1, 2, 3]
    assert items[1]["error"]["code"] == "invalid_request"
    assert items[3]["job"]["id"] == items[2]["job"]["id"]
    assert [one["id"] for one in fetched(system, queue)] == [items[0]["job"]["id"], items[2]["job"]["id"]]


def test_bulk_statuses(system: System, queue: str) -> None:
    assert system.request("POST", f"{JOBS}/bulk", {"jobs": [job(queue)]}).status == 201
    assert system.request("POST", f"{JOBS}/bulk", {"jobs": [{"args": []}]}).status == 422
    ignored = {"keys": ["type"], "on_conflict": "ignore"}
    twice = system.request("POST", f"{JOBS}/bulk", {"jobs": [job(queue, unique=ignored)] * 2})
    assert (twice.status, statuses(twice)) == (201, ["created", "duplicate"])
    too_many = system.request("POST", f"{JOBS}/bulk", {"jobs": [job(queue)] * 1_001})
    assert (too_many.status, too_many.body["error"]["canonical_code"]) == (413, "BATCH_SIZE_EXCEEDED")


def test_an_atomic_bulk_request_enqueues_all_or_none(system: System, queue: str) -> None:
    body = {"atomicity": "atomic", "jobs": [job(queue, 0), {"type": "no args"}, job(queue, 2)]}
    answer = system.request("POST", f"{JOBS}/bulk", body)
    assert (answer.status, statuses(answer)) == (422, ["failed", "failed", "failed"])
    assert [item["error"]["code"] for item in answer.body["items"]] == ["rolled_back", "invalid_request", "rolled_back"]
    assert fetched(system, queue) == []
    good = system.request("POST", f"{JOBS}/bulk", {"atomicity": "atomic", "jobs": [job(queue, 0), job(queue, 1)]})
    assert (good.status, statuses(good)) == (201, ["created", "created"])
    assert len(fetched(system, queue)) == 2


def test_an_atomic_bulk_request_to_a_full_queue_says_which_jobs_have_no_room(system: System, queue: str) -> None:
    system.request("PUT", f"/ojs/v1/queues/{queue}/config", {"max_size": 2})
    later = job(queue, 2) | {"options": {"queue": queue, "delay_until": "+PT1H"}}
    body = {"atomicity": "atomic", "jobs": [job(queue, 0), job(f"{queue}.other", 1), later, job(queue, 3)]}
    assert system.request("POST", f"{JOBS}", job(queue, 9)).status == 201
    answer = system.request("POST", f"{JOBS}/bulk", body)
    assert (answer.status, answer.headers["Retry-After"]) == (422, "1")
    codes = [item["error"]["code"] for item in answer.body["items"]]
    assert codes == ["QUEUE_FULL", "rolled_back", "rolled_back", "QUEUE_FULL"]

    body["jobs"] = [job(queue, n) for n in range(3)]
    answer = system.request("POST", f"{JOBS}/bulk", body)
    assert (answer.status, answer.headers.get("Retry-After")) == (422, None)
    assert {item["error"]["code"] for item in answer.body["items"]} == {"QUEUE_FULL"}
    assert "bounded to 2" in answer.body["items"][0]["error"]["message"]
    refused = system.request("POST", f"{JOBS}/batch", {"jobs": body["jobs"]})
    assert (refused.status, refused.headers["Retry-After"]) == (429, "1"), "every 429 has it"
    assert refused.body["error"]["retryable"] is False
    assert "max_size" in refused.body["error"]["hint"]
    assert system.request("GET", f"{JOBS}?queue={queue}").body["pagination"]["total"] == 1


@pytest.mark.parametrize("atomicity", ["partial", "atomic"])
def test_an_idempotency_key_answers_again_without_doing_it_again(system: System, queue: str, atomicity: str) -> None:
    body = {"idempotency_key": f"key-{queue}", "atomicity": atomicity, "jobs": [job(queue, 0), job(queue, 1)]}
    first = system.request("POST", f"{JOBS}/bulk", body)
    second = system.request("POST", f"{JOBS}/bulk", body)
    assert first.status == second.status == 201
    assert first.body == second.body
    assert len(fetched(system, queue)) == 2
    other = system.request("POST", f"{JOBS}/bulk", {**body, "jobs": [job(queue, 5)]})
    assert (other.status, other.body["error"]["code"]) == (409, "conflict")
    assert bulk(system, "cancel", idempotency_key=f"key-{queue}", job_ids=[first.body["items"][0]["job"]["id"]]).status != 409


def test_the_header_wins_over_the_idempotency_key_in_the_body(system: System, queue: str) -> None:
    def enqueue(key: str) -> str:
        body = json.dumps({"idempotency_key": f"same-{queue}", "jobs": [job(queue)]}).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": f"{key}-{queue}"}
        with urllib.request.urlopen(urllib.request.Request(f"{system.url}{JOBS}/bulk", body, headers), timeout=60) as answer:
            return str(json.load(answer)["items"][0]["job"]["id"])

    assert enqueue("one") == enqueue("one") != enqueue("two")


# Bulk operations


def test_jobs_are_cancelled_by_ids_and_others_say_why_not(system: System, queue: str) -> None:
    first, second = (one["id"] for one in batch(system, job(queue, 0), job(queue, 1)).body["jobs"])
    assert fetched(system, queue, 1)[0]["id"] == first
    missing = "01900000-0000-7000-8000-000000000000"
    answer = bulk(system, "cancel", job_ids=[first, second, missing])
    assert (answer.status, statuses(answer)) == (207, ["skipped", "cancelled", "skipped"])
    assert (answer.body["total_matched"], answer.body["cancelled"], answer.body["skipped"]) == (3, 1, 2)
    assert "active" in answer.body["items"][0]["reason"]
    assert answer.body["items"][2]["error"]["code"] == "not_found"
    assert system.job(second)["state"] == "cancelled"
    assert bulk(system, "cancel", job_ids=[second]).status == 422


def test_jobs_are_cancelled_by_a_filter_in_pages(system: System, queue: str) -> None:
    batch(system, *(job(queue, number, priority=number % 2) for number in range(10)), job(f"{queue}.other"))
    matched = {"queue": queue, "type": "bulk.job", "priority": 1, "enqueued_before": "+PT1H"}
    dry = bulk(system, "cancel", filter=matched, dry_run=True)
    assert (dry.status, statuses(dry), dry.body["cancelled"]) == (200, ["matched"] * 5, 0)
    few = bulk(system, "cancel", filter=matched, dry_run=True, limit=3)
    assert (few.body["total_matched"], few.body["remaining"]) == (3, 7), "what a dry run has found isn't left besides"
    first = bulk(system, "cancel", filter=matched, limit=3)
    assert (first.status, first.body["cancelled"], first.body["has_more"]) == (200, 3, True)
    assert first.body["remaining"] == 7, "the index isn't asked about priorities, so it is an upper bound"
    second = bulk(system, "cancel", filter=matched, limit=3, cursor=first.body["next_cursor"])
    assert (second.body["cancelled"], second.body["has_more"], second.body["remaining"]) == (2, False, 0)
    assert bulk(system, "cancel", filter=matched).body["total_matched"] == 0
    assert len(fetched(system, queue)) == 5
    assert len(fetched(system, f"{queue}.other")) == 1


def test_a_filter_may_name_members_of_meta_and_an_age(system: System, queue: str) -> None:
    acme, globex = ({**job(queue, 0), "meta": {"tenant": name, "n": 1}} for name in ("acme", "globex"))
    batch(system, acme, globex)
    answer = bulk(system, "cancel", filter={"queue": queue, "meta": {"tenant": "acme"}})
    assert (answer.status, answer.body["cancelled"]) == (200, 1)
    assert bulk(system, "cancel", filter={"queue": queue, "older_than": "1h"}).body["total_matched"] == 0
    assert [one["meta"]["tenant"] for one in fetched(system, queue)] == ["globex"]


def test_a_filter_that_takes_everything_needs_to_be_confirmed(system: System, queue: str) -> None:
    batch(system, job(queue), job(f"{queue}.other"))
    answer = bulk(system, "cancel", filter={"state": ["available"]})
    assert (answer.status, answer.body["error"]["details"]["field"]) == (400, "confirm")
    assert bulk(system, "cancel", filter={"state": ["available"]}, dry_run=True).body["total_matched"] == 2
    assert bulk(system, "cancel", filter={"state": ["available"]}, confirm=True).body["cancelled"] == 2


def test_a_bad_selection_is_refused(system: System) -> None:
    for operation in ("cancel", "retry", "delete"):
        for body in ({"filter": {"quueue": "a"}}, {"filter": {"queue": "a"}, "cursor": "nowhere"}):
            answer = bulk(system, operation, **body)
            assert (answer.status, answer.body["error"]["code"]) == (400, "invalid_request"), answer


def test_discarded_and_waiting_jobs_are_retried_and_finished_ones_deleted(system: System, queue: str) -> None:
    patient = {"retry": {"initial_interval": "PT1H"}}
    created = batch(system, job(queue, 0), job(queue, 1, **patient), job(queue, 2)).body["jobs"]
    dead, waiting, done = (one["id"] for one in created)
    assert len(fetched(system, queue)) == 3
    system.request("POST", "/ojs/v1/workers/nack", {"job_id": dead, "error": {"message": "no", "retryable": False}})
    system.request("POST", "/ojs/v1/workers/nack", {"job_id": waiting, "error": {"message": "later"}})
    system.request("POST", "/ojs/v1/workers/ack", {"job_id": done})
    assert system.job(waiting)["state"] == "retryable"
    answer = bulk(system, "retry", job_ids=[dead, waiting, done])
    assert (answer.status, statuses(answer)) == (207, ["retried", "retried", "skipped"])
    assert {one["id"]: one["attempt"] for one in fetched(system, queue)} == {dead: 1, waiting: 2}
    answer = bulk(system, "delete", job_ids=[dead, done])
    assert (answer.status, statuses(answer)) == (207, ["skipped", "deleted"])
    assert system.request("GET", f"{JOBS}/{done}").status == 404
    assert system.job(dead)["state"] == "active"


def test_an_atomic_operation_changes_all_or_none(system: System, queue: str) -> None:
    first, second = (one["id"] for one in batch(system, job(queue, 0), job(queue, 1)).body["jobs"])
    assert len(fetched(system, queue, 1)) == 1
    answer = bulk(system, "cancel", atomicity="atomic", job_ids=[first, second])
    assert (answer.status, statuses(answer)) == (422, ["skipped", "skipped"])
    assert answer.body["items"][1]["error"]["code"] == "rolled_back"
    assert system.job(second)["state"] == "available"
    system.request("POST", "/ojs/v1/workers/nack", {"job_id": first, "error": {"message": "x"}, "requeue": True})
    answer = bulk(system, "cancel", atomicity="atomic", job_ids=[first, second])
    assert (answer.status, statuses(answer)) == (200, ["cancelled", "cancelled"])


def test_bulk_requests_are_events(system: System, queue: str) -> None:
    created = system.request("POST", f"{JOBS}/bulk", {"jobs": [job(queue), {"args": []}]})
    bulk(system, "cancel", job_ids=[created.body["items"][0]["job"]["id"]])

    def told() -> dict[str, Any]:
        events = system.request("GET", "/ojs/v1/events?types=bulk.*").body["events"]
        return {event["type"]: event["data"] for event in events} if len(events) == 2 else {}

    assert until(told) == {
        "bulk.enqueue.completed": {"total": 2, "succeeded": 1, "failed": 1, "atomicity": "partial"},
        "bulk.cancel.completed": {"total": 1, "cancelled": 1, "skipped": 0},
    }


# Priority


def test_the_priority_of_a_waiting_job_can_be_changed(system: System, queue: str) -> None:
    low, high = (one["id"] for one in batch(system, job(queue, 0), job(queue, 1)).body["jobs"])
    answer = system.request("PATCH", f"{JOBS}/{high}", {"priority": 50})
    assert answer.status == 200
    assert {name: answer.body[name] for name in ("id", "priority", "previous_priority")} == {
        "id": high,
        "priority": 50,
        "previous_priority": 0,
    }
    stats = system.request("GET", f"/ojs/v1/queues/{queue}/priority-stats").body
    assert next(iter(stats["counts_by_priority"].items())) == ("50", 1), "the highest first"
    assert [one["id"] for one in fetched(system, queue)] == [high, low]
    assert system.request("PATCH", f"{JOBS}/{high}", {"priority": "low"}).status == 409
    refused = system.request("PATCH", f"{JOBS}/{high}", {"priority": 1})
    assert (refused.status, refused.body["error"]["code"]) == (409, "conflict")
    for bad in ({}, {"priority": 101}, {"priority": 1.5}, {"priority": True}, {"priority": "x"}):
        assert system.request("PATCH", f"{JOBS}/{low}", bad).status == 400

    def told() -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = system.request("GET", "/ojs/v1/events?types=priority.changed").body["events"]
        return events

    (event,) = until(told)
    assert (event["data"]["previous_priority"], event["data"]["new_priority"]) == (0, 50)
    assert system.request("GET", f"/ojs/v1/queues/{queue}/priority-stats").body["total"] == 0


# Crashes


def push_until_killed(processes: Processes, survivor: str, queue: str, number: int) -> None:
    """Push a batch through a gateway that is killed as soon as the first record can be read through another."""
    victim = processes.start("gateway")
    url = victim.ready()["url"]
    first = new_job_id(int(time.time() * 1_000))
    jobs = [{**job(queue, 0), "id": first}, *(job(queue, index) for index in range(1, number))]
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(send, "POST", f"{url}{JOBS}/batch", {"jobs": jobs})
        until(lambda: send("GET", f"{survivor}{JOBS}/{first}").status == 200, 30, every=0.001)
        victim.kill()
        answer.exception()  # it may have answered


@pytest.mark.slow
def test_a_batch_whose_gateway_dies_before_its_tokens_is_finished(processes: Processes) -> None:
    """The gateway is killed as soon as one of its records can be read: most tokens are missing then."""
    survivor, projector = (processes.start(name) for name in ("gateway", "projector"))
    url = survivor.ready()["url"]
    projector.ready()
    number = 2_000

    def repaired(queue: str) -> int:
        """Have a batch's gateway killed and fetch all of its jobs; returns how many tokens the safety net had to publish."""
        before = reissued()
        push_until_killed(processes, url, queue, number)
        numbers: list[int] = []

        def all_are_fetched() -> bool:
            body = {"queues": [queue], "count": 1_000, "worker_id": "w1", "wait_ms": 500}
            found = send("POST", f"{url}/ojs/v1/workers/fetch", body).body["jobs"]
            numbers.extend(one["args"][0]["n"] for one in found)
            return len(numbers) >= number

        until(all_are_fetched)
        assert sorted(numbers) == list(range(number))
        return reissued() - before

    def reissued() -> int:
        return sum(told["number"] for told in projector.events("a lost hint was issued again"))

    # A gateway may have published all tokens by the time it is killed: then another is tried.
    assert 0 < next(filter(None, map(repaired, map("crash-{}".format, range(10)))), 0) <= number


def test_jobs_that_were_not_fetched_yet_get_another_priority(system: System, queue: str) -> None:
    pushed = system.call("POST", "/jobs/bulk", {"jobs": [job(queue, priority=n, tags=[f"{queue}-t"]) for n in (0, 0, 5)]}, 201)
    ids = [item["job"]["id"] for item in pushed["items"]]
    which = {"filter": {"tag": f"{queue}-t"}}
    assert bulk(system, "reprioritise", **which).status == 400
    dry = bulk(system, "reprioritise", **which, dry_run=True)
    assert (dry.body["total_matched"], dry.body["skipped"]) == (3, 0)
    answer = bulk(system, "reprioritise", **which, priority=5)
    assert (answer.status, answer.body["reprioritised"], answer.body["skipped"]) == (207, 2, 1)
    assert {system.job(job_id)["priority"] for job_id in ids} == {5}
    taken = system.fetch(queue, worker_id=f"{queue}-w")
    confirmed = {"filter": {"queue": queue, "worker": f"{queue}-w", "state": "active"}, "confirm": True, "priority": 9}
    refused = system.call("POST", "/admin/jobs/bulk/reprioritise", confirmed)
    assert (refused["action"], refused["matched"], refused["failed"]) == ("reprioritise", 1, 1)
    assert refused["errors"][0]["job_id"] == taken[0]["id"]
    assert bulk(system, "cancel", **which, priority=5).body["error"]["details"]["field"] == "priority"
