"""Metrics of the running system: every process has them, and work moves exactly those that it should."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.described import Described
from support.scrape import Scrape, scrape
from support.system import Services
from support.waiting import until

QUEUE, TYPE = "measured", "test.measured"


@pytest.fixture(scope="module")
def _shared_system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    """One whose queues are those of this module: a process names the first hundred that it meets, others are `other`."""
    with Services.started(tmp_path_factory.mktemp("metrics")) as system:
        system.observe = Described.by(system.url).check
        yield system


def push(system: Services, **options: Any) -> str:
    return str(system.push(TYPE, 1, **{"queue": QUEUE, **options})["id"])


def fetch(system: Services) -> str:
    return str(system.fetch(QUEUE, worker_id="w")[0]["id"])


def everything(system: Services) -> Scrape:
    return scrape(*system.urls.values())


def of_jobs(changes: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    """What was counted of transitions, without the gauges of the index, which follow a little later."""
    return {name: change for name, change in changes.items() if name[0].startswith(("ojs_job", "ojs_commits"))}


def counted(outcome: str) -> dict[tuple[str, ...], float]:
    return {(f"ojs_job_{outcome}_total", QUEUE, TYPE): 1}


def ran(state: str) -> dict[tuple[str, ...], float]:
    return {("ojs_job_duration_seconds_count", QUEUE, state, TYPE): 1}


STORED = {("ojs_commits_total", "stored"): 1.0}
STARTED = {("ojs_job_queue_time_seconds_count", QUEUE, TYPE): 1.0}


def test_every_process_says_what_it_is(system: Services) -> None:
    for name, url in system.urls.items():
        assert [labels[1] for labels in scrape(url).of("ojs_build_info")] == [name]


def test_each_step_of_a_job_moves_its_own_counters_and_no_others(system: Services) -> None:
    push(system)
    before = everything(system)
    job_id = fetch(system)
    claimed = everything(system)
    assert of_jobs(claimed - before) == STORED | STARTED
    system.call("POST", "/workers/ack", {"job_id": job_id, "worker_id": "w"})
    completed = everything(system)
    assert of_jobs(completed - claimed) == STORED | ran("completed") | counted("completed")
    push(system, retry={"max_attempts": 1})
    pushed = everything(system)
    assert of_jobs(pushed - completed) == STORED | counted("enqueued")
    system.call("POST", "/workers/nack", {"job_id": fetch(system), "worker_id": "w", "error": {"message": "broken"}})
    assert of_jobs(everything(system) - pushed) == {("ojs_commits_total", "stored"): 2} | STARTED | ran("discarded") | counted(
        "failed"
    )


def test_a_refused_request_moves_nothing_but_its_own(system: Services) -> None:
    before = everything(system)
    system.call("POST", "/jobs", {"type": "Not A Type", "args": []}, 400)
    after = everything(system)
    assert of_jobs(after - before) == {}
    route = ("ojs_http_request_duration_seconds_count", "POST", "/ojs/v1/jobs", "4xx")
    assert (after - before)[route] == 1


def test_a_path_that_is_not_there_makes_no_series(system: Services) -> None:
    before = everything(system)
    assert system.request("GET", "/ojs/v1/nothing-here").status == 404
    changes = everything(system) - before
    assert changes["ojs_http_request_duration_seconds_count", "GET", "none", "4xx"] == 1
    assert not [name for name in changes if "nothing-here" in " ".join(name)]


def test_the_scheduler_measures_how_late_it_was(system: Services) -> None:
    before, scheduler = everything(system), system.urls["scheduler"]
    earlier = scrape(scheduler)
    push(system, retry={"initial_interval": "PT0.1S", "jitter": False})
    system.call("POST", "/workers/nack", {"job_id": fetch(system), "worker_id": "w", "error": {"message": "broken"}})

    def measured() -> bool:
        return (scrape(scheduler) - earlier).get(("ojs_due_lateness_seconds_count", "scheduler")) == 1

    until(measured)
    assert (everything(system) - before)["ojs_job_retried_total", QUEUE, TYPE] == 1


def test_an_attempt_that_nobody_beats_for_is_counted(system: Services) -> None:
    before = everything(system)
    push(system, visibility_timeout="PT0.2S")
    fetch(system)

    def counted_once() -> bool:
        return (everything(system) - before).get(("ojs_job_lease_expired_total", QUEUE, TYPE)) == 1

    until(counted_once)


def test_the_projector_says_how_full_the_queues_are(system: Services) -> None:
    projector = system.urls["projector"]
    push(system)
    push(system)
    fetch(system)

    def depth() -> dict[tuple[str, ...], float]:
        values = scrape(projector).of("ojs_queue_depth")
        return {labels: value for labels, value in values.items() if labels[0] == QUEUE and value}

    def one_waits_and_one_runs() -> bool:
        return depth() == {(QUEUE, "available"): 1, (QUEUE, "active"): 1}

    until(one_waits_and_one_runs)
    now = scrape(projector)
    assert now.of("ojs_queue_active")[QUEUE,] == 1
    assert 0 <= now.of("ojs_queue_oldest_seconds")[QUEUE,] < 600
    assert now.of("ojs_projector_relaying")[()] == 1
    assert now.of("ojs_projector_progress_ratio")[()] == 1
    assert not scrape(system.url).of("ojs_projector_progress_ratio")
    system.reset()

    def nothing_is_left() -> bool:
        return not scrape(projector).of("ojs_queue_depth")

    until(nothing_is_left)


def test_limits_and_bounds_are_counted_and_pressure_is_shown(system: Services) -> None:
    before = everything(system)
    for policy in ("reject", "drop_oldest"):
        put = system.request("PUT", f"/ojs/v1/queues/{QUEUE}/config", {"max_size": 2, "overflow_policy": policy})
        assert put.status == 200
        for _ in range(2):
            system.request("POST", "/ojs/v1/jobs", {"type": TYPE, "args": [], "options": {"queue": QUEUE}})
    for _ in range(2):
        system.push(TYPE, queue="limited", rate_limit={"key": "k", "concurrency": 1})
    system.fetch("limited", count=2)
    system.request("PUT", f"/ojs/v1/queues/{QUEUE}/config", {"overflow_policy": "reject"})
    jobs = [{"type": TYPE, "args": [], "options": {"queue": QUEUE}}]
    system.call("POST", "/jobs/batch", {"jobs": jobs * 2}, 429)
    changes = everything(system) - before
    assert changes["ojs_backpressure_dropped_total", QUEUE] == 2
    assert changes["ojs_backpressure_rejected_total", QUEUE] == 1
    assert changes["ojs_rate_limit_exceeded_total", "concurrency"] == 1
    projector = system.urls["projector"]

    def pressed() -> bool:
        return scrape(projector).of("ojs_backpressure_pressure") == {(QUEUE,): 1.0}

    until(pressed)


def test_the_summary_is_of_the_whole_system(system: Services) -> None:
    push(system)
    push(system)
    push(system, queue="measured-too")
    system.call("POST", "/workers/heartbeat", {"worker_id": "w"})
    system.call("POST", "/workers/ack", {"job_id": fetch(system), "worker_id": "w"})
    fetch(system)
    summary = system.request("GET", "/ojs/v1/metrics").body
    assert summary.pop("uptime_seconds") >= 0
    assert summary.pop("avg_latency_ms") >= 0
    assert summary == {
        "jobs_enqueued_total": 3,
        "jobs_completed_total": 1,
        "jobs_failed_total": 0,
        "jobs_active": 1,
        "queues_active": 2,
        "workers_active": 1,
        "throughput_per_second": pytest.approx(1 / 300, abs=0.001),
    }
    assert system.request("GET", "/ojs/v1/metrics?format=xml").status == 400


def test_the_command_line_may_ask_for_prometheus_text_under_the_prefix(system: Services) -> None:
    found = scrape(system.url, path="/ojs/v1/metrics?format=prometheus")
    assert [labels[1] for labels in found.of("ojs_build_info")] == ["gateway"]
