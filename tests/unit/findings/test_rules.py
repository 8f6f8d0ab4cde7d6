"""What the rules make of facts that a test can't bring about."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from msgspec import Raw

from ojs_engine.domain.queues.record import Maintenance, QueueRecord, RestoreMark
from ojs_engine.domain.storage_room import StorageLevel
from ojs_engine.jetstream.streams import Described
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.operations.finding import Finding, Reason, problem, warning
from ojs_engine.store.workers.presence import ServiceBeat, WorkerRecord
from ojs_features.findings import server_rules as server
from ojs_features.findings import work_rules as work
from ojs_features.findings.answers import MOST, unknown, worst_first
from ojs_features.webhooks.findings import findings
from ojs_features.webhooks.records import DeliveryRecord, Subscription, TargetHealth
from ojs_index.asking.messages import (
    ProjectorStatus,
    QueueFacts,
    UnreadablePage,
    UnreadableRow,
    WorkerPage,
    WorkerRow,
    WorkerSummary,
)
from ojs_runtime.stream_check import streams
from support.tables import each

NOW = 1_800_000_000_000
MINUTE = 60_000
DAY = 1_440 * MINUTE


def said(found: Iterable[Finding]) -> list[tuple[str, str, str]]:
    """Severity, message and link; every finding says what follows and what to do."""
    listed = list(found)
    assert all(one.meaning and one.remedy for one in listed)
    return [(one.severity, one.message, one.link or "") for one in listed]


def level(used: int) -> StorageLevel:
    return StorageLevel("disk", "the disk", used, 110, 10)


def beat(role: str, version: str) -> ServiceBeat:
    return ServiceBeat(role, f"{role}:1", NOW, NOW, version=version)


def status(**changes: Any) -> ProjectorStatus:
    usual: dict[str, Any] = {"applied": 1, "lag_ms": 0, "relaying": True, "relayed": 1, "events": 1, "repaired": {}}
    return ProjectorStatus(instance="p", **(usual | changes))


@each(
    ("found", "severity"),
    [
        (server.nats(1.0, None, None), None),
        (server.nats(None, "no leader", None), "problem"),
        (server.nats(1.0, None, "lost"), "problem"),
        (server.nats(500.0, None, None), "warning"),
        (server.nats(1.0, None, None, "nats-server 2.14.3 has faults"), "warning"),
        (server.storage([level(80)], None, None), None),
        (server.storage([level(81)], None, None), "warning"),
        (server.storage([level(100)], "the disk is full", None), "problem"),
        (server.storage([], None, "no answer"), "problem"),
        (server.services([], {}), None),
        (server.services(["reaper"], {}), "problem"),
        (server.versions([]), None),
        (server.versions([beat("gateway", "0.2.0"), beat("reaper", "0.2.0")]), None),
        (server.versions([beat("gateway", "0.2.0"), beat("reaper", "0.3.0")]), "warning"),
        (server.versions([beat("gateway", "0.2.0"), beat("reaper", "")]), "warning"),
        (server.projector(None, "no projector answers"), "problem"),
        (server.projector(status(), None), None),
        (server.projector(status(lag_ms=5_000), None), "warning"),
        (server.projector(status(lag_ms=60_000), None), "problem"),
        (server.projector(status(partial=True, progress=0.25), None), "warning"),
        (server.projector(status(repaired={"record": 3}), None), "problem"),
        (server.limits(1_600, 2_000), None),
        (server.limits(1_601, 2_000), "warning"),
        (server.lost([], []), None),
        (server.lost(["queue.mail"], []), "problem"),
        (server.durability(3, test_mode=False), None),
        (server.durability(1, test_mode=False), "warning"),
        (server.durability(3, test_mode=True), "warning"),
    ],
)
def test_the_server(found: Iterable[Finding], severity: str | None) -> None:
    assert [one[0] for one in said(found)] == ([] if severity is None else [severity])


def described(*, info: dict[str, Any] | None = None, cluster: dict[str, Any] | None = None, **config: Any) -> Described:
    [wanted, *_] = StoreConfig().streams()
    return Described(wanted, info or {"config": wanted | config, "cluster": cluster or {}}, for_jobs=True)


def test_streams_that_are_as_they_must_be_are_not_told() -> None:
    copies = {"name": "c", "leader": "n1", "replicas": [{"name": "n2", "current": True}, {"name": "n3", "current": True}]}
    assert said(streams([described(), described(cluster=copies), described(num_replicas=3, max_consumers=7)])) == []


def test_streams_that_are_gone_changed_or_lack_a_copy_are_problems() -> None:
    gone = described(info={"error": {"description": "stream not found"}})
    lost = [{"name": "n2", "offline": True}, {"name": "n3", "current": False}, {"name": "n4", "current": True}]
    lacking = described(cluster={"name": "c", "leader": "n1", "replicas": lost})
    found = said(streams([gone, described(max_msgs=1_000), lacking, described(cluster={"name": "c"})]))
    assert {severity for severity, _, _ in found} == {"problem"}
    assert [message.partition(" is not set up")[0] for _, message, _ in found] == [
        "stream KV_ojs can't be looked at: stream not found",
        "stream KV_ojs",
        "copies of stream KV_ojs are not up to date: n2 (offline), n3 (behind)",
        "stream KV_ojs has no leader",
    ]


def test_unreadable_records_are_named_up_to_five() -> None:
    rows = [UnreadableRow("job", str(n), n, NOW, 2, "torn") for n in range(5)]
    [(severity, message, link)] = said(server.records(UnreadablePage(records=rows, total=7)))
    assert (severity, link) == ("problem", "/system?part=unreadable")
    assert message.startswith("records can't be read: job 0: torn; ")
    assert message.endswith("job 4: torn and 2 more")
    assert not said(server.records(UnreadablePage(records=[], total=0)))


def queues(
    *facts: QueueFacts, paused: Iterable[str] = (), held: bool = False, cause: Reason | None = None
) -> list[tuple[str, str, str]]:
    causes = {} if cause is None else {"q": cause}
    return said(work.queues(facts, list(paused), {}, NOW, held=held, causes=causes))


def waits(minutes: float, **members: Any) -> QueueFacts:
    return QueueFacts(name="q", available=2, oldest_at=NOW - int(minutes * MINUTE), **members)


def test_jobs_that_wait_long_are_a_problem_without_workers_and_a_warning_with() -> None:
    assert queues(waits(6)) == [
        ("problem", "2 jobs of queue q wait, the oldest for 6m, and no worker fetches from it", "/queues/q")
    ]
    assert queues(waits(6, served=True)) == [("warning", "2 jobs of queue q wait, the oldest for 6m", "/queues/q")]
    assert queues(waits(5, served=True, last_at=NOW)) == []
    assert queues(waits(5)) == []


def test_nothing_is_late_in_a_paused_queue_or_during_maintenance() -> None:
    assert queues(waits(6), paused=["q"]) == [("warning", "queue q is paused, and 2 jobs in it can't start", "/queues/q")]
    assert queues(QueueFacts(name="q"), paused=["q"]) == []
    assert queues(waits(6), held=True) == []


def test_a_queue_is_starved_whose_workers_take_nothing_of_it() -> None:
    [(severity, message, _)] = queues(waits(2, served=True, last_at=NOW - 2 * MINUTE))
    assert (severity, message) == ("warning", "queue q is starved: 2 jobs there, and none was handed out lately")
    assert queues(waits(2, served=True, last_at=NOW)) == []


LIMITED = Reason(
    code="limited", message="The limit of queue q leaves no room: 1 of 1 used by its concurrency.", remedy="It goes on."
)
UNHANDLED = Reason(code="no_handler", message="None of the 1 worker of queue q handles email.send.", remedy="Deploy one.")


def test_a_queue_that_its_limit_holds_back_is_not_starved() -> None:
    assert queues(waits(2, served=True), cause=LIMITED) == []
    assert queues(waits(6, served=True), cause=LIMITED) == [
        (
            "warning",
            "2 jobs of queue q wait, the oldest for 6m: the limit of queue q leaves no room: 1 of 1 used by its concurrency",
            "/queues/q",
        )
    ]


def test_a_type_without_a_handler_is_a_problem_as_soon_as_its_queue_is_late() -> None:
    for minutes in (2, 6):
        [(severity, message, _)] = queues(waits(minutes, served=True), cause=UNHANDLED)
        assert severity == "problem"
        assert message.endswith(f"for {minutes}m: none of the 1 worker of queue q handles email.send")


def test_only_late_queues_with_workers_are_explained() -> None:
    facts = [waits(2), waits(2, served=True), waits(1, served=True, last_at=NOW), QueueFacts(name="r", served=True)]
    assert work.late(facts, [], {}, NOW, held=False) == [facts[1]]
    assert work.late(facts, [], {"q": 3 * MINUTE}, NOW, held=False) == []
    assert work.late(facts, ["q"], {}, NOW, held=False) == []
    assert work.late(facts, [], {}, NOW, held=True) == []


@pytest.mark.parametrize(("completed", "failed", "told"), [(14, 5, False), (16, 4, False), (15, 5, True), (0, 20, True)])
def test_a_queue_fails_by_the_rate_of_enough_attempts(completed: int, failed: int, told: bool) -> None:
    found = queues(QueueFacts(name="q", completed=completed, failed=failed))
    assert bool(found) is told
    assert all(link == "/jobs?q=queue%3Aq%20state%3Aretryable" for _, _, link in found)


def test_maintenance_is_told_with_its_reason_until_it_ends() -> None:
    record = QueueRecord(name="m", state="paused", maintenance=Maintenance(reason="moving", ends_at=NOW + 1))
    assert said(work.maintenance(record, NOW, "shop")) == [("warning", "there is maintenance: moving", "/system")]
    assert not said(work.maintenance(record, NOW + 1, "shop"))
    assert not said(work.maintenance(None, NOW, "shop"))


def test_a_restored_system_that_waits_for_its_release_is_told_with_the_command() -> None:
    record = QueueRecord(name="m", restored=RestoreMark(namespace="ojs", taken_at=NOW - MINUTE, at=NOW))
    [found] = work.maintenance(record, NOW, "shop")
    assert (found.severity, found.check, found.link) == ("warning", "maintenance", "/system")
    assert "was restored from a backup of namespace ojs" in found.message
    assert "'ojs-nats release --nats URL --namespace shop'" in found.remedy


def test_silent_workers_are_told_with_what_they_hold() -> None:
    rows = [WorkerRow(record=WorkerRecord(id="w"), held=2, stale=True)]
    summary = WorkerSummary(total=3, running=1, quiet=0, terminate=0, stale=2, held=5, held_by_stale=2)
    page = WorkerPage(workers=rows, total=2, summary=summary)
    [(_, message, link)] = said(work.workers(page))
    assert message == "2 workers have sent no heartbeat for a while, and hold 2 jobs"
    assert link == "/workers?state=stale"


def test_webhooks_that_are_paused_that_fail_and_what_was_given_up() -> None:
    def one(name: str, **members: Any) -> Subscription:
        return Subscription(id=name, url="http://x", events=("job.*",), secret="s", **members)

    dead = DeliveryRecord(
        id="d", subscription_id="c", event_id="e", event_type="t", event=Raw(b"{}"), created_at=NOW, updated_at=NOW,
        status="dead", last_status=500,
    )  # fmt: skip
    health = {"b": TargetHealth(in_a_row=5, last_status=503), "c": TargetHealth(in_a_row=4)}
    subscriptions = [one("a", active=False, paused="gone"), one("b"), one("c"), one("d", active=False)]
    assert said(findings(subscriptions, health, [dead])) == [
        ("problem", "webhook a was paused: its receiver said that it is gone", "/webhooks?subscription=a"),
        ("warning", "5 deliveries of webhook b failed one after another, the last with status 503", "/webhooks?subscription=b"),
        ("warning", "deliveries were given up: d (500)", "/webhooks?subscription=c"),
    ]


def test_the_worst_come_first_and_there_are_at_most_fifty() -> None:
    found = [
        warning("a", "light", "m", "r", weight=1),
        warning("a", "heavy", "m", "r", weight=2),
        unknown("b", "no answer"),
        problem("c", "worst", "m", "r"),
    ]
    assert [one.message for one in worst_first(found)] == ["worst", "heavy", "light", "could not be checked: no answer"]
    assert len(worst_first(warning("a", str(n), "m", "r") for n in range(99))) == MOST
