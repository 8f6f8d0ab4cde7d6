"""Whatever answers in the server's place: a job runs once, its end arrives, and the worker goes on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from support.examples import amount
from support.proxy import Proxy, Trouble
from support.python_worker import WorkerProcess, exits, installed, pushed
from support.system import System
from support.waiting import until

TROUBLES: Final = {
    "429 of a proxy": Trouble(429),
    "500 of a proxy": Trouble(500),
    "401 of a proxy": Trouble(401),
    "404 of a proxy": Trouble(404),
    "a page with 200": Trouble(200),
    "JSON of somebody else": Trouble(200, text='{"login": "please"}'),
    "an error of somebody else": Trouble(404, text='{"error": {"code": "not_found"}}'),
    "silence": Trouble(silence_s=2.0),
    "an answer that is lost": Trouble(done=True),
    "429 that asks for two minutes": Trouble(429, {"Retry-After": "120"}),
}


class Way(NamedTuple):
    """A worker that has a proxy before its server."""

    system: System
    proxy: Proxy
    worker: WorkerProcess
    folder: Path

    def job(self, job_id: str) -> dict[str, Any]:
        assert not self.worker.has_ended()
        return self.system.job(job_id)

    def runs(self, job_id: str) -> int:
        """How often it has begun."""
        return self.worker.notes().count(f"{job_id} runs")


@pytest.fixture(scope="module")
def _way(_shared_system: System, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Way]:
    folder = tmp_path_factory.mktemp("way")
    installed("hostile", folder)
    _shared_system.reset()
    with Proxy.before(_shared_system.url) as proxy:
        worker = WorkerProcess.started(folder, "hostile", "--concurrency", "4", url=proxy.url)
        yield Way(_shared_system, proxy, worker, folder)
        proxy.clear()
        with exits(worker):
            worker.signal(signal.SIGTERM)


@pytest.fixture
def way(_way: Way) -> Iterator[Way]:
    yield _way
    _way.proxy.clear()


@pytest.mark.slow
@pytest.mark.parametrize(
    "trouble",
    # One that asks for two minutes has to be waited for; tests/unit/python/test_worker_ends.py has it at once.
    [trouble for trouble in TROUBLES if amount() == "all" or not TROUBLES[trouble].headers],
)
def test_an_end_that_meets_it_on_its_way_arrives_once(way: Way, trouble: str) -> None:
    proxy, met = way.proxy, TROUBLES[trouble]
    # The jobs of a fetch whose answer is lost come back later, which is another test's subject.
    for kind in ("acks", "nack") if met.done else ("acks", "nack", "fetch"):
        proxy.trouble(kind, *[met] * (1 if met.headers else 2))
    well, badly = pushed(way.system, "hostile.well"), pushed(way.system, "hostile.coroutine", "raises a BaseException")

    def the_server_knows_both_ends() -> bool:
        return [way.job(job_id)["state"] for job_id in (well, badly)] == ["completed", "discarded"]

    until(the_server_knows_both_ends, 60)
    assert proxy.troubled["nack"]
    assert proxy.troubled["acks"] + proxy.troubled["fetch"]
    assert (way.runs(well), way.job(well)["attempt"], way.job(well)["result"]) == (1, 1, 1)
    assert [error["type"] for error in way.job(badly)["errors"]] == ["Panic"]


def test_fetches_and_heartbeats_that_meet_it_are_followed_by_others(way: Way) -> None:
    """The job has the worker send a heartbeat all the time."""
    proxy = way.proxy
    beats = pushed(way.system, "hostile.beat", "the beats are over")
    until(lambda: "beats" in way.worker.notes())
    proxy.trouble("heartbeat", *TROUBLES.values())
    for each in TROUBLES.values():
        proxy.trouble("fetch", each, None)
    until(lambda: proxy.troubled["heartbeat"] == len(TROUBLES), 60)
    passed = proxy.passed["heartbeat"]
    until(lambda: proxy.passed["heartbeat"] > passed)
    jobs = [pushed(way.system, "hostile.well") for _ in range(4)]
    until(lambda: all(way.job(job_id)["state"] == "completed" for job_id in jobs), 60)
    assert [way.runs(job_id) for job_id in jobs] == [1] * 4
    (way.folder / "the beats are over").touch()
    until(lambda: way.job(beats)["state"] == "completed")
    assert way.job(beats)["result"] == 1
