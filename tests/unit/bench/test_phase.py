from __future__ import annotations

import pytest

from bench.load import Phase
from bench.scenarios.connections import Arrivals


def window(since: float, until: float) -> Phase:
    phase = Phase()
    phase.since, phase.until = since, until
    return phase


def test_nothing_counts_before_the_window_is_opened() -> None:
    phase = Phase()
    phase.count(1e12, 0.5)
    assert (phase.jobs, len(phase.latencies), phase.rate) == (0, 0, 0)


def test_a_late_answer_is_a_latency_but_no_part_of_the_rate() -> None:
    phase = window(10, 20)
    for now in (9.9, 10, 15, 20, 20.1):
        phase.count(now, 0.25, jobs=5)
    assert list(phase.latencies) == [0.25] * 4
    assert (phase.jobs, phase.seconds, phase.rate) == (15, 10, 1.5)


def test_a_stall_at_the_end_of_the_window_lowers_the_rate() -> None:
    phase = window(10, 20)
    phase.count(11, 0.5, jobs=10)
    assert phase.rate == pytest.approx(1.0)


def test_work_that_ran_out_ends_the_window_with_its_last_job() -> None:
    phase = window(10, 20)
    phase.count(12, 0.5, jobs=10)
    phase.finish()
    assert phase.rate == pytest.approx(5.0)
    assert phase.done.is_set()


def test_a_phase_is_done_when_its_last_connection_leaves() -> None:
    phase = Phase()
    phase.enter()
    phase.enter()
    phase.leave()
    assert not phase.done.is_set()
    phase.leave()
    assert phase.done.is_set()


def test_arrivals_are_complete_with_every_number_once() -> None:
    arrivals = Arrivals(2)
    for number, now in ((-1, 0.5), (0, 1.0), (0, 2.0)):
        arrivals.add(number, now)
    assert arrivals.errors() == {"never fetched": 1, "fetched again": 1}
    arrivals.add(1, 3.0)
    assert arrivals.complete
    assert arrivals.at == {0: 1.0, 1: 3.0}
    assert arrivals.errors() == {"fetched again": 1}
