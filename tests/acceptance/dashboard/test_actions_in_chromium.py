"""Every action of every page, pressed in a browser: what comes of it is asked of the API. Real workers run the jobs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from acceptance.dashboard.conftest import NO_SCHEMA, Crew, OpenScreen
from ojs_engine.domain.transitions import LIVENESS_MS
from ojs_engine.jetstream.subjects import encode_token
from ojs_engine.store.workers.presence import WorkerRecord
from support.python_worker import pushed
from support.system import System
from support.waiting import eventually
from support.webhook_target import WebhookTarget

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

SECRET = "whsec_[A-Za-z0-9+/=_-]+"
LATER = "2099-01-01T00:00:00Z"


@pytest.fixture
def target() -> Iterator[WebhookTarget]:
    with WebhookTarget.started() as started:
        yield started


async def becomes(site: System, path: str, *members: tuple[str, object]) -> dict[str, Any]:
    """Return what the API tells once these members have these values."""
    found: dict[str, Any] = {}

    def members_have_these_values() -> bool:
        answer = site.request("GET", f"/ojs/v1{path}")
        found.clear()
        found.update(answer.body if answer.status == 200 else {})
        return all(found.get(name) == value for name, value in members)

    try:
        await eventually(members_have_these_values)
    except AssertionError as error:
        raise AssertionError(f"{path} is {found}, not {members}") from error
    return found


async def state_is(site: System, job_id: str, state: str) -> dict[str, Any]:
    return await becomes(site, f"/admin/jobs/{job_id}", ("state", state))


def in_state(site: System, state: str, queue: str) -> str:
    """Push a job and bring it into a state."""
    later = {"scheduled_at": LATER} if state == "scheduled" else {}
    job_id = pushed(site, "a.b", queue=queue, retry={"max_attempts": 2 if state == "retryable" else 1}, **later)
    if state in {"completed", "discarded", "retryable"}:
        [job] = site.fetch(queue, worker_id="w")
        outcome = {"error": {"code": "no", "message": "no"}} if state != "completed" else {}
        site.call("POST", "/workers/ack" if state == "completed" else "/workers/nack", {"job_id": job["id"], **outcome})
    if state == "cancelled":
        site.call("DELETE", f"/jobs/{job_id}")
    return job_id


OPERATIONS: dict[str, tuple[str, str, dict[str, object]]] = {
    "Retry": ("discarded", "retried", {"state": "available"}),
    "Cancel": ("available", "cancelled", {"state": "cancelled"}),
    "Set priority of": ("scheduled", "reprioritised", {"priority": 7}),
    "Delete": ("completed", "deleted", {}),
}


def changed(site: System, job_id: str, expected: dict[str, object]) -> bool:
    """Whether a job is as an operation makes it; gone, if that makes it nothing."""
    answer = site.request("GET", f"/ojs/v1/admin/jobs/{job_id}")
    if not expected:
        return answer.status == 404
    return answer.status == 200 and all(answer.body[name] == value for name, value in expected.items())


@pytest.mark.parametrize("operation", OPERATIONS)
async def test_the_jobs_that_are_selected_are_changed_and_those_that_match_once_they_are_counted_and_shown(
    screen: OpenScreen, site: System, operation: str
) -> None:
    before, done, after = OPERATIONS[operation]

    async def asked_for_its_priority() -> None:
        if operation == "Set priority of":
            await tab.fill("Priority, from -100 to 100", "7")

    queue = f"selected.{before}"
    first, second, other = (in_state(site, before, queue) for _ in range(3))
    tab = await screen()
    await tab.follow(f"/jobs?q=queue:{queue}")
    await tab.shows("3 jobs")
    for chosen in (first, second):
        await tab.click(f"Select job {chosen}")
    await tab.click(f"{operation} 2 jobs")
    await asked_for_its_priority()
    await tab.click(f"{operation} 2 jobs")
    await tab.shows(f"2 jobs {done}")
    assert [changed(site, one, after) for one in (first, second, other)] == [True, True, False]

    queue = f"matching.{before}"
    matching = [in_state(site, before, queue) for _ in range(3)]
    other = in_state(site, before, f"other.{before}")
    await tab.follow(f"/jobs?q=queue:{queue}")
    await tab.shows("3 jobs")
    await tab.click(f"{operation} all that match")
    await tab.shows(f"3 jobs would be {done}", f"queue:{queue}", matching[0][:8])
    assert not any(changed(site, one, after) for one in matching), "a dry run changes nothing"
    await asked_for_its_priority()
    await tab.click(f"{operation} all that match")
    await tab.shows(f"Done: 3 of 3 {done}")
    assert [changed(site, one, after) for one in (*matching, other)] == [True, True, True, False]


async def test_more_than_a_hundred_that_match_need_their_number_typed(screen: OpenScreen, site: System) -> None:
    jobs = [{"type": "a.b", "args": [number], "options": {"queue": "many"}} for number in range(150)]
    site.call("POST", "/jobs/batch", {"jobs": jobs}, 201)
    tab = await screen()
    await tab.follow("/jobs?q=queue:many")
    await tab.shows("150 jobs")
    await tab.click("Cancel all that match")
    await tab.shows("150 jobs would be cancelled")
    assert "Cancel all that match" not in await tab.offered()
    await tab.fill("Type 150 to confirm", "150")
    await tab.click("Cancel all that match")
    await tab.shows("Done: 150 of 150 cancelled")
    assert site.call("GET", "/jobs?queue=many&state=cancelled&limit=1")["pagination"]["total"] == 150


async def test_a_term_that_bulk_operations_do_not_know_is_named(screen: OpenScreen, site: System) -> None:
    pushed(site, "a.b", queue="sorted")
    tab = await screen()
    await tab.follow("/jobs?q=queue:sorted%20sort:priority")
    await tab.shows("1 job", "For all that match, leave out sort:priority.")
    assert "Cancel all that match" not in await tab.offered()


async def test_a_job_that_is_pushed_is_run_by_a_worker_and_pushed_again_with_changes(
    screen: OpenScreen, site: System, crew: Crew
) -> None:
    del crew
    tab = await screen(known=NO_SCHEMA)
    await tab.follow("/jobs")
    await tab.click("Push a job")
    await tab.fill("Type", "py.greet")
    await tab.fill("Arguments, a JSON array", '["Ada"')
    await tab.click("Push a job")
    await tab.shows("Arguments isn't JSON")
    await tab.fill("Arguments, a JSON array", '["Ada"]')
    await tab.fill("Options, a JSON object", '{"queue": "py"}')
    await tab.click("Push a job")
    await tab.shows("Hello, Ada")
    await tab.click("Push again")
    await tab.fill("Arguments, a JSON array", '["Grace", "Hi"]')
    await tab.click("Push again")
    await tab.shows("Hi, Grace")
    found = site.call("GET", "/jobs?queue=py&type=py.greet")["jobs"]
    assert [job["args"] for job in found] == [["Grace", "Hi"], ["Ada"]]


CARRIED: dict[str, object] = {
    "queue": "again",
    "priority": 7,
    "tags": ["red", "blue"],
    "schema": "urn:ojs:schema:a.b:v1",
    "version": "2.1",
    "timeout_ms": 1_500,
    "visibility_timeout": 77,
    "total_timeout": 900,
    "heartbeat_timeout": 20,
    "grace_period": 9,
    "result_ttl": 60,
    "result_size_limit": 4_096,
    "unique": {"keys": ["type", "args"], "period": "PT1H", "on_conflict": "reject"},
    "rate_limit": {"key": "smtp", "concurrency": 3},
    "retry": {"max_attempts": 4, "initial_interval": "PT3S", "jitter": False, "non_retryable_errors": ["E"]},
    "metadata": {"from": "elsewhere"},
    "scheduled_at": LATER,
    "expires_at": "2099-02-01T00:00:00Z",
}
"""All options of a job; `enqueue_ttl` says the same as `expires_at`."""
OF_THE_SERVER = {"id", "created_at", "enqueued_at", "timeline", "timers", "state", "cancelled_at", "leaves_at"}


async def test_a_job_is_pushed_again_with_all_that_it_carries(screen: OpenScreen, site: System) -> None:
    body = {"type": "a.b", "args": [1, "two"], "meta": {"tenant": "acme"}, "x_custom": {"of": "a client"}, "options": CARRIED}
    first = site.call("POST", "/jobs", body, 201)["job"]["id"]
    site.call("DELETE", f"/jobs/{first}")  # so that another like it isn't refused
    tab = await screen(known=(*NO_SCHEMA, "status of 409"))
    await tab.follow(f"/jobs/{first}")
    await tab.click("Push again")
    await tab.shows("It is unique")
    await tab.click("Push again")
    await tab.closes()
    [again] = (job["id"] for job in site.call("GET", "/jobs?queue=again&state=scheduled")["jobs"])
    before, after = (site.call("GET", f"/admin/jobs/{one}") for one in (first, again))
    assert set(before) - OF_THE_SERVER >= {*CARRIED, "x_custom"} - {"visibility_timeout"}
    assert {name: after.get(name) for name in before.keys() - OF_THE_SERVER} == {
        name: before[name] for name in before.keys() - OF_THE_SERVER
    }
    await tab.follow(f"/jobs/{again}")
    await tab.click("Push again")
    await tab.click("Push again")
    await tab.shows("matches the uniqueness key")
    assert site.call("GET", "/jobs?queue=again&state=scheduled")["pagination"]["total"] == 1


async def test_a_job_that_expired_is_pushed_again_without_its_time_and_says_so(screen: OpenScreen, site: System) -> None:
    soon = {"expires_at": "+PT1S", "queue": "expired"}
    job = pushed(site, "a.b", **soon)
    await state_is(site, job, "discarded")
    tab = await screen(known=NO_SCHEMA)
    await tab.follow(f"/jobs/{job}")
    await tab.click("Push again")
    await tab.shows("which is over and left out")
    await tab.click("Push again")
    await tab.closes()
    [again] = site.call("GET", "/jobs?queue=expired&state=available")["jobs"]
    assert "expires_at" not in again


async def test_what_is_taken_out_of_a_queue_s_settings_is_taken_back(screen: OpenScreen, site: System) -> None:
    before = {
        "max_size": 5,
        "concurrency": 2,
        "retention": {"completed": "P1D", "cancelled": "P2D"},
        "dead_letter": {"retention": {"max_age": "P3D", "max_count": 9}},
    }
    site.call("POST", "/queues", {"name": "bounded", "config": before}, 201)
    tab = await screen()
    await tab.follow("/queues/bounded")
    await tab.click("Configure")
    after = {
        "max_depth": 6,
        "retention": {"completed": "P1D"},
        "dead_letter": {"retention": {"max_age": "P3D"}},
    }
    await tab.fill("Settings, a JSON object", json.dumps(after))
    await tab.click("Configure")
    await tab.closes()
    own = site.call("GET", "/admin/queues/bounded")["own_config"]
    assert own == {
        "max_size": 6,
        "retention": {"completed": "PT24H", "dead_letter": "PT72H"},  # the age of dead letters by both of its names
        "dead_letter": {"retention": {"max_age": "P3D"}},
    }
    await tab.click("Configure")
    await tab.fill("Settings, a JSON object", "{}")
    await tab.click("Configure")
    await tab.closes()
    assert site.call("GET", "/admin/queues/bounded")["own_config"] == {}


async def test_the_page_of_a_failed_step_leads_to_the_retry_of_its_workflow(screen: OpenScreen, site: System) -> None:
    step = {"type": "a.b", "args": [], "options": {"queue": "step", "retry": {"max_attempts": 1}}}
    flow = site.call("POST", "/workflows", {"type": "chain", "steps": [step, step]}, 201)["workflow"]["id"]
    [job] = site.fetch("step", worker_id="w", wait_ms=10_000)
    site.call("POST", "/workers/nack", {"job_id": job["id"], "error": {"code": "Boom", "message": "no"}})
    tab = await screen()
    await tab.follow(f"/jobs/{job['id']}")
    await tab.shows("then retry its workflow from where it failed", f"ojs-nats workflows retry {flow}")
    await tab.click("Retry")
    await tab.shows("This runs the job alone")
    await tab.click("Retry the workflow from where it failed")
    await tab.shows("Graph")
    await tab.closes()
    assert site.job(job["id"])["state"] == "discarded"
    await tab.click("Retry from where it failed")
    await becomes_flow(site, flow, "running")


async def becomes_flow(site: System, flow: str, state: str) -> None:
    def it_is() -> bool:
        return bool(site.call("GET", f"/workflows/{flow}")["workflow"]["state"] == state)

    await eventually(it_is)


async def test_a_waiting_job_runs_now_gets_a_priority_is_cancelled_and_retried(screen: OpenScreen, site: System) -> None:
    job = in_state(site, "scheduled", "single")
    tab = await screen()
    await tab.follow(f"/jobs/{job}")
    await tab.click("Priority")
    await tab.fill("Priority, from -100 to 100", "101")
    assert await tab.page.run("!document.querySelector('dialog form').checkValidity()"), "101 is too much"
    await tab.fill("Priority, from -100 to 100", "42")
    await tab.click("Priority")
    await tab.closes()
    await becomes(site, f"/admin/jobs/{job}", ("priority", 42))
    await tab.click("Run now")
    await state_is(site, job, "available")
    await tab.click("Cancel")
    await tab.fill("Reason", "not needed")
    await tab.click("Cancel")
    await state_is(site, job, "cancelled")
    await tab.shows("not needed")
    await tab.click("Retry")
    await state_is(site, job, "available")


async def test_a_job_that_runs_is_stopped_at_its_worker(screen: OpenScreen, site: System, crew: Crew) -> None:
    job = pushed(site, "py.wait", "held", "never", queue="py.wait")
    tab = await screen()
    await tab.follow(f"/jobs/{job}")
    await tab.shows("active")
    await tab.click("Cancel")
    await tab.click("Cancel")
    await state_is(site, job, "cancelled")
    notes = crew.folder / "notes"

    def its_handler_was_stopped() -> bool:
        return "held stopped 1" in notes.read_text(encoding="utf-8")

    await eventually(its_handler_was_stopped)
    await tab.shows("cancelled")


async def test_a_queue_is_made_paused_resumed_configured_and_limited(screen: OpenScreen, site: System) -> None:
    tab = await screen(known=("status of 400",))
    await tab.follow("/queues")
    await tab.click("New queue")
    await tab.fill("Name", "made.here")
    await tab.click("New queue")
    await tab.shows("made.here")
    await tab.click("Pause", row="made.here")
    await becomes(site, "/admin/queues/made.here", ("paused", True))
    await tab.click("Resume", row="made.here")
    await becomes(site, "/admin/queues/made.here", ("paused", False))
    await tab.click("made.here")
    await tab.titled("made.here")
    await tab.click("Configure")
    await tab.fill("Settings, a JSON object", json.dumps({"max_size": "many"}))
    await tab.click("Configure")
    await tab.shows("max_size")
    await tab.fill("Settings, a JSON object", json.dumps({"max_size": 77}))
    await tab.click("Configure")
    await tab.closes()
    assert site.call("GET", "/admin/queues/made.here")["config"]["max_size"] == 77
    await tab.click("Limit")
    await tab.fill("Jobs at a time", "3")
    await tab.click("Limit")
    await tab.closes()
    assert site.call("GET", "/admin/queues/made.here")["config"]["concurrency"] == 3
    await tab.click("Pause")
    await becomes(site, "/admin/queues/made.here", ("paused", True))


async def test_a_queue_is_purged_once_its_name_is_typed(screen: OpenScreen, site: System) -> None:
    waiting = [pushed(site, "a.b", queue="purged") for _ in range(3)]
    kept = in_state(site, "completed", "purged.not")
    tab = await screen()
    await tab.follow("/queues/purged")
    await tab.click("Purge")
    await tab.shows("3 waiting jobs would be removed for good.")
    await tab.fill("Type purged to confirm", "purge")
    assert "Purge" not in await tab.offered()
    await tab.fill("Type purged to confirm", "purged")
    await tab.click("Purge")
    await tab.shows("3 jobs removed.")
    assert [site.request("GET", f"/ojs/v1/jobs/{one}").status for one in (*waiting, kept)] == [404, 404, 404, 200]


async def test_a_cron_entry_is_made_with_a_preview_run_edited_paused_and_deleted(
    screen: OpenScreen, site: System, crew: Crew
) -> None:
    del crew
    # Between the entry's deletion and the list that follows, its page may ask for it once more.
    tab = await screen(known=("status of 400", "status of 404 (Not Found)"))
    await tab.follow("/crons")
    await tab.click("New entry")
    await tab.fill("Name", "greeting")
    await tab.fill("Schedule", "0 25 * * *")
    await tab.shows("hour 25 is not from 0 to 23")
    await tab.fill("Schedule", "30 4 * * *")
    await tab.shows("Every day at 04:30. Next runs:")
    await tab.fill("Time zone", "Europe/Berlin")
    await tab.fill("Type of its jobs", "py.greet")
    await tab.fill("Arguments, a JSON array", '["Cron"]')
    await tab.click("New entry")
    await tab.click("greeting")
    await tab.titled("greeting")
    await tab.click("Run now")
    await tab.shows("Its job is pushed.", "by hand")

    def its_job_has_run() -> bool:
        executions = site.call("GET", "/crons/greeting/history")["executions"]
        return [one.get("job_state") for one in executions] in (["completed"], ["available"])

    await eventually(its_job_has_run)
    await tab.click("Edit")
    await tab.fill("Schedule", "0 5 * * 1-5")
    await tab.click("Edit")
    await tab.shows("weekdays")
    await tab.click("Pause")
    found = await becomes(site, "/crons/greeting")
    await becomes_cron(site, expression="0 5 * * 1-5", enabled=False)
    await tab.click("Resume")
    await becomes_cron(site, enabled=True)
    await tab.click("Delete")
    await tab.fill("Type greeting to confirm", "greeting")
    await tab.click("Delete")
    await tab.titled("Crons")
    assert found
    assert site.request("GET", "/ojs/v1/crons/greeting").status == 404


async def becomes_cron(site: System, **members: object) -> None:
    def entry_has_these_members() -> bool:
        cron = site.call("GET", "/crons/greeting")["cron"]
        return all(cron[name] == value for name, value in members.items())

    await eventually(entry_has_these_members)


async def test_a_workflow_is_cancelled_and_one_that_failed_goes_on_from_there(
    screen: OpenScreen, site: System, crew: Crew
) -> None:
    del crew
    steps = [{"type": "a.b", "args": [], "options": {"queue": "flow"}}] * 2
    flow = site.call("POST", "/workflows", {"type": "chain", "name": "stopped", "steps": steps}, 201)["workflow"]["id"]
    tab = await screen()
    await tab.follow(f"/workflows/{flow}")
    await tab.click("Cancel")
    await tab.click("Cancel")
    await tab.closes()
    assert site.call("GET", f"/workflows/{flow}")["workflow"]["state"] == "cancelled"

    steps = [
        {"type": "py.greet", "args": ["Ada"], "options": {"queue": "py"}},
        {"type": "py.fail", "args": ["discard"], "options": {"queue": "py"}},
    ]
    flow = site.call("POST", "/workflows", {"type": "chain", "name": "broken", "steps": steps}, 201)["workflow"]["id"]
    await tab.follow(f"/workflows/{flow}")
    await tab.shows("failed", "it makes no sense")
    before = site.call("GET", f"/workflows/{flow}")["workflow"]
    await tab.click("Retry from where it failed")

    def its_failed_step_ran_again() -> bool:
        after = site.call("GET", f"/workflows/{flow}")["workflow"]
        return bool(after["state"] == "failed" and after["steps"][1] != before["steps"][1])

    await eventually(its_failed_step_ran_again)
    assert site.call("GET", f"/workflows/{flow}")["workflow"]["steps"][0] == before["steps"][0]


async def test_a_real_worker_is_quieted_resumed_and_terminated(screen: OpenScreen, site: System, crew: Crew) -> None:
    worker = crew.start("--queues", "py.other")
    [name] = [one["id"] for one in site.call("GET", "/admin/workers")["items"] if one["pid"] == worker.pid]
    tab = await screen()
    await tab.follow("/workers")
    await tab.click("Quiet", row=name)

    async def is_now(state: str) -> None:
        def its_state_is() -> bool:
            return worker.state(site) == state

        await eventually(its_state_is)

    await is_now("quiet")
    await tab.click("Resume", row=name)
    await is_now("running")
    await tab.click("Terminate", row=name)
    await tab.click("Terminate")

    def it_has_ended() -> bool:
        return worker.process.poll() is not None

    await eventually(it_has_ended)


async def test_a_stale_worker_is_forgotten(screen: OpenScreen, site: System) -> None:
    silent = WorkerRecord(id="silent", queues=("q",), seen_at=int(time.time() * 1_000) - 2 * LIVENESS_MS)
    await asyncio.to_thread(site.put_record, f"worker.{encode_token(silent.id)}", msgspec.json.encode(silent))
    tab = await screen()
    await tab.follow("/workers?state=stale")
    await tab.click("Forget", row="silent")
    await tab.hides("silent")

    def nobody_knows_it() -> bool:
        return "silent" not in {one["id"] for one in site.call("GET", "/admin/workers")["items"]}

    await eventually(nobody_knows_it)


async def test_all_workers_are_told_at_once(screen: OpenScreen, site: System) -> None:
    site.call("POST", "/workers/heartbeat", {"worker_id": "heard", "active_jobs": [], "queues": ["q"]})
    tab = await screen()
    await tab.follow("/workers")
    await tab.click("Direct all")
    await tab.fill("What they are told", "quiet")
    await tab.click("Direct all")
    await tab.closes()
    beat = site.call("POST", "/workers/heartbeat", {"worker_id": "heard", "active_jobs": [], "queues": ["q"]})
    assert beat["state"] == "quiet"
    await tab.click("Direct all")
    await tab.fill("What they are told", "resume")
    await tab.click("Direct all")
    await tab.closes()


async def test_a_limit_is_overridden_and_the_override_ended(screen: OpenScreen, site: System) -> None:
    tab = await screen(known=("status of 400",))
    await tab.follow("/limits")
    await tab.click("Override a key")
    await tab.fill("Key", "smtp/eu")
    await tab.fill("Jobs at a time", "4")
    await tab.click("Override a key")
    await tab.shows("key must match")
    await tab.fill("Key", "smtp.eu")
    await tab.fill("Jobs at a time", "4")
    await tab.click("Override a key")
    await tab.shows("smtp.eu", "0 of 4")
    await tab.click("Override", row="smtp.eu")
    await tab.fill("Jobs at a time", "2")
    await tab.click("Override")
    await tab.shows("0 of 2")
    assert overrides(site) == {"smtp.eu": 2}
    await tab.click("End override", row="smtp.eu")

    def none_is_overridden() -> bool:
        return not overrides(site)

    await eventually(none_is_overridden)


def overrides(site: System) -> dict[str, int]:
    items = site.call("GET", "/rate-limits")["items"]
    return {one["key"]: one["concurrency"]["limit"] for one in items if one.get("override")}


async def test_a_webhook_is_made_tested_rotated_paused_and_deleted(
    screen: OpenScreen, site: System, target: WebhookTarget
) -> None:
    tab = await screen()
    await tab.follow("/webhooks")
    await tab.click("Subscribe a URL")
    await tab.fill("URL", target.url)
    await tab.fill("Events", "job.enqueued")
    await tab.fill("Queues", "hooked")
    await tab.click("Subscribe a URL")
    first = await tab.secret(SECRET)
    await tab.click("Test", row=target.url)
    await tab.shows("It answered 200")
    assert target.got[0].signed_by(first)
    await tab.click("Rotate secret", row=target.url)
    await tab.click("Rotate secret")
    secret = await tab.secret(SECRET)
    assert secret != first
    job = pushed(site, "a.b", queue="hooked")

    def it_came_signed_by_the_new_secret() -> bool:
        return job in target.subjects and target.got[-1].signed_by(secret)

    await eventually(it_came_signed_by_the_new_secret)
    await tab.click("Pause", row=target.url)

    async def is_active(value: bool) -> None:
        def it_is() -> bool:
            [hook] = site.call("GET", "/webhooks/subscriptions")["subscriptions"]
            return bool(hook["active"] == value)

        await eventually(it_is)

    await is_active(False)
    await tab.click("Resume", row=target.url)
    await is_active(True)
    await tab.click("Delete", row=target.url)
    await tab.click("Delete")
    await tab.shows("Nobody has subscribed a URL to events.")
    assert site.call("GET", "/webhooks/subscriptions")["subscriptions"] == []


async def test_a_delivery_that_was_given_up_is_delivered_now(screen: OpenScreen, site: System, target: WebhookTarget) -> None:
    target.answer = lambda _got: (400, {})
    made = {"url": target.url, "events": ["job.enqueued"], "filter": {"queues": ["failing"]}}
    hook = site.call("POST", "/webhooks/subscriptions", made, 201)["subscription"]["id"]
    job = pushed(site, "a.b", queue="failing")
    tab = await screen()
    await tab.follow(f"/webhooks?subscription={hook}")
    await tab.shows("dead")
    target.answer = lambda _got: (200, {})
    came = len(target.got)
    await tab.click("Deliver now")

    def it_came_again() -> bool:
        return len(target.got) > came and job in target.subjects[came:]

    await eventually(it_came_again)
    site.call("DELETE", f"/webhooks/subscriptions/{hook}")


async def test_maintenance_begins_and_ends(screen: OpenScreen, site: System) -> None:
    tab = await screen()
    await tab.follow("/system")
    await tab.click("Begin maintenance")
    await tab.fill("Reason", "a new disk")
    await tab.click("Begin maintenance")
    await tab.shows("There is maintenance", "a new disk")
    assert site.call("GET", "/admin/system/maintenance")["maintenance"] is True
    await tab.click("End maintenance")
    await tab.click("End maintenance")
    await tab.shows("There is none: jobs are fetched.")
    assert site.call("GET", "/admin/system/maintenance")["maintenance"] is False


async def test_a_record_that_cannot_be_read_is_removed(screen: OpenScreen, site: System) -> None:
    await asyncio.to_thread(site.put_record, "queue.torn", b'{"torn')
    tab = await screen()
    await tab.follow("/system?part=unreadable")
    await tab.shows("torn")
    await tab.click("Remove", row="torn")
    await tab.click("Remove")
    await tab.shows("All records can be read.")
    assert site.call("GET", "/admin/unreadable")["items"] == []
