"""The numbers of the API, the command line and the dashboard are those of a ledger outside of the system."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from acceptance.dashboard.conftest import OpenScreen
from support.cli import Cli
from support.screen import Screen
from support.system import System
from support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

STATES: Final = ("available", "active", "scheduled", "retryable", "completed", "discarded", "cancelled")
FACTS: Final = """Object.fromEntries([...document.querySelectorAll('main dl.facts > div')].map(
    (pair) => [pair.querySelector('dt').innerText, pair.querySelector('dd').innerText]))"""
ROWS: Final = """[...document.querySelectorAll('main table')].flatMap((table) => {
    const names = [...table.querySelectorAll('thead th')].map((cell) => cell.innerText.trim());
    return [...table.querySelectorAll('tbody tr')].map((row) => Object.fromEntries(
        [...row.children].map((cell, column) => [names[column], cell.innerText.trim()])));
})"""


class Ledger:
    """An account of what a system was asked to do."""

    def __init__(self, system: System) -> None:
        self._system = system
        self.states: dict[str, tuple[str, str]] = {}
        """Queue and state by job."""
        self.holders: Counter[str] = Counter()
        self.done: Counter[tuple[str, str]] = Counter()
        """How often a thing happened, by queue."""

    def push(self, queue: str, number: int, **options: object) -> None:
        state = "scheduled" if "scheduled_at" in options else "available"
        for n in range(number):
            self.states[self._system.push("numbers.job", n, queue=queue, **options)["id"]] = (queue, state)
            self.done[queue, "pushed"] += 1

    def start(self, queue: str, worker: str, number: int) -> list[str]:
        """Fetch jobs one by one, as this worker."""
        started = []
        for _ in range(number):
            [job] = self._system.fetch(queue, worker_id=worker, wait_ms=10_000)
            self._move(job["id"], "active")
            self.holders[worker] += 1
            started.append(job["id"])
        return started

    def complete(self, worker: str, jobs: Sequence[str]) -> None:
        for job_id in jobs:
            self._system.call("POST", "/workers/ack", {"job_id": job_id, "worker_id": worker})
            self._end(worker, job_id, "completed")

    def fail(self, worker: str, jobs: Sequence[str], after: str) -> None:
        for job_id in jobs:
            error = {"code": "boom", "message": "no"}
            self._system.call("POST", "/workers/nack", {"job_id": job_id, "worker_id": worker, "error": error})
            self._end(worker, job_id, after)

    def cancel(self, queue: str) -> None:
        job_id = next(name for name, (where, state) in self.states.items() if (where, state) == (queue, "available"))
        self._system.call("DELETE", f"/jobs/{job_id}")
        self._move(job_id, "cancelled")

    def counts(self, queue: str | None = None) -> dict[str, int]:
        """Return how many jobs there are in each state."""
        found = Counter(state for where, state in self.states.values() if queue in {where, None})
        return {state: found[state] for state in STATES}

    def happened(self, what: str, queue: str | None = None) -> int:
        return sum(number for (where, name), number in self.done.items() if name == what and queue in {where, None})

    def _move(self, job_id: str, state: str) -> None:
        queue, _ = self.states[job_id]
        self.states[job_id] = (queue, state)
        self.done[queue, state] += 1

    def _end(self, worker: str, job_id: str, state: str) -> None:
        self._move(job_id, state)
        self.holders[worker] -= 1


@pytest.fixture(scope="module")
def ledger(site: System) -> Iterator[Ledger]:
    """A system with jobs in every state, and workers that run and are quiet."""
    made = Ledger(site)
    states = {"num-busy": "running", "num-quiet": "running"}

    def beat() -> None:
        for worker, state in dict(states).items():
            said = {"worker_id": worker, "queues": ["num.mail", "num.files"], "state": state}
            site.call("POST", "/workers/heartbeat", said)

    beat()
    made.push("num.mail", 9)
    made.push("num.files", 4, retry={"max_attempts": 1})
    made.push("num.files", 2, scheduled_at="2099-01-01T00:00:00Z")
    made.push("num.later", 3, retry={"max_attempts": 5, "initial_interval": "PT1H"})
    made.push("num.dead", 2, retry={"max_attempts": 1, "on_exhaustion": "dead_letter"})
    made.complete("num-busy", made.start("num.mail", "num-busy", 4)[:2])
    made.cancel("num.mail")
    made.fail("num-quiet", made.start("num.files", "num-quiet", 4)[:3], "discarded")
    states["num-quiet"] = "quiet"
    beat()
    made.fail("num-busy", made.start("num.later", "num-busy", 2), "retryable")
    made.fail("num-busy", made.start("num.dead", "num-busy", 2), "discarded")

    def known() -> bool:
        return bool(site.call("GET", "/admin/stats")["jobs"]["discarded"] == 5)

    until(known)
    ended = threading.Event()

    def beats() -> None:
        while not ended.wait(5):
            beat()

    beating = threading.Thread(target=beats)
    beating.start()
    yield made
    ended.set()
    beating.join()


def of_the_ledger(counts: dict[str, Any]) -> dict[str, int]:
    return {state: counts.get(state, 0) for state in STATES}


async def test_the_api_and_the_command_line_count_what_the_ledger_has(site: System, ledger: Ledger, tmp_path: Path) -> None:
    cli = Cli(tmp_path, site.url)
    stats = site.call("GET", "/admin/stats")
    top = cli("top", "--once", "--json").json
    for answer in (stats, top["stats"]):
        assert of_the_ledger(answer["jobs"]) == ledger.counts()
        assert answer["dead_letter"] == 2 == site.call("GET", "/dead-letter")["pagination"]["total"]
        assert (answer["workers"], answer["workers_stale"]) == (2, 0)
    for name in ("5m", "1h", "1d"):
        window = stats["windows"][name]
        assert window["enqueued"] == ledger.happened("pushed")
        assert window["started"] == ledger.happened("active")
        assert window["processed"] == ledger.happened("completed")
        assert window["failed"] == ledger.happened("discarded")
        assert window["failed_attempts"] == ledger.happened("discarded") + ledger.happened("retryable")
        assert window["cancelled"] == ledger.happened("cancelled")
    assert stats["throughput"]["enqueued_per_minute"] == pytest.approx(ledger.happened("pushed") / 5, abs=0.001)
    assert stats["throughput"]["processed_per_minute"] == pytest.approx(ledger.happened("completed") / 5, abs=0.001)
    listed = {queue["name"]: queue for queue in site.call("GET", "/admin/queues?per_page=100")["items"]}
    shown = {queue["name"]: queue for queue in top["queues"]}
    for name in ("num.mail", "num.files", "num.later", "num.dead"):
        assert of_the_ledger(listed[name]["counts"]) == ledger.counts(name)
        assert of_the_ledger(shown[name]["counts"]) == ledger.counts(name)
        one = site.call("GET", f"/queues/{name}/stats")
        assert one["stats"]["windows"]["1h"]["enqueued"] == ledger.happened("pushed", name)
    workers = {worker["id"]: worker for worker in site.call("GET", "/admin/workers")["items"]}
    assert {name: workers[name]["active_jobs"] for name in workers} == {
        name: ledger.holders[name] for name in ("num-busy", "num-quiet")
    }


async def facts(tab: Screen) -> dict[str, str]:
    found: dict[str, str] = await tab.page.run(FACTS)
    return found


async def rows(tab: Screen) -> list[dict[str, str]]:
    found: list[dict[str, str]] = await tab.page.run(ROWS)
    return found


async def test_the_overview_shows_what_the_ledger_has(screen: OpenScreen, ledger: Ledger) -> None:
    counts = ledger.counts()
    tab = await screen()
    await tab.follow("/")
    await tab.shows("Dead letters")
    expected = {
        "Waiting": counts["available"],
        "Active": counts["active"],
        "Scheduled": counts["scheduled"],
        "Retrying": counts["retryable"],
        "Discarded": counts["discarded"],
        "Dead letters": 2,
        "Completed": counts["completed"],
        "Workers": 2,
    }
    found = await facts(tab)
    assert {name: found[name] for name in expected} == {name: str(number) for name, number in expected.items()}


async def test_queues_and_workers_show_what_the_ledger_has(screen: OpenScreen, ledger: Ledger) -> None:
    tab = await screen()
    await tab.follow("/queues")
    await tab.shows("num.dead")
    shown = {row["Queue"]: row for row in await rows(tab)}
    for name in ("num.mail", "num.files", "num.later", "num.dead"):
        counts = ledger.counts(name)
        found = {column: shown[name][column] for column in ("Waiting", "Active", "Discarded")}
        assert found == {
            "Waiting": str(counts["available"]),
            "Active": str(counts["active"]),
            "Discarded": str(counts["discarded"]),
        }
        await tab.follow(f"/queues/{name}")
        await tab.shows("Retrying")
        of_queue = await facts(tab)
        assert {label: of_queue[label] for label in ("Waiting", "Scheduled", "Retrying", "Discarded", "Completed")} == {
            "Waiting": str(counts["available"]),
            "Scheduled": str(counts["scheduled"]),
            "Retrying": str(counts["retryable"]),
            "Discarded": str(counts["discarded"]),
            "Completed": str(counts["completed"]),
        }
        await tab.follow("/queues")
        await tab.shows("num.dead")
    await tab.follow("/workers")
    await tab.shows("num-quiet")
    total = sum(ledger.holders.values())
    found = await facts(tab)
    assert {name: found[name] for name in ("Workers", "Running", "Quiet", "Stale", "Jobs that they hold")} == {
        "Workers": "2",
        "Running": "1",
        "Quiet": "1",
        "Stale": "0",
        "Jobs that they hold": str(total),
    }
    held = {row["Worker"]: row["Holds"] for row in await rows(tab)}
    assert held == {name: str(ledger.holders[name]) for name in ("num-busy", "num-quiet")}
