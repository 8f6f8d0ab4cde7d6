"""Lists, counts, dead letters and the detail of a job: exact and at once after the write."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from support.system import System

STATES = ("scheduled", "available", "pending", "active", "retryable", "completed", "cancelled", "discarded")
DEAD: dict[str, Any] = {"retry": {"max_attempts": 1, "on_exhaustion": "dead_letter"}}


def fetch(system: System, queue: str, count: int = 1) -> list[str]:
    jobs = system.fetch(queue, count=count, worker_id="w1")
    return [str(job["id"]) for job in jobs]


def fail(system: System, job_id: str, **error: Any) -> None:
    system.call("POST", "/workers/nack", {"job_id": job_id, "error": {"message": "broken", **error}})


def dead_letter(system: System, queue: str, job_type: str = "test.list", error_type: str = "E") -> str:
    job_id: str = system.push(job_type, 1, queue=queue, **DEAD)["id"]
    assert fetch(system, queue) == [job_id]
    fail(system, job_id, type=error_type)
    return job_id


def ids(view: Any) -> list[str]:
    return [job["id"] for job in view["jobs"]]


def one_of_each(system: System, queue: str) -> dict[str, str]:
    """A job in every state."""
    jobs = {}
    for state in ("active", "retryable", "completed", "discarded"):
        retry = {"initial_interval": "PT1H"}  # it stays retryable however slow the test is
        jobs[state] = system.push("test.list", 1, queue=queue, retry=retry)["id"]
        assert fetch(system, queue) == [jobs[state]]
    fail(system, jobs["retryable"])
    system.call("POST", "/workers/ack", {"job_id": jobs["completed"]})
    fail(system, jobs["discarded"], retryable=False)
    jobs["scheduled"] = system.push("test.list", 1, queue=queue, delay_until="+PT1H")["id"]
    jobs["pending"] = system.push("test.list", 1, queue=queue, pending=True)["id"]
    jobs["cancelled"] = system.push("test.list", 1, queue=queue)["id"]
    system.call("DELETE", f"/jobs/{jobs['cancelled']}")
    jobs["available"] = system.push("test.list", 1, queue=queue)["id"]
    return jobs


def test_a_queues_statistics_count_every_state_exactly_and_at_once(system: System) -> None:
    one_of_each(system, "ls.stats")
    view = system.call("GET", "/queues/ls.stats/stats")
    assert {state: view["queue"][state] for state in STATES} == dict.fromkeys(STATES, 1)
    assert (view["queue"]["name"], view["stats"]["depth"]) == ("ls.stats", 1)
    for number in range(2, 30):
        system.push("test.list", 1, queue="ls.stats")
        assert system.call("GET", "/queues/ls.stats/stats")["queue"]["available"] == number


def test_queues_are_listed_by_name_in_pages(system: System) -> None:
    names = [f"ls.queue.{letter}" for letter in "abcde"]
    for name in reversed(names):
        system.push("test.list", 1, queue=name)
    found = []
    path = "/queues?limit=2"
    for _ in names:
        view = system.call("GET", path)
        assert view["pagination"]["total"] == len(names)
        found += [queue["name"] for queue in view["queues"]]
        if not view["pagination"]["has_more"]:
            break
        path = f"/queues?limit=2&cursor={view['pagination']['next_cursor']}"
    assert found == names


def test_jobs_are_listed_by_state_queue_and_type_with_cursors_that_stay_right(system: System) -> None:
    jobs = one_of_each(system, "ls.jobs")
    for state in STATES:
        assert ids(system.call("GET", f"/jobs?queue=ls.jobs&state={state}")) == [jobs[state]]
    other = system.push("test.other", 1, queue="ls.other")["id"]
    assert ids(system.call("GET", "/jobs?type=test.other")) == [other]
    assert ids(system.call("GET", "/jobs?type=test.other&queue=ls.jobs")) == []
    pushed = {system.push("test.list", 1, queue="ls.many")["id"] for _ in range(7)}
    # Those of one millisecond are in the order of their ids.
    many = ids(system.call("GET", "/jobs?queue=ls.many&order=asc"))
    assert set(many) == pushed
    first = system.call("GET", "/jobs?queue=ls.many&limit=3")
    assert ids(first) == many[:-4:-1]
    system.push("test.list", 1, queue="ls.many")  # a newer one moves no page
    rest = system.call("GET", f"/jobs?queue=ls.many&limit=10&cursor={first['pagination']['next_cursor']}")
    assert ids(rest) == many[-4::-1]
    assert rest["pagination"]["has_more"] is False


def test_a_bad_list_query_is_refused_by_name(system: System) -> None:
    for query, field in (("state=dead", "state"), ("limit=x", "limit"), ("offset=-1", "offset"), ("page=one", "page")):
        assert system.call("GET", f"/jobs?{query}", status=400)["error"]["details"]["field"] == field


def test_a_jobs_detail_tells_who_when_and_why(system: System) -> None:
    job_id = system.push("test.list", 1, queue="ls.detail", retry={"initial_interval": "PT1H"})["id"]
    fetch(system, "ls.detail")
    fail(system, job_id, type="Flaky")
    view = system.call("GET", f"/admin/jobs/{job_id}")
    walk = [(entry["event"], entry.get("from"), entry["to"], entry.get("worker_id")) for entry in view["timeline"]]
    assert walk == [
        ("pushed", None, "available", None),
        ("claimed", "available", "active", "w1"),
        ("failed", "active", "retryable", "w1"),
    ]
    assert view["timeline"][2]["reason"] == "Flaky"
    assert view["timers"] == [{"due_at": view["next_attempt_at"], "service": "scheduler"}]
    assert [error["type"] for error in view["errors"]] == ["Flaky"]


def test_dead_letters_are_listed_counted_read_and_filtered(system: System) -> None:
    first = dead_letter(system, "ls.dead", error_type="Timeout")
    second = dead_letter(system, "ls.dead", "test.other", "Broken")
    plain = system.push("test.list", 1, queue="ls.dead", retry={"max_attempts": 1})["id"]
    fetch(system, "ls.dead")
    fail(system, plain)  # discarded, but no dead letter
    assert ids(system.call("GET", "/dead-letter?queue=ls.dead")) == [second, first]
    assert ids(system.call("GET", "/dead-letter?error_type=Timeout")) == [first]
    assert ids(system.call("GET", "/dead-letter?type=test.other")) == [second]
    assert ids(system.call("GET", "/dead-letter?since=2999-01-01T00:00:00Z")) == []
    assert system.call("GET", f"/dead-letter/{first}")["job"]["errors"][0]["type"] == "Timeout"
    system.call("GET", f"/dead-letter/{plain}", status=404)
    stats = system.call("GET", "/dead-letter/stats")
    assert (stats["total"], stats["by_queue"]) == (2, {"ls.dead": 2})
    assert system.call("GET", "/dead-letter/stats?queue=")["total"] == 2
    system.call("GET", "/dead-letter/stats?queue=*", status=400)
    assert stats["by_error_type"] == {"Timeout": 1, "Broken": 1}
    assert stats["by_type"] == {"test.list": 1, "test.other": 1}


def test_dead_letters_are_retried_and_purged_by_filter_only_when_confirmed(system: System) -> None:
    wanted = {dead_letter(system, "ls.bulk") for _ in range(3)}
    kept = dead_letter(system, "ls.kept")
    error = system.call("POST", "/dead-letter/retry", {"filter": {"queue": "ls.bulk"}}, status=400)["error"]
    assert error["details"]["field"] == "confirm"
    view = system.call("POST", "/dead-letter/retry", {"filter": {"queue": "ls.bulk"}, "confirm": True})
    assert (view["retried"], view["total_matched"], view["remaining"]) == (3, 3, 0)
    assert set(fetch(system, "ls.bulk", 10)) == wanted
    assert ids(system.call("GET", "/dead-letter")) == [kept]
    system.call("DELETE", "/dead-letter", status=400)
    system.call("POST", "/dead-letter/purge", {"confirm": False}, status=400)
    system.call("DELETE", "/dead-letter", {"filter": {"queue": ""}, "confirm": True}, status=400)
    assert system.call("DELETE", "/dead-letter?queue=ls.none&confirm=true")["deleted"] == 0
    assert system.call("POST", "/dead-letter/purge", {"confirm": True})["deleted"] == 1
    assert ids(system.call("GET", "/dead-letter")) == []
    system.call("GET", f"/jobs/{kept}", status=404)


def test_small_and_large_jobs_are_listed_as_they_are(system: System) -> None:
    args = {"small": 1, "large": "x" * 5_000}
    pushed = {}
    for name, content in args.items():
        pushed[name] = system.push(f"test.{name}", content, meta={"n": name}, queue="ls.sizes")["id"]

    def same() -> list[str]:
        listed = system.call("GET", "/jobs?queue=ls.sizes&order=asc")["jobs"]
        for found in listed:
            assert found == system.job(found["id"])
        return [found["state"] for found in listed]

    assert same() == ["available", "available"]
    for job_id in fetch(system, "ls.sizes", count=2):
        system.call("POST", "/workers/ack", {"job_id": job_id, "result": {"of": job_id}})
    assert same() == ["completed", "completed"]


def test_queues_workers_and_limits_are_found_by_a_part_of_their_names(system: System) -> None:
    for name in ("mail.a", "mail.b", "order"):
        system.call("POST", "/queues", {"name": name}, 201)
        system.push("a.b", queue=name, rate_limit={"key": f"Key-{name}", "concurrency": 1})
        beat = {"worker_id": f"W-{name}", "active_jobs": [], "queues": [name], "hostname": f"box-{name[:4]}"}
        system.call("POST", "/workers/heartbeat", beat)
        system.fetch(name, worker_id=f"W-{name}")

    def found(path: str) -> list[str]:
        answer = system.call("GET", path)
        return [one.get("name") or one.get("id") or one["key"] for one in answer.get("items") or answer.get("queues", [])]

    for text, names in (("AIL.", ["mail.a", "mail.b"]), ("order", ["order"]), ("%", []), ("*", []), ("_", [])):
        assert found(f"/admin/queues?search={quote(text)}") == names, text
        assert found(f"/queues?search={quote(text)}") == names, text
        assert found(f"/rate-limits?search={quote(text)}") == [f"Key-{name}" for name in names], text
        assert found(f"/admin/workers?search={quote(text)}") == [f"W-{name}" for name in names], text
    assert found("/admin/workers?search=box-MAIL") == ["W-mail.a", "W-mail.b"]
    page = system.call("GET", "/admin/queues?search=mail&per_page=1")
    assert (page["pagination"]["total"], [one["name"] for one in page["items"]]) == (2, ["mail.a"])
    assert system.call("GET", f"/admin/queues?search={'x' * 2_000}", status=400)["error"]["details"]["field"] == "search"


def test_a_filter_that_is_misspelt_or_doubled_lists_nothing(system: System) -> None:
    system.push("test.list", 1, queue="ls.filter")
    for path in ("/jobs", "/admin/jobs"):
        for query, field in [
            ("queue=ls.filter&statee=discarded", "statee"),
            ("foo=bar", "foo"),
            ("state=available&state=discarded", "state"),
            ("worker=a&worker_id=b", "worker_id"),
        ]:
            error = system.call("GET", f"{path}?{query}", status=400)["error"]
            assert (error["code"], error["details"]["field"]) == ("invalid_request", field), (path, query)
    assert len(system.call("GET", "/jobs?queue=ls.filter&_=17&cb=x&ext_trace=1&x_mine=2&x_mine=3")["jobs"]) == 1


def test_what_is_deleted_by_a_filter_is_named_in_one_place(system: System) -> None:
    kept, gone = dead_letter(system, "ls.kept"), dead_letter(system, "ls.gone")
    for query, body in [
        ("queue=ls.gone", {"confirm": True}),
        ("queue=ls.gone", {"filter": {"queue": "ls.gone"}, "confirm": True}),
        ("queu=ls.gone&confirm=true", {}),
        ("queue=ls.gone&queue=ls.kept&confirm=true", {}),
    ]:
        error = system.call("DELETE", f"/dead-letter?{query}", body, 400)["error"]
        assert error["details"]["field"] in {"queue", "queu"}, (query, body)
        system.call("POST", f"/dead-letter/purge?{query}", body, 400)
    assert sorted(ids(system.call("GET", "/dead-letter"))) == sorted([kept, gone])
    assert system.call("DELETE", "/dead-letter?queue=ls.gone&confirm=true", {})["deleted"] == 1
    assert system.call("POST", "/dead-letter/purge?queue=ls.kept&older_than=1h", {})["deleted"] == 0
    assert ids(system.call("GET", "/dead-letter")) == [kept]


def test_a_queue_is_not_deleted_in_two_ways(system: System) -> None:
    system.push("test.list", 1, queue="ls.two")
    error = system.call("DELETE", "/queues/ls.two?strategy=discard", {"strategy": "move", "target_queue": "x"}, 400)["error"]
    assert error["details"]["field"] == "strategy"
    assert system.call("GET", "/jobs?queue=ls.two")["pagination"]["total"] == 1
    system.call("DELETE", "/queues/ls.two?strategy=discard", {"strategy": "discard"})
