"""Which jobs of a worker run, which wait, and how many it asks for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_core.base.payload_limits import DEFAULT_LIMITS
from ojs_nats.worker._places import Load, Places
from support.waiting import eventually


class Jobs:
    def __init__(self, concurrency: int = 2, ahead: int = 0, *, longest_wait_s: float = 60.0) -> None:
        self.begun: list[int] = []
        self.given_up: list[int] = []
        self.places = Places[int](concurrency, ahead, self.begun.append, self.given_up.append, longest_wait_s=longest_wait_s)

    def take(self, seconds: float) -> None:
        """Many jobs have taken so long."""
        for _ in range(200):
            self.places.took(seconds)

    def wanted(self, held: int = 0, done: int = 0, fetches: int = 0, asked: int = 0, *, plenty: bool = True) -> int:
        return self.places.wanted(Load(held, done, fetches, asked, plenty))


def test_it_asks_for_free_places() -> None:
    jobs = Jobs(4)
    assert jobs.wanted() == 4
    assert jobs.wanted(held=1) == 3
    assert jobs.wanted(held=4) == 0


def test_a_job_that_has_ended_keeps_its_place_until_the_server_has_heard() -> None:
    jobs = Jobs(4)
    assert jobs.wanted(held=4, done=0) == 0
    assert jobs.wanted(held=4, done=3) == 3, "the acks come first in the same request"


def test_what_is_under_way_has_its_place() -> None:
    jobs = Jobs(200)
    assert jobs.wanted(fetches=1, asked=150) == 0, "too few for a request beside another"
    assert jobs.wanted(fetches=0, asked=120) == 80
    assert jobs.wanted(fetches=1, asked=67) == 67, "a third, as the others are on their way when this one has come"
    assert jobs.wanted(fetches=3, asked=0) == 0


def test_it_asks_for_no_more_than_a_server_hands_out() -> None:
    jobs = Jobs(5_000)
    assert jobs.wanted(plenty=False) == DEFAULT_LIMITS.max_fetch_count
    assert jobs.wanted(fetches=1, asked=1_000) == DEFAULT_LIMITS.max_fetch_count


@pytest.mark.parametrize(("seconds", "count"), [(1.0, 10), (0.04, 22), (0.01, 59), (0.0, 100)])
def test_it_may_ask_for_more_while_jobs_are_short(seconds: float, count: int) -> None:
    jobs = Jobs(10, ahead=90)
    jobs.take(seconds)
    assert jobs.wanted() == count


def test_it_asks_for_no_more_unless_it_may() -> None:
    jobs = Jobs(10)
    jobs.take(0.0)
    assert jobs.wanted() == 10


def test_one_long_job_is_enough_to_ask_for_no_more() -> None:
    jobs = Jobs(10, ahead=100)
    jobs.take(0.001)
    jobs.places.took(30.0)
    assert jobs.wanted() == 10


@pytest.mark.parametrize(("seconds", "brief"), [(0.04, True), (0.2, False)])
def test_jobs_are_brief_by_those_before_them(seconds: float, brief: bool) -> None:
    jobs = Jobs()
    assert not jobs.places.brief
    jobs.take(seconds)
    assert jobs.places.brief is brief


def test_an_idle_worker_leaves_jobs_to_others() -> None:
    jobs = Jobs(10, ahead=100)
    jobs.take(0.0)
    assert jobs.wanted(plenty=False) == 10
    assert jobs.wanted(fetches=1, asked=4, plenty=False) == 0


@given(
    concurrency=st.integers(1, 3_000),
    held=st.integers(0, 3_000),
    done=st.integers(0, 1_000),
    fetches=st.integers(0, 3),
    asked=st.integers(0, 3_000),
    plenty=st.booleans(),
)
def test_no_more_jobs_are_active_than_there_are_places(
    concurrency: int, held: int, done: int, fetches: int, asked: int, plenty: bool
) -> None:
    done = min(done, held)
    count = Jobs(concurrency).wanted(held, done, fetches, asked, plenty=plenty)
    acked = min(done, count)
    if count > acked:
        assert held - acked + asked + count <= concurrency


async def test_jobs_begin_in_order_and_never_more_than_may() -> None:
    jobs = Jobs(2)
    for number in range(5):
        jobs.places.put(number)
    assert jobs.begun == [0, 1]
    assert jobs.places.running == 2
    jobs.places.vacate()
    assert jobs.begun == [0, 1, 2]
    for _ in range(4):
        jobs.places.vacate()
    assert jobs.begun == [0, 1, 2, 3, 4]
    assert jobs.places.running == 0
    jobs.places.clear()


async def test_one_that_waits_too_long_is_given_up_and_others_begin() -> None:
    jobs = Jobs(1, longest_wait_s=0.05)
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
