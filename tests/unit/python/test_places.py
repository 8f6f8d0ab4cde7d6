"""How many jobs of a worker run, and how many it asks for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_nats.worker._places import Load, Places


class Jobs:
    def __init__(self, concurrency: int = 2) -> None:
        self.places = Places(concurrency)

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


def test_an_idle_worker_leaves_jobs_to_others() -> None:
    jobs = Jobs(10)
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


def test_never_more_jobs_run_than_may() -> None:
    places = Places(2)
    assert [places.take() for _ in range(3)] == [True, True, False]
    assert places.running == 2
    places.vacate()
    assert [places.take() for _ in range(2)] == [True, False]
    for _ in range(2):
        places.vacate()
    assert places.running == 0
