"""What a process knows of the tokens of a queue without asking."""

from __future__ import annotations

import pytest

from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.dispatch.ready_subjects import ReadySubjects, ReadyTimings, hand_out_order

CONFIG = StoreConfig()
HIGH, LINE, FRONT = (CONFIG.ready("q", 5), CONFIG.ready("q", 0), CONFIG.ready("q", 0, "front"))


@pytest.fixture
def known() -> ReadySubjects:
    return ReadySubjects(30.0, ReadyTimings())


def test_nothing_is_sure_before_the_stream_was_asked(known: ReadySubjects) -> None:
    known.arrived(LINE, 0.0)
    assert not known.sure(0.0)
    assert not known.empty(0.0)


def test_what_the_stream_said_holds_on_for_a_while(known: ReadySubjects) -> None:
    known.told({}, 0, 100.0)
    assert known.empty(129.9)
    assert not known.sure(130.0)
    assert not known.empty(130.0)


def test_an_arrival_is_known_at_once(known: ReadySubjects) -> None:
    known.told({}, 0, 100.0)
    known.arrived(LINE, 101.0)
    assert not known.empty(101.0)
    assert known.giving(101.0) == [LINE]


def test_subjects_come_in_the_order_of_hand_out(known: ReadySubjects) -> None:
    known.told({LINE: 1}, 0, 100.0)
    known.arrived(FRONT, 100.0)
    known.arrived(HIGH, 100.0)
    assert known.giving(100.0) == [HIGH, FRONT, LINE] == sorted([LINE, HIGH, FRONT], key=hand_out_order)


def test_an_arrival_while_the_stream_is_asked_is_kept(known: ReadySubjects) -> None:
    known.arrived(HIGH, 99.0)
    asked_with = known.arrivals
    known.arrived(LINE, 100.0)
    known.told({}, asked_with, 100.1)
    assert known.giving(100.1) == [LINE], "and what was there before, and isn't now, is gone"


def test_a_subject_without_anything_to_give_is_passed_over_for_a_second(known: ReadySubjects) -> None:
    known.told({HIGH: 1, LINE: 1}, 0, 100.0)
    known.dry(HIGH, known.arrivals, 100.5)
    assert known.giving(101.4) == [LINE]
    assert known.giving(101.5) == [HIGH, LINE]


def test_a_queue_with_such_a_subject_is_not_empty_and_is_soon_asked_about(known: ReadySubjects) -> None:
    known.told({LINE: 1}, 0, 100.0)
    known.dry(LINE, known.arrivals, 100.1)
    assert known.giving(100.2) == []
    assert not known.empty(100.2)
    assert known.sure(100.9)
    assert not known.sure(101.1)


def test_an_arrival_ends_that(known: ReadySubjects) -> None:
    known.told({LINE: 1}, 0, 100.0)
    known.dry(LINE, known.arrivals, 100.1)
    known.arrived(LINE, 100.2)
    assert known.giving(100.2) == [LINE]


def test_an_arrival_during_a_pull_that_brings_nothing_counts(known: ReadySubjects) -> None:
    known.told({LINE: 1}, 0, 100.0)
    pulled_with = known.arrivals
    known.arrived(LINE, 100.1)
    known.dry(LINE, pulled_with, 100.2)
    assert known.giving(100.2) == [LINE]


def test_an_arrival_that_can_not_be_pulled_yet_is_soon_tried_again(known: ReadySubjects) -> None:
    known.told({}, 0, 100.0)
    known.arrived(LINE, 100.0)
    known.dry(LINE, known.arrivals, 100.01)
    assert known.giving(100.012) == []
    assert known.giving(100.014) == [LINE]


def test_only_a_young_arrival_can_be_what_a_pull_in_vain_was_ahead_of(known: ReadySubjects) -> None:
    assert not known.ahead(LINE, 100.0)
    known.told({HIGH: 1}, 0, 100.0)
    known.arrived(LINE, 100.0)
    assert known.ahead(LINE, 100.05)
    assert not known.ahead(HIGH, 100.05)
    assert not known.ahead(LINE, 100.2)


def test_only_what_has_been_there_for_a_while_is_overdue(known: ReadySubjects) -> None:
    assert not known.overdue(LINE, 100.0)
    known.told({HIGH: 1}, 0, 100.0)
    known.arrived(LINE, 100.0)
    assert not known.overdue(LINE, 100.05)
    assert known.overdue(LINE, 100.2)
    assert known.overdue(HIGH, 100.05)
    known.pulling(LINE, 1)
    assert not known.overdue(LINE, 100.2)


def test_what_others_pull_or_have_pulled_no_pull_is_ahead_of(known: ReadySubjects) -> None:
    known.told({}, 0, 100.0)
    known.arrived(LINE, 100.0)
    known.pulling(LINE, 1)
    assert not known.ahead(LINE, 100.01)
    known.pulled(LINE, 1, [1], 100.01)
    assert not known.ahead(LINE, 100.02)


def test_what_the_stream_names_is_tried_whatever_it_had_before(known: ReadySubjects) -> None:
    known.told({LINE: 1}, 0, 100.0)
    known.dry(LINE, known.arrivals, 100.1)
    known.told({LINE: 1}, known.arrivals, 100.2)
    assert known.giving(100.2) == [LINE]


def test_all_may_give_again_when_the_queue_goes_on(known: ReadySubjects) -> None:
    known.told({HIGH: 1, LINE: 1}, 0, 100.0)
    for subject in (HIGH, LINE):
        known.dry(subject, known.arrivals, 100.1)
    known.let_go()
    assert known.giving(100.2) == [HIGH, LINE]


def test_after_a_lost_connection_the_stream_is_asked(known: ReadySubjects) -> None:
    known.told({LINE: 1}, 0, 100.0)
    known.forget()
    assert not known.sure(100.1)


def test_a_subject_that_nobody_knows_can_not_be_dry(known: ReadySubjects) -> None:
    known.told({}, 0, 100.0)
    known.dry(LINE, known.arrivals, 100.1)
    assert known.empty(100.2)


def test_tokens_that_are_all_being_pulled_are_nobody_elses(known: ReadySubjects) -> None:
    known.told({LINE: 2}, 0, 100.0)
    known.pulling(LINE, 1)
    assert known.giving(100.0) == [LINE], "there is another one"
    known.pulling(LINE, 1)
    assert known.giving(100.0) == []
    assert not known.empty(100.0), "one of the pulls may be in vain"
    known.arrived(LINE, 100.1)
    assert known.giving(100.1) == [LINE]


def test_what_a_pull_has_left_is_there_for_the_next(known: ReadySubjects) -> None:
    known.told({LINE: 5}, 0, 100.0)
    known.pulling(LINE, 10)
    assert known.giving(100.0) == []
    known.pulled(LINE, 10, [1, 2, 3], 100.0)
    known.pulling(LINE, 1)
    assert known.giving(100.0) == [LINE]
    known.pulled(LINE, 1, [4], 100.0)
    known.pulling(LINE, 1)
    assert known.giving(100.0) == []


def test_a_subject_of_which_all_was_pulled_is_left_alone_for_a_while(known: ReadySubjects) -> None:
    known.told({LINE: 1}, 0, 100.0)
    known.pulling(LINE, 1)
    known.pulled(LINE, 1, [1], 100.0)
    assert known.giving(100.5) == []
    assert known.giving(101.1) == [LINE], "a token may come back without a sound"
    known.arrived(LINE, 100.6)
    assert known.giving(100.6) == [LINE]


def test_a_pull_in_vain_says_nothing_of_what_arrives_meanwhile(known: ReadySubjects) -> None:
    known.told({LINE: 1}, 0, 100.0)
    known.pulling(LINE, 1)
    known.arrived(LINE, 100.1)
    known.pulled(LINE, 1, [], 100.2)
    assert known.giving(100.2) == [LINE]


def test_arrivals_while_the_stream_is_asked_count(known: ReadySubjects) -> None:
    known.arrived(LINE, 99.0)
    asked_with = known.arrivals
    known.arrived(LINE, 100.0)
    known.told({LINE: 1}, asked_with, 100.1)
    known.pulling(LINE, 1)
    assert known.giving(100.1) == [LINE]


def test_a_token_that_is_delivered_again_is_counted_once(known: ReadySubjects) -> None:
    known.told({LINE: 2}, 0, 100.0)
    for _ in range(2):
        known.pulling(LINE, 1)
        known.pulled(LINE, 1, [5], 100.0)
    known.pulling(LINE, 1)
    assert known.giving(100.0) == []
    known.pulled(LINE, 1, [], 100.0)
    assert known.giving(100.0) == [LINE]


def test_what_has_more_than_was_heard_of_is_open_to_all(known: ReadySubjects) -> None:
    known.told({LINE: 1}, 0, 100.0)
    for place in (1, 2):
        known.pulling(LINE, 1)
        known.pulled(LINE, 1, [place], 100.0)
    known.pulling(LINE, 1)
    assert known.giving(101.1) == [LINE], "others may have come back, too"
