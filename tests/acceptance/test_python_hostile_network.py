"""Whatever the network between a worker and its server does: each job ends once, places are free again, the worker goes on."""

from __future__ import annotations

import itertools
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import nats
import pytest
from nats.aio.msg import Msg

from support.examples import amount
from support.network import (
    DELAY,
    DOWN_ALONE,
    DRIBBLE,
    GOOD,
    HALF_OPEN,
    LOST_ANSWERS,
    PARTITION,
    RESET,
    STRAND,
    UP_ALONE,
    Condition,
    Link,
    Network,
)
from support.python_worker import WorkerProcess, exits, installed, pushed
from support.system import System
from support.waiting import eventually, until

ALL: Final = amount() == "all"
SCHEMES: Final = ("http", "nats")
PLACES: Final = 4
PATIENCE_S: Final = 120.0
"""A job whose fetch wasn't answered comes back within a minute."""
_OFTEN_S: Final = 0.25
"""How often the server is asked: each question costs it what a test may take."""
ENDED_BY_ITSELF: Final = (DELAY, DRIBBLE, STRAND, LOST_ANSWERS)
"""Conditions in which the server comes to know how jobs end."""


class Way(NamedTuple):
    """A worker that reaches its server by a link."""

    system: System
    link: Link
    worker: WorkerProcess
    folder: Path
    queue: str

    def job(self, job_id: str) -> dict[str, Any]:
        assert not self.worker.has_ended()
        return self.system.job(job_id)

    def push(self, gate: str, end: str = "well") -> str:
        return pushed(self.system, "hostile.late", gate, end, queue=self.queue)

    def noted(self, what: str, *job_ids: str) -> bool:
        notes = self.worker.notes()
        return all(f"{job_id} {what}" in notes for job_id in job_ids)

    def over(self, *job_ids: str) -> bool:
        """Whether the server knows how they ended."""
        return {self.job(job_id)["state"] for job_id in job_ids} <= {"completed", "discarded"}

    def ended_once(self, job_id: str, state: str = "completed") -> None:
        """See that it ran once, and ended as the server tells it."""
        job = self.job(job_id)
        assert job["state"] == state, job
        assert self.worker.notes().count(f"{job_id} runs") == 1, job
        if state == "completed":
            assert job["result"] == job["attempt"], job
            assert not job.get("errors"), job
        else:
            assert [error["type"] for error in job["errors"]] == ["ValueError"], job

    def all_places_are_free(self) -> None:
        """See that it runs as many jobs as it has places, at the same time."""
        gate = "places"
        (self.folder / gate).unlink(missing_ok=True)
        jobs = [self.push(gate) for _ in range(PLACES)]
        until(lambda: self.noted("runs", *jobs), PATIENCE_S)
        (self.folder / gate).touch()
        until(lambda: self.over(*jobs), PATIENCE_S, every=_OFTEN_S)
        for job_id in jobs:
            self.ended_once(job_id)


@pytest.fixture(scope="module")
def network() -> Iterator[Network]:
    with Network() as network:
        yield network


@pytest.fixture(scope="module")
def connected(
    _shared_system: System, network: Network, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[..., Way]]:
    system = _shared_system
    system.reset()
    begun: list[Way] = []

    def way(scheme: str, *arguments: str) -> Way:
        folder = tmp_path_factory.mktemp(scheme)
        installed("hostile", folder)
        url = system.nats_url if scheme == "nats" else system.url
        host, _, port = url.rpartition(":")
        link, queue = network.link(int(port)), f"network.{len(begun)}"
        given = ("--concurrency", str(PLACES), "--queues", queue, *arguments)
        worker = WorkerProcess.started(folder, "hostile", *given, url=f"{host}:{link.port}")
        begun.append(Way(system, link, worker, folder, queue))
        return begun[-1]

    yield way
    for each in begun:
        each.worker.end()


@pytest.fixture(scope="module")
def kept(connected: Callable[..., Way]) -> Iterator[Callable[[str], Way]]:
    """A worker of each scheme for all tests: what one test leaves behind the next one meets."""
    ways: dict[str, Way] = {}

    def way(scheme: str) -> Way:
        if scheme not in ways:
            ways[scheme] = connected(scheme)
        return ways[scheme]

    yield way
    for each in ways.values():
        with exits(each.worker):
            each.worker.signal(signal.SIGTERM)


@pytest.fixture(params=SCHEMES)
def scheme(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def named(value: str | Condition) -> str:
    return value if isinstance(value, str) else value.name


@pytest.mark.parametrize(
    ("scheme", "condition"),
    [
        *itertools.product(SCHEMES, (PARTITION, DELAY, HALF_OPEN, RESET, LOST_ANSWERS)),
        # By HTTP, a request that is stranded is given up after half a minute.
        *(
            pytest.param(scheme, condition, marks=pytest.mark.slow)
            for place, condition in enumerate((UP_ALONE, STRAND, DRIBBLE, DOWN_ALONE))
            for scheme in SCHEMES
            if ALL or scheme == SCHEMES[place % len(SCHEMES)]
        ),
    ],
    ids=named,
    indirect=["scheme"],
)
def test_ends_that_meet_it_on_their_way_arrive_once(kept: Callable[[str], Way], scheme: str, condition: Condition) -> None:
    way = kept(scheme)
    gate = f"after {condition.name}"
    well, badly = way.push(gate), way.push(gate, "badly")
    until(lambda: way.noted("runs", well, badly), PATIENCE_S)
    way.link.become(condition)
    before = way.link.held_back
    try:
        (way.folder / gate).touch()
        until(lambda: way.noted("ends", well, badly))
        if condition in ENDED_BY_ITSELF:
            until(lambda: way.over(well, badly), PATIENCE_S, every=_OFTEN_S)
        else:
            until(lambda: way.link.held_back > before)
    finally:
        way.link.become(GOOD)
    until(lambda: way.over(well, badly), PATIENCE_S, every=_OFTEN_S)
    way.all_places_are_free()
    way.ended_once(well)
    way.ended_once(badly, "discarded")
    assert (way.job(well)["attempt"], way.job(badly)["attempt"]) == (1, 1)


@pytest.mark.slow
def test_silence_that_outlasts_requests_costs_no_job(kept: Callable[[str], Way], scheme: str) -> None:
    way = kept(scheme)
    gate = "after the silence"
    lasts = way.push(gate)
    until(lambda: way.noted("runs", lasts), PATIENCE_S)
    failed, silent = len(way.worker.events("a fetch failed")), len(way.worker.events("a heartbeat wasn't answered"))
    way.link.become(HALF_OPEN)
    try:
        until(lambda: len(way.worker.events("a fetch failed")) > failed, PATIENCE_S)
        until(lambda: len(way.worker.events("a heartbeat wasn't answered")) > silent, PATIENCE_S)
    finally:
        way.link.become(GOOD)
    way.worker.has_ended()
    (way.folder / gate).touch()
    until(lambda: way.over(lasts), PATIENCE_S, every=_OFTEN_S)
    way.all_places_are_free()
    way.ended_once(lasts)


@pytest.mark.slow
def test_jobs_that_come_while_the_network_comes_and_goes_run_once(kept: Callable[[str], Way], scheme: str) -> None:
    way = kept(scheme)
    (way.folder / "open").touch()
    jobs: list[str] = []
    stranded = [STRAND] if ALL or scheme == "nats" else []  # by HTTP it takes half a minute
    for condition in (RESET, PARTITION, *stranded, UP_ALONE, RESET):
        before = way.link.held_back
        way.link.become(condition)
        jobs += [way.push("open") for _ in range(2)]
        until(lambda before=before: way.link.held_back > before)  # type: ignore[misc]
        way.link.become(GOOD)
    until(lambda: way.over(*jobs), PATIENCE_S, every=_OFTEN_S)
    way.all_places_are_free()
    for job_id in jobs:
        way.ended_once(job_id)


@pytest.mark.parametrize(
    ("scheme", "condition"),
    [
        ("http", PARTITION),
        ("nats", RESET),
        *([pytest.param(*other, marks=pytest.mark.slow) for other in (("nats", PARTITION), ("http", RESET))] if ALL else []),
    ],
    ids=named,
)
def test_a_worker_stops_in_time_though_nothing_gets_through(
    connected: Callable[..., Way], scheme: str, condition: Condition
) -> None:
    way = connected(scheme, "--grace-period", "100ms")
    lasts = way.push("never")
    until(lambda: way.noted("runs", lasts))
    way.link.become(condition)
    with exits(way.worker):
        way.worker.signal(signal.SIGTERM)
    assert "Traceback" not in way.worker.output
    way.link.become(GOOD)


IMPOSTORS: Final[dict[str, dict[str, str] | None]] = {
    "no status": None,
    "429": {"OJS-Status": "429", "Retry-After": "120"},
    "500": {"OJS-Status": "500"},
    "401": {"OJS-Status": "401"},
    "404": {"OJS-Status": "404"},
    "a page with 200": {"OJS-Status": "200"},
    "a status that is no number": {"OJS-Status": "²00"},
}
"""Headers of answers by somebody else."""


@pytest.mark.parametrize(
    "said",
    # 429 waits for half a minute (tests/unit/python/test_worker_ends.py has it at once); the other two are statuses like 500.
    [
        pytest.param(said, marks=pytest.mark.slow) if said in {"429", "401", "404"} else said
        for said in IMPOSTORS
        if ALL or said != "429"
    ],
)
async def test_whoever_answers_over_nats_in_a_gateway_s_place_decides_nothing(kept: Callable[[str], Way], said: str) -> None:
    """They hear each request as the gateways do, and answer first."""
    way = kept("nats")
    gate = f"after {said}"
    well, badly = way.push(gate), way.push(gate, "badly")
    await eventually(lambda: way.noted("runs", well, badly), PATIENCE_S)
    answered: Counter[str] = Counter()

    async def answer(message: Msg) -> None:
        answered[message.subject.split(".")[2]] += 1
        await impostor.publish(message.reply, b"<html>under maintenance</html>", headers=IMPOSTORS[said])

    impostor = await nats.connect(way.system.nats_url)
    try:
        for name in ("ackJobs", "nackJob", "workerHeartbeat"):
            await impostor.subscribe(f"ojs.api.{name}.>", cb=answer)
        await impostor.flush()
        (way.folder / gate).touch()
        await eventually(lambda: answered["nackJob"] and answered["ackJobs"], PATIENCE_S)
    finally:
        await impostor.close()
    await eventually(lambda: way.over(well, badly), PATIENCE_S)
    way.all_places_are_free()
    way.ended_once(well)
    way.ended_once(badly, "discarded")


@pytest.mark.slow
async def test_whoever_answers_fetches_over_nats_in_a_gateway_s_place_costs_no_job(kept: Callable[[str], Way]) -> None:
    way = kept("nats")
    failed = len(way.worker.events("a fetch failed"))
    # 429 asks for two minutes. What it does to a fetch is shown by test_python_hostile_ways.py.
    # The pauses grow from one to the next.
    said = [headers for name, headers in IMPOSTORS.items() if ALL or name not in {"429", "500", "401", "404"}]
    answered = itertools.cycle(said)

    async def answer(message: Msg) -> None:
        await impostor.publish(message.reply, b"<html>under maintenance</html>", headers=next(answered))

    impostor = await nats.connect(way.system.nats_url)
    try:
        await impostor.subscribe(f"ojs.api.fetchJobs.{way.queue}", cb=answer)
        await impostor.flush()
        await eventually(lambda: len(way.worker.events("a fetch failed")) >= failed + len(said), PATIENCE_S)
    finally:
        await impostor.close()
    way.all_places_are_free()
