"""Series as clients read them."""

from __future__ import annotations

from typing import Final

import msgspec

from ojs_api.statistics import Statistics
from ojs_engine.wire.members import encode
from ojs_features.statistics.answers import history_answer
from ojs_features.statistics.dialects import SHAPES
from ojs_features.statistics.series import History, HistoryAsk
from ojs_index.asking.numbers import Point

NOW: Final = 1_700_000_000_000


def test_the_command_line_has_its_own_names_for_points() -> None:
    history = History(points=[Point(at=NOW, completed=2, discarded=1, avg_wait_ms=1.5)])
    answer = history_answer(history, HistoryAsk(step_ms=60_000, since=0, until=1), "1m")
    standard = msgspec.json.decode(encode(answer))
    [point] = standard["data"]
    assert (point["processed"], point["failed"], point["avg_latency_ms"]) == (2, 1, 1.5)
    assert ("completed" in point, "queue" in standard) == (False, False)
    of_command_line = msgspec.json.decode(encode(SHAPES[Statistics]["cli"](answer)))
    assert of_command_line == standard | {"data_points": [point | {"completed": 2}]}
