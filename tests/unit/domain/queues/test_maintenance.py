from __future__ import annotations

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.queues.config import MAINTENANCE
from ojs_engine.domain.queues.record import (
    Maintenance,
    QueueRecord,
    RestoreMark,
    maintained,
    maintenance_ended,
    released,
    resumed,
    waiting_for_release,
)
from ojs_engine.domain.transitions import Moment

NOW = 1_800_000_000_000


def under(plan: Maintenance, old: QueueRecord | None = None, at: int = NOW) -> QueueRecord:
    return maintained(old, Moment(at, f"op{at}"), plan)


def test_it_holds_until_it_is_ended_or_over() -> None:
    record = under(Maintenance(ends_at=NOW + 10))
    assert (record.name, record.holds_at(NOW + 9), record.holds_at(NOW + 10)) == (MAINTENANCE, True, False)
    endless = under(Maintenance(expected_at=NOW + 10))
    assert endless.holds_at(NOW + 11), "an estimate ends nothing"
    ended = resumed(endless, MAINTENANCE, Moment(NOW + 1, "op"))
    assert ended is not None
    assert not ended.holds_at(NOW + 2)


def test_a_second_request_changes_the_plan_and_a_later_one_begins_anew() -> None:
    first = under(Maintenance(reason="a", ends_at=NOW + 10))
    second = under(Maintenance(reason="b", ends_at=NOW + 20), first, NOW + 5)
    assert (second.paused_at, second.maintenance) == (NOW, Maintenance(reason="b", ends_at=NOW + 20))
    assert under(Maintenance(), second, NOW + 30).paused_at == NOW + 30


MARK = RestoreMark(namespace="ojs", taken_at=NOW - 5, at=NOW)


def test_the_end_of_maintenance_lets_no_restored_system_act() -> None:
    waiting = waiting_for_release(under(Maintenance(reason="moving")), Moment(NOW, "op"), MARK)
    ended = maintenance_ended(waiting, Moment(NOW + 1, "op"))
    assert ended is not None
    assert ended.holds_at(NOW + 2)
    with pytest.raises(OjsError, match="there is no maintenance to end: the system was restored") as refused:
        maintenance_ended(ended, Moment(NOW + 2, "op"))
    assert (refused.value.code, "'ojs-nats release" in refused.value.hint) == ("conflict", True)
    free = released(ended, Moment(NOW + 3, "op"))
    assert free is not None
    assert not free.holds_at(NOW + 4)


def test_a_release_leaves_maintenance_as_it_was() -> None:
    waiting = waiting_for_release(under(Maintenance(ends_at=NOW + 10)), Moment(NOW, "op"), MARK)
    assert waiting.holds_at(NOW + 11)
    free = released(waiting, Moment(NOW + 3, "op"))
    assert free is not None
    assert (free.holds_at(NOW + 9), free.holds_at(NOW + 10)) == (True, False)
    assert released(free, Moment(NOW + 4, "op")) is None
    assert released(None, Moment(NOW, "op")) is None
