"""What a process knows of the tokens of a queue without asking."""

from __future__ import annotations

import pytest

from ojs_core.jetstream.subjects import StoreConfig
from ojs_core.store.dispatch.ready_subjects import ReadySubjects, hand_out_order

CONFIG = StoreConfig()
HIGH, LINE, FRONT = (CONFIG.ready("q", 5), CONFIG.ready("q", 0), CONFIG.ready("q", 0, "front"))


@pytest.fixture
def known() -> ReadySubjects:
    return ReadySubjects(30.0)


def test_nothing_is_sure_before_the_stream_was_asked(known: ReadySubjects) -> None:
    known.arrived(LINE, 0.0)
    assert not known.sure(0.0)
    assert not known.empty(0.0)


def test_what_the_stream_said_holds_on_for_a_while(known: ReadySubjects) -> None:
    known.told([], 0, 100.0)
    assert known.empty(129.9)
    assert not known.sure(130.0)
    assert not known.empty(130.0)


def test_an_arrival_is_known_at_once(known: ReadySubjects) -> None:
    known.told([], 0, 100.0)
    known.arrived(LINE, 101.0)
    assert not known.empty(101.0)
    assert known.giving(101.0) == [LINE]


def test_subjects_come_in_the_order_of_hand_out(known: ReadySubjects) -> None:
    known.told([LINE], 0, 100.0)
    known.arrived(FRONT, 100.0)
    known.arrived(HIGH, 100.0)
    assert known.giving(100.0) == [HIGH, FRONT, LINE] == sorted([LINE, HIGH, FRONT], key=hand_out_order)


def test_an_arrival_while_the_stream_is_asked_is_kept(known: ReadySubjects) -> None:
    known.arrived(HIGH, 99.0)
    asked_with = known.arrivals
    known.arrived(LINE, 100.0)
    known.told([], asked_with, 100.1)
    assert known.giving(100.1) == [LINE], "and what was there before, and isn't now, is gone"


def test_a_subject_without_anything_to_give_is_passed_over_for_a_second(known: ReadySubjects) -> None:
    known.told([HIGH, LINE], 0, 100.0)
    known.dry(HIGH, known.arrivals, 100.5)
    assert known.giving(101.4) == [LINE]
    assert known.giving(101.5) == [HIGH, LINE]


def test_a_queue_with_such_a_subject_is_not_empty_and_is_soon_asked_about(known: ReadySubjects) -> None:
    known.told([LINE], 0, 100.0)
    known.dry(LINE, known.arrivals, 100.1)
    assert known.giving(100.2) == []
    assert not known.empty(100.2)
    assert known.sure(100.9)
    assert not known.sure(101.1)


def test_an_arrival_ends_that(known: ReadySubjects) -> None:
    known.told([LINE], 0, 100.0)
    known.dry(LINE, known.arrivals, 100.1)
    known.arrived(LINE, 100.2)
    assert known.giving(100.2) == [LINE]


def test_an_arrival_during_a_pull_that_brings_nothing_counts(known: ReadySubjects) -> None:
    known.told([LINE], 0, 100.0)
    pulled_with = known.arrivals
    known.arrived(LINE, 100.1)
    known.dry(LINE, pulled_with, 100.2)
    assert known.giving(100.2) == [LINE]


def test_an_arrival_that_can_not_be_pulled_yet_is_soon_tried_again(known: ReadySubjects) -> None:
    known.told([], 0, 100.0)
    known.arrived(LINE, 100.0)
    known.dry(LINE, known.arrivals, 100.01)
    assert known.giving(100.02) == []
    assert known.giving(100.03) == [LINE]


def test_what_the_stream_names_is_tried_whatever_it_had_before(known: ReadySubjects) -> None:
    known.told([LINE], 0, 100.0)
    known.dry(LINE, known.arrivals, 100.1)
    known.told([LINE], known.arrivals, 100.2)
    assert known.giving(100.2) == [LINE]


def test_all_may_give_again_when_the_queue_goes_on(known: ReadySubjects) -> None:
    known.told([HIGH, LINE], 0, 100.0)
    for subject in (HIGH, LINE):
        known.dry(subject, known.arrivals, 100.1)
    known.let_go()
    assert known.giving(100.2) == [HIGH, LINE]


def test_after_a_lost_connection_the_stream_is_asked(known: ReadySubjects) -> None:
    known.told([LINE], 0, 100.0)
    known.forget()
    assert not known.sure(100.1)


def test_a_subject_that_nobody_knows_can_not_be_dry(known: ReadySubjects) -> None:
    known.told([], 0, 100.0)
    known.dry(LINE, known.arrivals, 100.1)
    assert known.empty(100.2)
