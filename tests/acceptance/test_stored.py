"""What earlier versions have stored is read and finished by this one (tests/support/stored.py)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest

from support.nats import NatsServer
from support.stored import DAY_S, LARGE, QUEUES, Stored, aged, names, unpacked
from support.system import Answer, Gateway, Processes, send
from support.waiting import until
from support.webhook_target import WebhookTarget

ATTEMPTS: Final = {
    **dict.fromkeys(("delayed", "pending", "plain", "unique", "bounded", "bounded too", "paused", "pooled"), 1),
    **dict.fromkeys(("limited", "single too", "dead letter"), 1),
    **dict.fromkeys(("active", "retrying", "permitted", "single"), 2),
}
"""Jobs that a worker finishes, by the attempt in which it does: those that were held have lost their leases."""
STAYS: Final = {"far": "scheduled", "discarded": "discarded", "cancelled": "cancelled", "completed": "completed"}
STEPS: Final = {"flow.second", "flow.third", "flow.b", "flow.d", "flow.end", "flow.root", "flow.leaf"}
"""Steps of workflows that weren't finished."""
CHANGES: Final = {"next_run_at", "active_workers", "rate_limit_until"}
"""Members that change without anybody's doing."""
LEAVES: Final = {"/progress": 7, "/workflows/": 7, "/checkpoint": 30, "/rate-limits": 30}
"""Days after which an answer may be another, by a part of its path: of workflows that of the one that has ended."""
HOOKS: Final = ("--webhook-insecure", "--webhook-private")


class Opened(Gateway):
    """A gateway on a folder, asked with the key that is stored there."""

    def __init__(self, url: str, stored: Stored) -> None:
        super().__init__(url)
        self._ids = stored.ids
        self.token = stored.token
        self.fetched: dict[str, Any] = {}
        """Jobs that a worker got, by their ids."""
        self.way = self._with_key

    def _with_key(self, method: str, url: str, body: object, seconds: float, headers: Mapping[str, str]) -> Answer:
        return send(method, url, body, seconds=seconds, headers={**headers, "Authorization": f"Bearer {self.token}"})

    def named(self, name: str) -> Any:
        """Return one of the folder's jobs as it is now."""
        return self.job(self._ids[name])

    def work(self) -> None:
        """Fetch once from each queue, and finish what comes."""
        for queue in QUEUES:
            jobs = self.fetch(queue, worker_id="finisher", count=10, wait_ms=0)
            assert len(jobs) < 2 or queue not in {"limited", "single"}, "more than the limit admits"
            for job in jobs:
                assert job["id"] not in self.fetched, f"{job} runs again"
                self.fetched[job["id"]] = job
                holder = {"job_id": job["id"], "worker_id": "finisher", "attempt": job["attempt"]}
                self.call("POST", "/workers/ack", holder)


def differences(then: Any, now: Any, place: str) -> Iterator[str]:
    """Yield what is missing now or has another value; members that have come since don't count."""
    if isinstance(then, dict) and isinstance(now, dict):
        for name, value in then.items():
            if name not in CHANGES:
                yield from differences(value, now.get(name), f"{place}.{name}")
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for number, (one, other) in enumerate(zip(then, now, strict=True)):
            yield from differences(one, other, f"{place}[{number}]")
    elif then != now:
        yield f"{place}: {then!r} was stored, {now!r} is read"


def may_be_gone(path: str, stored: Stored, days: float) -> bool:
    """Return whether what was answered has left by itself."""
    if path.startswith("/workflows/") and not path.endswith(stored.ids["workflow.ended"]):
        return False
    return any(part in path and days >= after for part, after in LEAVES.items())


def is_read(opened: Opened, stored: Stored, days: float) -> None:
    """Everything is there as it was answered then, before any service acts on what is due."""
    assert send("GET", f"{opened.url}/ojs/v1/queues").status == 401
    wrong: list[str] = []

    def same() -> bool:
        wrong[:] = [
            line
            for path, then in stored.answers.items()
            if not may_be_gone(path, stored, days)
            for line in differences(then, opened.request("GET", f"/ojs/v1{path}").body, path)
        ]
        return not wrong

    try:
        until(same)  # a projector builds its index anew
    except AssertionError as error:
        raise AssertionError(wrong) from error
    assert opened.named("large")["result"] == LARGE
    assert opened.call("GET", "/admin/unreadable")["items"] == []
    found = {job["id"] for job in opened.call("GET", "/jobs?limit=200")["jobs"]}
    assert found >= {job_id for name, job_id in stored.ids.items() if not name.startswith("workflow.")}


def is_held_to(opened: Opened, stored: Stored) -> None:
    """Settings, locks and bounds that were stored hold for what comes."""
    only = {"type": "stored.job", "args": ["only"]}
    unique = {"keys": ["type", "args"], "period": "P3650D", "on_conflict": "reject"}
    refused = opened.call("POST", "/jobs", {**only, "options": {"queue": "plain", "unique": unique}}, 409)
    assert refused["error"]["details"]["existing_job_id"] == stored.ids["unique"]
    opened.call("POST", "/jobs", {**only, "options": {"queue": "bounded"}}, 429)
    opened.call("POST", "/jobs", {"type": "stored.schema", "args": [1]}, 400)
    assert opened.push("stored.other", queue="plain")["max_attempts"] == 4
    assert opened.fetch("paused", wait_ms=0) == []


def is_finished(opened: Opened, stored: Stored, days: float) -> None:
    """All that was unfinished runs once, to its end."""
    opened.call("POST", "/queues/paused/resume")
    opened.call("POST", f"/jobs/{stored.ids['pending']}/activate")
    opened.call("POST", f"/dead-letter/{stored.ids['dead letter']}/retry")
    flows = [flow for name, flow in stored.ids.items() if name.startswith("workflow.") and name != "workflow.ended"]

    def unfinished() -> list[Any]:
        opened.work()
        states = {f"workflow {flow}": opened.call("GET", f"/workflows/{flow}")["workflow"]["state"] for flow in flows}
        states |= {name: opened.named(name)["state"] for name in ATTEMPTS}
        return [(name, state) for name, state in states.items() if state != "completed"]

    def all_completed() -> bool:
        left[:] = unfinished()
        return not left

    left: list[Any] = []
    try:
        until(all_completed)
    except AssertionError as error:
        raise AssertionError(left) from error
    assert {name: opened.fetched[stored.ids[name]]["attempt"] for name in ATTEMPTS} == ATTEMPTS
    if days < LEAVES["/checkpoint"]:
        assert opened.fetched[stored.ids["active"]]["checkpoint"]["state"] == {"row": 5}
    assert {job["type"] for job in opened.fetched.values() if job["queue"] == "flow"} == STEPS
    assert stored.ids["expiring"] not in opened.fetched
    until(lambda: opened.named("expiring")["state"] in {"discarded", "cancelled"})
    assert {name: opened.named(name)["state"] for name in STAYS} == STAYS
    assert opened.push("stored.other", queue="bounded")["state"] == "available"
    assert opened.call("GET", "/admin/unreadable")["items"] == []


def goes_on(opened: Opened, stored: Stored, target: WebhookTarget, *, waiting: int) -> None:
    """Crons tick, a subscription hears of what ends, and so does whoever reads events.

    `waiting` is how many cron runs that wait for one before are waited for; a scheduler looks after them each 15 s.
    """

    def ticked() -> bool:
        opened.work()
        runs = Counter(job["meta"]["cron_name"] for job in opened.fetched.values() if job["queue"] == "cron")
        # Both that are due once a year had been triggered, one of them twice; they may have come due since.
        return runs["often"] >= 1 and runs["yearly"] >= 1 and runs["queued"] > waiting

    until(ticked, 90.0)
    assert {cron["name"]: cron for cron in opened.call("GET", "/cron")["crons"]}["stopped"]["run_count"] == 0

    def told() -> bool:
        events = opened.call("GET", "/events?types=job.completed&limit=200")["events"]
        return bool({event["data"]["job_id"] for event in events} & {stored.ids[name] for name in ATTEMPTS})

    until(told)
    [subscription] = opened.call("GET", "/webhooks/subscriptions")["subscriptions"]
    opened.call("PATCH", f"/webhooks/subscriptions/{subscription['id']}", {"url": target.url, "active": True})

    def heard() -> bool:
        opened.push("stored.heard", queue="plain")
        opened.work()
        return any(got.event["data"]["job_type"] == "stored.heard" for got in target.got)

    until(heard)
    assert target.got[0].signed_by("stored-secret-of-a-test")


def test_there_are_folders_of_the_last_version_and_of_what_came_since() -> None:
    assert set(names()) >= {"0.2.0", "before-0.3.0"}


@pytest.mark.parametrize("days", [0, pytest.param(365, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", names())
def test_what_a_version_has_stored_is_read_and_finished(name: str, days: int, tmp_path: Path) -> None:
    stored = unpacked(name, tmp_path / "nats")
    age = days or (time.time() - stored.made) / DAY_S
    with ExitStack() as stack:
        target = stack.enter_context(WebhookTarget.started())
        server = stack.enter_context(NatsServer(tmp_path / "nats"))
        if days:
            asyncio.run(aged(server.url, days))
        processes = Processes(tmp_path / "services", server.url)
        stack.callback(processes.stop)
        gateway, projector = processes.start("gateway", *HOOKS), processes.start("projector")
        opened = Opened(str(gateway.ready()["url"]), stored)
        projector.ready()
        is_read(opened, stored, age)
        is_held_to(opened, stored)
        for service in [processes.start(one) for one in ("scheduler", "reaper", "coordinator")]:
            service.ready()
        processes.start("webhooks", *HOOKS).ready()
        is_finished(opened, stored, age)
        goes_on(opened, stored, target, waiting=1 if days else 0)
