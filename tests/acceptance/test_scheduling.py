"""Order and shares through two gateway processes."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from support.nats import NatsServer
from support.system import Answer, Api, Command, Processes, send
from support.waiting import until

WEIGHTS = {"fs-critical": 5, "fs-default": 3, "fs-low": 1}
LEVELS = range(-100, 101)


class Gateways(Api):
    """Gateways that take turns."""

    def __init__(self, commands: list[Command]) -> None:
        self.urls = [str(command.ready()["url"]) for command in commands]
        self._turn = 0

    def request(self, method: str, path: str, body: object = None) -> Answer:
        """One request to the next gateway."""
        self._turn += 1
        return send(method, f"{self.urls[self._turn % len(self.urls)]}{path}", body)

    def push_many(self, queue: str, number: int, **options: Any) -> list[str]:
        job = {"type": "test.scheduling", "args": [1], "options": {"queue": queue, **options}}
        return [one["id"] for one in self.call("POST", "/jobs/batch", {"jobs": [job] * number}, 201)["jobs"]]

    def pool(self, **members: Any) -> None:
        """Set a pool and wait until all know it."""
        self.call("PUT", "/admin/pools/general", members, 201)
        for url in self.urls:
            until(lambda url=url: send("GET", f"{url}/ojs/v1/admin/pools").body.get("items"))  # type: ignore[misc]


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory, shared_nats_server: NatsServer) -> Iterator[Processes]:
    """Two gateways, and a projector."""
    started = Processes(tmp_path_factory.mktemp("services"), shared_nats_server.url)
    try:
        for service in ("gateway", "gateway", "projector"):
            started.start(service)
        for command in started.commands:
            command.ready()
        yield started
    finally:
        started.stop()


@pytest.fixture
def gateways(services: Processes) -> Gateways:
    """The two gateways, emptied."""
    pair = Gateways(services.commands[:2])
    pair.call("POST", "/admin/reset")
    return pair


def test_a_strict_pool_gives_each_queue_its_guaranteed_part_through_each_gateway(gateways: Gateways) -> None:
    for queue, number in zip(WEIGHTS, (110, 30, 30), strict=True):
        gateways.push_many(queue, number)
    gateways.pool(
        strategy="strict",
        queues=list(WEIGHTS),
        starvation_prevention={"enabled": True, "rotation_interval": "PT1H", "min_dispatch_ratio": 0.1},
    )
    found = Counter(job["queue"] for _ in range(122) for job in gateways.fetch(*WEIGHTS))
    assert found == {"fs-critical": 98, "fs-default": 12, "fs-low": 12}


def test_statistics_say_what_was_handed_out_and_what_starves(gateways: Gateways) -> None:
    gateways.push_many("fs-low", 3)
    gateways.push_many("fs-critical", 3)
    assert [job["queue"] for job in gateways.fetch("fs-critical", "fs-low", count=4)] == ["fs-critical"] * 3 + ["fs-low"]
    stats = gateways.call("GET", "/admin/scheduling/stats")
    assert (stats["window"], stats["strategy"], stats["dispatch_count_1m"]) == ("PT1M", "strict", 4)
    assert stats["stats"] == {"queues": 2, "starved": 0, "active_jobs": 4, "available_jobs": 2}
    critical, low = stats["queues"]
    assert {name: critical[name] for name in ("name", "dispatch_count_1m", "dispatch_ratio_1m", "active_jobs", "starved")} == {
        "name": "fs-critical",
        "dispatch_count_1m": 3,
        "dispatch_ratio_1m": 0.75,
        "active_jobs": 3,
        "starved": False,
    }
    assert (low["available_jobs"], low["dispatch_ratio_1m"], low["starved"]) == (2, 0.25, False)
    assert 0 < low["avg_wait_ms"] < 60_000
    gateways.pool(strategy="strict", queues=["fs-low"], starvation_prevention={"enabled": True, "rotation_interval": "PT1S"})

    def starved() -> bool:
        return any(queue["starved"] for queue in gateways.call("GET", "/admin/scheduling/stats")["queues"])

    until(starved)
    gateways.call("POST", "/queues/fs-low/pause")
    assert not starved(), "what is paused doesn't starve"


def test_a_queue_that_its_own_limit_holds_back_does_not_starve(gateways: Gateways) -> None:
    gateways.call("PUT", "/queues/fs-limited/config", {"concurrency": 1})
    gateways.pool(
        strategy="strict",
        queues=["fs-limited", "fs-low"],
        starvation_prevention={"enabled": True, "rotation_interval": "PT1S"},
    )
    gateways.push_many("fs-low", 2)
    first, second, *_ = gateways.push_many("fs-limited", 3)
    assert [job["id"] for job in gateways.fetch("fs-limited")] == [first]
    worker = {"worker_id": "fs-worker", "queues": ["fs-limited", "fs-low"], "concurrency": 5}
    gateways.call("POST", "/workers/register", worker)

    def starved() -> set[str]:
        queues = gateways.call("GET", "/admin/scheduling/stats")["queues"]
        return {queue["name"] for queue in queues if queue["starved"]}

    def found() -> set[str]:
        """Return the queues that a finding calls starved."""
        messages = [one["message"] for one in gateways.call("GET", "/admin/findings")["findings"]]
        return {queue for queue in ("fs-limited", "fs-low") if any(f"{queue} is starved" in message for message in messages)}

    until(lambda: "fs-low" in starved() and "fs-low" in found())
    assert starved() == found() == {"fs-low"}
    why = gateways.call("GET", f"/admin/jobs/{second}/why")["reasons"][0]
    assert why["message"] == "The limit of queue fs-limited leaves no room: 1 of 1 used by its concurrency."


def test_jobs_that_no_worker_handles_are_found_with_that_reason(gateways: Gateways) -> None:
    gateways.pool(strategy="strict", queues=["fs-mail"], starvation_prevention={"enabled": True, "rotation_interval": "PT1S"})
    gateways.push_many("fs-mail", 1)
    worker = {"worker_id": "fs-mailer", "queues": ["fs-mail"], "handlers": [{"type": "email.send"}]}
    gateways.call("POST", "/workers/register", worker)
    cause = "none of the 1 worker of queue fs-mail handles test.scheduling"

    def found() -> list[dict[str, Any]]:
        return [one for one in gateways.call("GET", "/admin/findings")["findings"] if cause in one["message"]]

    [finding] = until(found)
    assert (finding["severity"], finding["remedy"]) == ("problem", "Deploy a worker with a handler for it.")


def test_a_pool_that_changes_is_an_event(gateways: Gateways) -> None:
    gateways.pool(strategy="strict", queues=["fs-low"])
    for strategy in ("strict", "round-robin"):
        gateways.call("PUT", "/admin/pools/general", {"strategy": strategy, "queues": ["fs-low"]})
    events = until(lambda: gateways.call("GET", "/events?types=scheduling.rebalanced")["events"])
    told = {"pool": "general", "previous_strategy": "strict", "new_strategy": "round-robin"}
    assert [event["data"] for event in events] == [told]


@pytest.mark.slow
def test_all_levels_come_in_exact_order_through_two_gateways(gateways: Gateways) -> None:
    chance = random.Random(201)
    levels = [*LEVELS, *LEVELS[::5]]
    chance.shuffle(levels)
    pushed: dict[int, list[str]] = {level: [] for level in LEVELS}
    for first in range(0, len(levels), 20):
        several = levels[first : first + 20]
        new = [{"type": "a.b", "args": [], "options": {"queue": "fs-levels", "priority": level}} for level in several]
        for made in gateways.call("POST", "/jobs/batch", {"jobs": new}, 201)["jobs"]:
            pushed[made["priority"]].append(made["id"])
    wanted = [(level, job_id) for level in reversed(LEVELS) for job_id in pushed[level]]
    found: list[tuple[int, str]] = []
    while jobs := gateways.fetch("fs-levels", count=chance.choice((1, 2, 3, 30))):
        found += [(job["priority"], job["id"]) for job in jobs]
    assert found == wanted


def test_priorities_rank_within_a_queue_and_queues_by_their_place(gateways: Gateways) -> None:
    low = gateways.push_many("fs-first", 2, priority=-100)
    high = gateways.push_many("fs-second", 1, priority=100)
    middle = gateways.push_many("fs-first", 1, priority=3)
    assert [job["id"] for job in gateways.fetch("fs-first", "fs-second", count=9)] == [*middle, *low, *high]


def test_a_new_priority_counts_from_the_moment_it_is_answered(gateways: Gateways) -> None:
    [first, second, third] = gateways.push_many("fs-changed", 3)
    [later] = gateways.push_many("fs-changed", 1, delay_until="+PT1H")
    [waits] = gateways.push_many("fs-changed", 1, pending=True)
    for job_id, priority in ((third, 5), (second, 5), (first, -1), (later, 100), (waits, 4)):
        answer = gateways.call("PATCH", f"/jobs/{job_id}", {"priority": priority})
        assert (answer["priority"], answer["previous_priority"]) == (priority, 0)
    assert gateways.call("GET", "/queues/fs-changed/priority-stats")["counts_by_priority"] == {"5": 2, "-1": 1}
    assert [job["id"] for job in gateways.fetch("fs-changed", count=2)] == [third, second], "in order of the changes"
    gateways.call("POST", f"/jobs/{waits}/activate")
    assert [job["id"] for _ in range(2) for job in gateways.fetch("fs-changed")] == [waits, first]
    assert gateways.job(later)["priority"] == 100


@pytest.mark.usefixtures("gateways")
def test_weights_hold_over_two_gateways_and_when_one_is_killed(services: Processes) -> None:
    mortal = services.start("gateway")
    gateways = Gateways([services.commands[0], mortal])
    for queue, number in zip(WEIGHTS, (130, 80, 30), strict=True):
        gateways.push_many(queue, number)
    gateways.pool(strategy="weighted", queues={queue: {"weight": weight} for queue, weight in WEIGHTS.items()})

    def shares(fetches: int, count: int) -> dict[str, float]:
        found = Counter(job["queue"] for _ in range(fetches) for job in gateways.fetch(*WEIGHTS, count=count))
        assert found.total() == fetches * count
        return {queue: found[queue] / found.total() for queue in WEIGHTS}

    exact = {queue: weight / 9 for queue, weight in WEIGHTS.items()}
    assert shares(45, 1) == pytest.approx(exact, abs=2 / 45)
    assert shares(9, 10) == pytest.approx(exact, abs=2 / 45)
    stats = {queue["name"]: queue for queue in gateways.call("GET", "/admin/scheduling/stats")["queues"]}
    assert {name: stats[name]["dispatch_count_1m"] for name in WEIGHTS} == {"fs-critical": 75, "fs-default": 45, "fs-low": 15}
    mortal.kill()
    gateways = Gateways(services.commands[:1])
    assert shares(45, 1) == pytest.approx(exact, abs=2 / 45), "the other goes on with its own count"
