"""A system that was restored into another namespace acts on nothing until it is released."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.cli import Cli
from support.system import TOGETHER, System
from support.waiting import until
from support.webhook_target import WebhookTarget

LOCAL = ("--webhook-insecure", "--webhook-private")

pytestmark = pytest.mark.slow


def runs(system: System) -> int:
    """Return how many jobs the cron entry of a system has made."""
    return int(system.call("GET", "/cron/each-second")["cron"]["run_count"])


def test_crons_webhooks_and_queues_of_a_rehearsal_wait_for_its_release(tmp_path: Path) -> None:
    """The receiver stands for the world; the live system beside it says how time goes on."""
    with (
        WebhookTarget.started() as target,
        System.started(tmp_path / "live", TOGETHER, *LOCAL, with_users=False) as live,
    ):
        cli = Cli(tmp_path, live.url)
        nats = ("--nats", live.nats_url)
        live.call("POST", "/webhooks/subscriptions", {"url": target.url, "events": ["job.enqueued"]}, 201)
        each_second = {"name": "each-second", "cron": "* * * * * *", "overlap_policy": "allow"}
        live.call("POST", "/cron", {**each_second, "type": "tick", "queue": "ticks", "args": []}, 201)
        waiting = live.push("a.b", queue="waits")["id"]
        live.push("a.b", queue="paused")
        live.call("POST", "/queues/paused/pause")
        soon = (datetime.now(UTC) + timedelta(seconds=30)).isoformat()
        delayed = live.push("a.b", queue="delayed", delay_until=soon)["id"]
        short = live.push("a.b", queue="paused", expires_at=soon)["id"]
        assert cli("backup", str(tmp_path / "kept"), *nats).code == 0
        rehearsal = (*nats, "--namespace", "rehearsal")
        restored = cli("restore", str(tmp_path / "kept"), *rehearsal)
        assert restored.code == 0, restored.err
        assert "'ojs-nats release --namespace rehearsal'" in restored.out
        with System.started(tmp_path / "rehearsal", TOGETHER, *LOCAL, *rehearsal) as system:
            there = Cli(tmp_path, system.url)
            new = system.push("a.b", queue="waits")["id"]
            before, ran = runs(live), runs(system)
            until(lambda: datetime.now(UTC).isoformat() > soon and runs(live) >= before + 3, 120)
            until(lambda: (live.job(delayed)["state"], live.job(short)["state"]) == ("available", "discarded"))
            after = live.push("a.b")["id"]
            until(lambda: after in target.subjects)  # the live one's webhooks are brought meanwhile
            states = [system.job(job_id)["state"] for job_id in (delayed, short)]
            assert (runs(system), states) == (ran, ["scheduled", "available"])
            assert system.fetch("waits", "delayed", "ticks", "paused", count=10) == []
            assert new not in target.subjects
            findings = {one["check"]: one for one in there("doctor", *rehearsal, "--json").json["findings"]}
            assert "waits for its release" in findings["maintenance"]["found"]
            assert "ojs-nats release" in findings["maintenance"]["remedy"]
            dry = there("release", *rehearsal, "--dry-run", "--json").json
            assert (dry["released"], dry["held"]["crons"], dry["held"]["webhooks"]) == (False, 1, 1)
            assert (dry["held"]["due"], dry["held"]["outlived"], dry["held"]["paused"]) == (1, 1, 1)
            asked = there("release", *rehearsal)
            assert (asked.code, "add --yes" in asked.err) == (1, True)
            assert system.fetch("waits") == []
            told = there("release", *rehearsal, "--yes")
            assert (told.code, "1 delayed job" in told.out, "1 job past `expires_at`" in told.out) == (0, True, True)
            got: list[Any] = []

            def all_handed_out() -> bool:
                got.extend(job["id"] for job in system.fetch("waits", "delayed", "paused", count=10))
                return {waiting, new, delayed} <= set(got)

            until(all_handed_out, 60)
            until(lambda: runs(system) > ran and new in target.subjects, 60)
            until(lambda: system.job(short)["state"] == "discarded")
            assert set(got) == {waiting, new, delayed}
            assert "doesn't wait" in there("release", *rehearsal, "--yes").out
