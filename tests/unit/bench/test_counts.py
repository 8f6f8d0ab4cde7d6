"""The judge of counts: what is the same as the table, what isn't, and what crossed the wire."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from bench.counts.table import Counts, Sent, Table, Window, differences, near, typical
from bench.counts.tap import Frames, Kind

_KIND = "out $KV.ojs.job.*"
_COUNTS = Counts({"gateway": {_KIND: Sent(2, 2_000)}}, {"gateway": 1_000})


def _table(counts: Counts = _COUNTS, python: str = "3.11") -> Table:
    return Table(python, {"push": counts})


def _sent(messages: int, size: int, kind: str = _KIND) -> Table:
    return _table(replace(_COUNTS, messages={"gateway": {kind: Sent(messages, size)}}))


@pytest.mark.parametrize(
    "found", [_table(), _sent(2, 2_048), _sent(2, 1_952), _table(replace(_COUNTS, calls={"gateway": 1_030}))]
)
def test_what_is_within_the_tolerances_is_the_same(found: Table) -> None:
    assert list(differences(_table(), found)) == []


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (_sent(3, 2_000), [f"push, gateway: 3 messages {_KIND}, not 2"]),
        (_sent(1, 2_000), [f"push, gateway: 1 messages {_KIND}, not 2"]),
        (_sent(2, 2_049), [f"push, gateway: 2,049 bytes in 2 messages {_KIND}, not 2,000"]),
        (_sent(2, 1_951), [f"push, gateway: 1,951 bytes in 2 messages {_KIND}, not 2,000"]),
        (
            _sent(2, 2_000, "out other"),
            [f"push, gateway: 0 messages {_KIND}, not 2", "push, gateway: 2 messages out other, not 0"],
        ),
        (_table(replace(_COUNTS, messages={})), [f"push, gateway: 0 messages {_KIND}, not 2"]),
        (_table(replace(_COUNTS, calls={"gateway": 1_121})), ["push, gateway: 1,121 function calls, not 1,000"]),
        (_table(replace(_COUNTS, calls={"gateway": 1_000, "reaper": 121})), ["push, reaper: 121 function calls, not 0"]),
        (Table("3.11", {"push": _COUNTS, "new": _COUNTS}), ["new: not in the table"]),
        (Table("3.11", {}), ["push: not counted, but in the table"]),
    ],
)
def test_each_difference_is_told(found: Table, told: list[str]) -> None:
    assert list(differences(_table(), found)) == told


def test_calls_of_another_python_are_not_compared() -> None:
    assert list(differences(_table(), _table(replace(_COUNTS, calls={"gateway": 5_000}), python="3.12"))) == []


def _window(messages: Mapping[str, Sent], calls: Mapping[str, int]) -> Window:
    return Window({"gateway": messages, "reaper": {}}, {"gateway": calls, "reaper": {"loop": 9}})


def test_what_is_in_few_repetitions_does_not_count() -> None:
    usual = _window({_KIND: Sent(1, 400)}, {"push": 2})
    besides = _window({_KIND: Sent(1, 400), "out other": Sent(1, 10)}, {"push": 3, "loop": 50})
    counts, functions = typical([usual, besides, usual, besides, usual])
    assert counts == Counts({"gateway": {_KIND: Sent(1, 400)}}, {"gateway": 2})
    assert functions["gateway"]["push"] == 2


def test_calls_count_around_the_moments_alone() -> None:
    calls = {str(bucket): {"f": 1} for bucket in range(100)}
    assert near(calls, [0.25], 0.005) == {"f": 15}  # from 10 ms before to 60 ms after


def test_frames_are_counted_by_kind_however_they_are_cut() -> None:
    sent = (
        b"PUB $KV.ojs.job.0190c0de-0000-7000-8000-000000000001 _INBOX.a.1 5\r\nhe\r\no\r\n"
        b"PING\r\n"
        b"HPUB ojs.ready.counted-push.1 12 14\r\nNATS/1.0\r\n\r\nhi\r\n"
        b"PUB $JS.API.INFO _INBOX.a.2 0\r\n\r\n"
    )
    received = b"MSG _INBOX.a.1 1 3\r\nabc\r\nMSG _INBOX.a.2 1 2\r\n{}\r\n"
    for size in (1, 7, 1_000):
        frames = Frames("counted")
        for data, ways in ((sent, "out"), (received, "in")):
            for at in range(0, len(data), size):
                frames.feed(ways, data[at : at + size])
        assert frames.taken().messages == {
            Kind("out", "$KV.ojs.job.*"): 1,
            Kind("out", "ojs.ready.*.1"): 1,
            Kind("in", "answer to $KV.ojs.job.*"): 1,
        }


@pytest.mark.parametrize("op", ["abcdefabcdef1", "0a1b2c3d4e5f6"])
def test_the_op_of_a_timer_has_no_part_in_the_name_of_its_kind(op: str) -> None:
    frames = Frames("counted")
    frames.feed("out", f"PUB ojs.timer.cron.counted-cron-tick.{op} 0\r\n\r\n".encode())
    assert frames.taken().messages == {Kind("out", "ojs.timer.cron.*.*"): 1}


def test_a_pull_in_the_place_of_one_that_ended_does_not_count() -> None:
    frames = Frames("counted")
    pull = b"PUB $JS.API.CONSUMER.MSG.NEXT.KV_ojs.cron _INBOX.a.1 2\r\n{}\r\n"
    frames.feed("out", pull)
    frames.feed("in", b"HMSG _INBOX.a.1 1 28 28\r\nNATS/1.0 404 No Messages\r\n\r\n\r\n")
    frames.feed("out", pull)
    assert frames.taken().messages == {Kind("out", "$JS.API.CONSUMER.MSG.NEXT.KV_ojs.cron"): 1}
