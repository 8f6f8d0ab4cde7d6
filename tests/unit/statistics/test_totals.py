"""Totals as clients read them."""

from __future__ import annotations

from typing import Any

import msgspec

from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.members import encode
from ojs_features.statistics.dialects import SHAPES
from ojs_features.statistics.totals import AskedStats, queue_in_brief, system_stats
from ojs_index.asking.messages import WorkerSummary
from ojs_index.asking.numbers import Counts, Queue, Totals

NOW = 1_800_000_000_000
WORKERS = WorkerSummary(total=5, running=2, quiet=1, terminate=1, stale=1)


def read(answer: AskedStats, reader: Reader) -> Any:
    return msgspec.json.decode(encode(SHAPES[AskedStats][reader](answer)))


def test_the_command_line_reads_objects_or_the_queues_in_place_of_numbers() -> None:
    totals = Totals(counts=Counts(), throughput_per_second=0.26, failed_per_second=0.01)
    stats = system_stats(totals, 3, WORKERS, 60, NOW)
    asked = AskedStats(stats, 1, WORKERS, None)
    standard = read(asked, "standard")
    assert standard == read(asked, "sdk") == read(asked, "ui") == msgspec.json.decode(encode(stats))
    assert (standard["queues"], standard["workers"], standard["workers_stale"]) == (3, 4, 1)
    assert read(asked, "cli") == standard | {
        "queues": {"total": 3, "active": 2, "paused": 1},
        "workers": {"total": 5, "running": 2, "quiet": 1, "terminate": 1, "stale": 1, "active": 4, "active_jobs": 0},
        "throughput": standard["throughput"] | {"completed_per_min": 16, "failed_per_min": 1},
    }
    queue = Queue(name="q", counts=Counts(available=2), completed_last_hour=3, failed_last_hour=1)
    listed = AskedStats(stats, 1, WORKERS, [queue_in_brief(queue)])
    assert read(listed, "standard") == standard
    assert read(listed, "cli")["queues"] == [{"name": "q", "depth": 2, "avg_duration_ms": 0.0, "error_rate": 0.25}]
