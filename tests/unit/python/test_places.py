"""Which jobs of a worker run, which wait, and how many it asks for."""

from __future__ import annotations

import pytest

from ojs_core.base.payload_limits import DEFAULT_LIMITS
from ojs_nats._worker.places import Places
from support.waiting import eventually


class Jobs:
    def __init__(self, concurrency: int = 2, ahead: int = 100, *, patience_s: float = 60.0) -> None:
        self.begun: list[int] = []
        self.given_up: list[int] = []
        self.places = Places[int](concurrency, ahead, self.begun.append, self.given_up.append, patience_s=patience_s)

    def take(self, seconds: float) -> None:
        """Many jobs have taken so long."""
        for _ in range(200):
            self.places.took(seconds)


def test_it_asks_for_free_places() -> None:
    jobs = Jobs(4)
    assert jobs.places.wanted(0, plenty=True) == 4
    jobs.places.put(1)
    assert jobs.places.wanted(0, plenty=True) == 3


def test_what_is_under_way_has_its_place() -> None:
    jobs = Jobs(200, ahead=0)
    jobs.places.ask(120)
    assert jobs.places.wanted(1, plenty=True) == 0, "too few for a request beside another"
    assert jobs.places.wanted(0, plenty=True) == 80
    jobs.places.answered(120)
    assert jobs.places.wanted(1, plenty=True) == 100, "the half, as the other may be on its way when this one has come"


def test_it_asks_for_no_more_than_a_server_hands_out() -> None:
    jobs = Jobs(5_000)
    assert jobs.places.wanted(0, plenty=False) == DEFAULT_LIMITS.max_fetch_count
    jobs.places.ask(1_000)
    assert jobs.places.wanted(1, plenty=True) == DEFAULT_LIMITS.max_fetch_count


@pytest.mark.parametrize(("seconds", "count"), [(1.0, 10), (0.04, 22), (0.01, 30), (0.0, 50)])
def test_it_asks_for_more_while_jobs_are_short(seconds: float, count: int) -> None:
    """For half of many: the other half is on its way while these run."""
    jobs = Jobs(10, ahead=90)
    jobs.take(seconds)
    assert jobs.places.wanted(0, plenty=True) == count


def test_many_places_are_no_reason_to_ask_for_more() -> None:
    """Jobs that begin together end together, so who has no place waits for as long as they take."""
    assert Jobs(200).places.wanted(0, plenty=True) == 100
    assert Jobs(20).places.wanted(0, plenty=True) == 20


def test_one_long_job_is_enough_to_ask_for_no_more() -> None:
    jobs = Jobs(10)
    jobs.take(0.001)
    jobs.places.took(30.0)
    assert jobs.places.wanted(0, plenty=True) == 10


@pytest.mark.parametrize(("seconds", "brief"), [(0.04, True), (0.2, False)])
def test_jobs_are_brief_by_those_before_them(seconds: float, brief: bool) -> None:
    jobs = Jobs()
    assert not jobs.places.brief
    jobs.take(seconds)
    assert jobs.places.brief is brief


def test_an_idle_worker_leaves_jobs_to_others() -> None:
    jobs = Jobs(10)
    jobs.take(0.0)
    assert jobs.places.wanted(0, plenty=False) == 10
    assert jobs.places.wanted(1, plenty=False) == 0


async def test_it_asks_for_none_while_no_place_is_free() -> None:
    jobs = Jobs(2)
    jobs.take(0.0)
    jobs.places.put(1)
    jobs.places.put(2)
    assert jobs.places.wanted(0, plenty=True) == 0


async def test_jobs_begin_in_order_and_never_more_than_may() -> None:
    jobs = Jobs(2)
    for number in range(5):
        jobs.places.put(number)
    assert jobs.begun == [0, 1]
    assert (jobs.places.running, jobs.places.waiting) == (2, 3)
    jobs.places.vacate()
    assert jobs.begun == [0, 1, 2]
    for _ in range(4):
        jobs.places.vacate()
    assert jobs.begun == [0, 1, 2, 3, 4]
    assert (jobs.places.running, jobs.places.waiting) == (0, 0)
    jobs.places.clear()


async def test_one_that_waits_too_long_is_given_up_and_others_begin() -> None:
    jobs = Jobs(1, patience_s=0.05)
    jobs.places.put(1)
    jobs.places.put(2)
    await eventually(lambda: jobs.given_up == [2])
    jobs.places.put(3)
    assert jobs.given_up == [2, 3], "at once, as nothing has changed"
    jobs.places.vacate()
    jobs.places.put(4)
    jobs.places.put(5)
    assert jobs.begun == [1, 4]
    await eventually(lambda: jobs.given_up == [2, 3, 5])


async def test_nobody_waits_for_a_worker_that_stops() -> None:
    jobs = Jobs(1)
    for number in range(4):
        jobs.places.put(number)
    jobs.places.clear()
    assert jobs.given_up == [1, 2, 3]
    assert jobs.places.running == 1
