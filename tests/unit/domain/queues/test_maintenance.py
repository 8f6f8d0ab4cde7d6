from __future__ import annotations

import pytest

from ojs_core.base.errors import OjsError
from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.domain.queues.config import MAINTENANCE
from ojs_core.domain.queues.record import Maintenance, QueueRecord, maintained, resumed
from ojs_core.domain.transitions import Moment
from ojs_core.wire.system.maintenance import MaintenanceAnswer, maintenance_answer, parse_maintenance

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
