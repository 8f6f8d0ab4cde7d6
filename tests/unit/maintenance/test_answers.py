"""Maintenance as clients ask for it and read it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import Struct

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.queues.record import Maintenance, RestoreMark, maintained, waiting_for_release
from ojs_engine.domain.transitions import Moment
from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.members import Extended, bare, encode
from ojs_features.maintenance.answers import SHAPES, maintenance_answer, parse_maintenance

NOW = 1_800_000_000_000
AT = "2027-01-15T08:00:00.000Z"
MARK = RestoreMark(namespace="ojs", taken_at=NOW - 5, at=NOW)


def read(answer: Struct | Extended[Any], reader: Reader = "standard") -> Any:
    shape = SHAPES.get(type(bare(answer)), {}).get(reader)
    return msgspec.json.decode(encode(answer if shape is None else shape(answer)))


def test_a_system_that_waits_for_its_release_is_under_maintenance_that_says_so() -> None:
    shown = read(maintenance_answer(waiting_for_release(None, Moment(NOW, "op"), MARK), NOW + 1))
    assert (shown["maintenance"], shown["enabled_at"]) == (True, AT)
    assert "waits for its release" in shown["reason"]
    assert shown["restored"] == {"namespace": "ojs", "taken_at": "2027-01-15T07:59:59.995Z", "restored_at": AT}


def test_it_is_shown_with_its_end() -> None:
    sent = b'{"enabled": true, "reason": "moving", "duration": "15m", "estimated_duration": "PT10M"}'
    plan = parse_maintenance(sent, NOW, PayloadLimits())
    assert plan == Maintenance(reason="moving", ends_at=NOW + 900_000, expected_at=NOW + 600_000)
    record = maintained(None, Moment(NOW, "op"), plan)
    assert read(maintenance_answer(record, NOW)) == {
        "maintenance": True,
        "reason": "moving",
        "enabled_at": AT,
        "ends_at": "2027-01-15T08:15:00.000Z",
        "estimated_end": "2027-01-15T08:10:00.000Z",
    }
    for over in (maintenance_answer(None, NOW), maintenance_answer(record, NOW + 900_000)):
        assert read(over) == {"maintenance": False}
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


@pytest.mark.parametrize("reader", ["cli", "ui"])
def test_maintenance_has_the_words_of_those_who_began_it(reader: Reader) -> None:
    under = maintenance_answer(maintained(None, Moment(NOW, "op"), Maintenance(ends_at=NOW + 1_000)), NOW)
    assert read(under, reader) == read(under) | {"enabled": True, "started_at": AT}
    assert read(maintenance_answer(None, NOW), reader) == {"maintenance": False, "enabled": False}
