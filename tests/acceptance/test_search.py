"""Finding jobs by tag, error, worker and time, and in another order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode

import pytest

from ojs_engine.domain.members import LABELLED
from support.plain_members import OTHER, PLAIN, SENT, plain
from support.system import System

QUEUE = "se.a"


def push(system: System, args: Iterable[object] = (), meta: object = None, **options: Any) -> Any:
    asked = {"queue": QUEUE, "retry": {"initial_interval": "PT1H"}, **options}
    return system.push(asked.pop("type", "mail.send"), *args, meta=meta, **asked)


def many(system: System, number: int, **options: Any) -> list[Any]:
    """Jobs in the order of lists, the oldest first: of one millisecond, by their ids."""
    return sorted((push(system, **options) for _ in range(number)), key=lambda job: (job["created_at"], job["id"]))


def fail(system: System, job_id: str, error_type: str) -> None:
    system.call("POST", "/workers/nack", {"job_id": job_id, "error": {"message": "no", "type": error_type}})


def found(system: System, base: str = "/jobs", **query: Any) -> list[str]:
    view = system.call("GET", f"{base}?{urlencode(query)}")
    jobs = view["items" if base.startswith("/admin") else "jobs"]
    assert view["pagination"]["total"] >= len(jobs)
    return [job["id"] for job in jobs]


def test_jobs_are_found_by_tag_error_worker_and_time_at_once(system: System) -> None:
    jobs = many(system, 4, tags=["night", "all"])
    lone = push(system, tags=["lone"], queue="se.b")["id"]
    first, second, third = (system.fetch(QUEUE, worker_id=worker)[0]["id"] for worker in ("w1", "w2", "w1"))
    fail(system, first, "Timeout")
    fail(system, second, "Broken")
    assert found(system, tag="night") == [job["id"] for job in reversed(jobs)]
    assert found(system, tag="lone") == [lone]
    assert found(system, tag="night", state="retryable", error_type="Timeout") == [first]
    assert found(system, worker="w1", state="active") == [third]
    assert found(system, error_type="Broken", queue="elsewhere") == []
    since, until = jobs[1]["created_at"], jobs[2]["created_at"]
    between = [job["id"] for job in reversed(jobs) if since <= job["created_at"] <= until]
    assert found(system, since=since, until=until, tag="all") == between
    assert found(system, since="2999-01-01T00:00:00Z") == []
    held = system.call("GET", "/workers")["workers"]
    assert held == [], "a worker that never sent a heartbeat isn't listed"


def test_jobs_are_shown_with_each_plain_member_and_found_by_it(system: System) -> None:
    ours, other = push(system, **plain(SENT)), push(system, **plain(OTHER))
    shown = [system.call("GET", f"/jobs/{ours['id']}")["job"], system.call("GET", f"/admin/jobs/{ours['id']}")]
    for job in (ours, *shown, system.fetch(QUEUE)[0]):
        assert {name: job[name] for name in PLAIN} == plain(SENT)
    for by in LABELLED:
        assert found(system, **{by.name: "payments"}) == [ours["id"]]
        assert found(system, "/admin/jobs", **{by.name: "theirs"}) == [other["id"]]
        which = {by.name: "theirs", "state": "available"}
        answer = system.call("POST", "/jobs/bulk/cancel", {"filter": which, "confirm": True, "dry_run": True})
        assert answer["total_matched"] == 1, answer


def test_cursors_of_a_search_stay_right_while_jobs_come(system: System) -> None:
    ids = [job["id"] for job in many(system, 5, tags=["t"])]
    view = system.call("GET", "/jobs?tag=t&limit=2")
    assert [job["id"] for job in view["jobs"]] == ids[:-3:-1]
    push(system, tags=["t"])
    assert found(system, tag="t", cursor=view["pagination"]["next_cursor"]) == ids[-3::-1]


def test_operators_sort_jobs_and_find_types_by_their_beginning(system: System) -> None:
    low, high, middle = (push(system, priority=priority)["id"] for priority in (-5, 9, 2))
    late, soon = (push(system, delay_until=delay, type="mail.later")["id"] for delay in ("+PT2H", "+PT1H"))
    other = push(system, type="bill", queue="se.b")["id"]
    assert found(system, "/admin/jobs", queue=QUEUE, state="available", sort="priority") == [high, middle, low]
    assert found(system, "/admin/jobs", state="available", queue=QUEUE, sort="priority", order="asc") == [low, middle, high]
    assert found(system, "/admin/jobs", state="scheduled", sort="scheduled_at", order="asc") == [soon, late]
    everything = found(system, "/admin/jobs", order="asc")
    assert set(everything) == {low, high, middle, late, soon, other}
    assert found(system, "/admin/jobs") == everything[::-1]
    assert set(found(system, "/admin/jobs", type="mail.*")) == set(everything) - {other}
    view = system.call("GET", "/admin/jobs?page=2&per_page=4")
    assert ([job["id"] for job in view["items"]], view["pagination"]["page"]) == (everything[1::-1], 2)


def test_jobs_are_found_by_metadata_until_they_leave(system: System) -> None:
    ada = push(system, [{"to": "ada@example.org"}], {"tenant": "acme", "tries": 2})["id"]
    bob = push(system, [{"to": "bob@example.org"}], {"tenant": "acme", "tries": 3})["id"]
    assert set(found(system, **{"meta.tenant": "acme"})) == {ada, bob}
    assert found(system, **{"meta.tenant": "acme", "meta.tries": "3", "state": "available"}) == [bob]
    system.call("DELETE", f"/jobs/{ada}")
    system.call("POST", "/jobs/bulk/delete", {"job_ids": [ada]})
    assert found(system, **{"meta.tenant": "acme"}) == [bob]


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("sort", ["priority", "scheduled_at"])
def test_cursors_of_other_orders_show_each_job_once(system: System, sort: str, order: str) -> None:
    pushed = {push(system, priority=n % 3)["id"] for n in range(5)}
    pushed |= {push(system, delay_until=f"+PT{n}H")["id"] for n in (1, 2, 2)}
    shown: list[str] = []
    path = f"/jobs?sort={sort}&order={order}&limit=3"
    cursor = ""
    while True:
        view = system.call("GET", path + cursor)
        shown += [job["id"] for job in view["jobs"]]
        if not view["pagination"]["has_more"]:
            break
        cursor = f"&cursor={view['pagination']['next_cursor']}"
    assert len(shown) == len(pushed)
    assert set(shown) == pushed


def test_a_bad_search_is_refused_by_name(system: System) -> None:
    for query, field in (
        ("sort=color", "sort"),
        ("order=up", "order"),
        ("since=yesterday", "since"),
        ("until=1", "until"),
        ("meta.=x", "meta."),
        ("&".join(f"meta.k{n}=x" for n in range(9)), "meta"),
        ("text=ada", "text"),
    ):
        assert system.call("GET", f"/admin/jobs?{query}", status=400)["error"]["details"]["field"] == field


def test_a_worker_shows_the_jobs_that_it_holds(system: System) -> None:
    job_id = push(system)["id"]
    system.call("POST", "/workers/heartbeat", {"worker_id": "w"})
    assert system.call("GET", "/admin/workers/w")["jobs"] == []
    system.fetch(QUEUE, worker_id="w")[0]["id"]
    [held] = system.call("GET", "/admin/workers/w")["jobs"]
    assert (held["id"], held["queue"], held["attempt"]) == (job_id, QUEUE, 1)
