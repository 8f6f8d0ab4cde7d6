"""When a worker's list of jobs is known to be complete: the server takes back what isn't in it."""

from __future__ import annotations

from ojs_nats.worker._marks import Complete, Marks


def registered() -> Marks:
    marks = Marks()
    marks.registered("m0")
    return marks


def test_nothing_is_said_to_a_server_without_marks() -> None:
    marks = Marks()
    assert marks.complete() is None
    marks.registered(None)
    marks.marked("m1")
    assert marks.complete() is None


def test_it_is_complete_up_to_the_newest_mark_while_no_fetch_is_under_way() -> None:
    marks = registered()
    assert marks.complete() == Complete("m0", "m0")
    marks.marked("m1")
    marks.marked("m2")
    assert marks.complete() == Complete("m0", "m2")


def test_a_mark_counts_once_the_fetches_have_ended_that_were_sent_before_it_came() -> None:
    marks = registered()
    before = marks.sent()
    marks.marked("m1")
    assert marks.complete() == Complete("m0", "m0")
    behind = marks.sent()
    marks.marked("m2")
    marks.ended(before)
    assert marks.complete() == Complete("m0", "m1"), "the second fetch was sent behind this mark, and before the next"
    marks.ended(behind)
    assert marks.complete() == Complete("m0", "m2")


def test_an_idle_worker_s_list_becomes_complete_though_it_always_waits_in_a_fetch() -> None:
    marks = registered()
    fetch = marks.sent()
    for number in range(1, 10):
        marks.marked(f"m{number}")
        following = marks.sent()
        marks.ended(fetch)
        fetch = following
        assert marks.complete() == Complete("m0", f"m{number}")


def test_another_registration_begins_anew() -> None:
    marks = registered()
    marks.marked("m1")
    under_way = marks.sent()
    marks.registered("m5")
    assert marks.complete() is None, "what the fetch brings may have been handed out before"
    marks.ended(under_way)
    assert marks.complete() == Complete("m5", "m5")
