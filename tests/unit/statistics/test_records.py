from __future__ import annotations

import msgspec

from ojs_features.statistics.activity import Activity
from ojs_features.statistics.records import MINUTE_MS, Span, parts_of


def test_a_record_of_many_queues_is_split_and_its_first_part_written_last() -> None:
    queues = {f"queue-{number:03d}": Activity(pushed=number, waits={number: 1}) for number in range(100)}
    spans = parts_of(0, MINUTE_MS, queues, limit=1_000)
    assert [span.part for span in spans] == [*range(1, len(spans)), 0]
    assert {span.parts for span in spans} == {len(spans)}
    bodies = [msgspec.json.encode(span) for span in spans]
    assert len(bodies) > 1
    assert all(len(body) < 1_200 for body in bodies)
    found: dict[str, Activity] = {}
    for body in bodies:
        found |= msgspec.json.decode(body, type=Span).queues
    assert found == queues


def test_a_record_of_few_queues_is_one() -> None:
    [span] = parts_of(60_000, MINUTE_MS, {"q": Activity(pushed=1)})
    assert (span.part, span.parts, span.start) == (0, 1, 60_000)
