from __future__ import annotations

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import PayloadLimits
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
from ojs_engine.wire.members import bare
from ojs_engine.wire.system.maintenance import MaintenanceAnswer, RestoredAnswer, maintenance_answer, parse_maintenance

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


def test_a_system_that_waits_for_its_release_is_under_maintenance_that_says_so() -> None:
    shown = bare(maintenance_answer(waiting_for_release(None, Moment(NOW, "op"), MARK), NOW + 1))
    assert (shown.maintenance, shown.enabled_at) == (True, "2027-01-15T08:00:00.000Z")
    assert "waits for its release" in str(shown.reason)
    assert shown.restored == RestoredAnswer(
        namespace="ojs", taken_at="2027-01-15T07:59:59.995Z", restored_at="2027-01-15T08:00:00.000Z"
    )


def test_it_is_shown_with_its_end() -> None:
    sent = b'{"enabled": true, "reason": "moving", "duration": "15m", "estimated_duration": "PT10M"}'
    plan = parse_maintenance(sent, NOW, PayloadLimits())
    assert plan == Maintenance(reason="moving", ends_at=NOW + 900_000, expected_at=NOW + 600_000)
    assert maintenance_answer(under(plan), NOW) == MaintenanceAnswer(
        maintenance=True,
        reason="moving",
        enabled_at="2027-01-15T08:00:00.000Z",
        ends_at="2027-01-15T08:15:00.000Z",
        estimated_end="2027-01-15T08:10:00.000Z",
    )
    over = MaintenanceAnswer(maintenance=False)
    assert maintenance_answer(None, NOW) == maintenance_answer(under(plan), NOW + 900_000) == over
    assert parse_maintenance(b'{"enabled": false}', NOW, PayloadLimits()) is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{}", "enabled"),
        (b'{"enabled": "yes"}', "enabled"),
        (b'{"enabled": true, "duration": "soon"}', "duration"),
        (b'{"enabled": true, "until": "x"}', "until"),
    ],
)
def test_a_bad_request_is_refused_by_name(body: bytes, field: str) -> None:
    with pytest.raises(OjsError) as caught:
        parse_maintenance(body, NOW, PayloadLimits())
    assert caught.value.details["field"] == field
