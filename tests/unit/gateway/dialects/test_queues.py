from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from ojs_engine.domain.queues.config import NOT_SET, QueueConfig
from ojs_engine.domain.queues.record import QueueRecord
from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.queues.requests import Purge
from ojs_gateway.answers.queues import (
    configured_queue,
    priority_stats,
    purged_queue,
    queue_detail,
    queue_stats,
    switched_queue,
)
from ojs_gateway.dialects.layer import answer_body
from ojs_gateway.queue_removal import Emptied
from ojs_index.asking.numbers import Counts, Levels, Point, Queue

NOW = 1_800_000_000_000
COUNTS = Counts(available=3, active=2)
QUEUE = Queue(name="q", counts=COUNTS, dead_letter=1, windows={"5m": Point(at=NOW, completed=4)})
PAUSED = QueueRecord(name="q", state="paused", paused_at=NOW, resumed_at=NOW - 1)


def read(answer: Struct, reader: Reader) -> Any:
    return msgspec.json.decode(answer_body(answer, reader))


def test_the_name_of_a_queue_is_text_for_sdks_and_its_members_stand_beside() -> None:
    answer = switched_queue("q", PAUSED)
    named = {"name": "q", "status": "paused", "paused": True}
    at = {"paused": True, "paused_at": "2027-01-15T08:00:00.000Z"}
    assert read(answer, "standard") == {"queue": named} | at
    assert read(answer, "cli") == read(answer, "ui") == {"queue": named} | named | at
    assert read(answer, "sdk") == {"queue": "q"} | named | at


def test_the_counts_of_a_queue_stand_where_each_client_reads_them() -> None:
    answer = queue_stats(QUEUE, PAUSED, 6, NOW)
    standard = read(answer, "standard")
    counts = msgspec.to_builtins(COUNTS) | {"total": 5}
    assert standard["queue"] == {"name": "q", "status": "paused", "paused": True} | counts
    assert standard["stats"]["windows"]["5m"]["processed"] == 4
    assert {name: standard["stats"][name] for name in ("queue", "depth", "dead", "max_depth", "pressure")} == {
        "queue": "q",
        "depth": 3,
        "dead": 1,
        "max_depth": 6,
        "pressure": 0.5,
    }
    stats = standard["stats"] | counts
    assert read(answer, "cli") == standard | {"queue": "q", "status": "paused", "stats": stats}
    assert read(answer, "sdk") == standard | standard["queue"] | {"queue": "q", "stats": stats}


def test_settings_and_numbers_have_the_names_of_their_readers() -> None:
    limit = QueueConfig(concurrency=2)
    detail = queue_detail(QUEUE, PAUSED, limit, NOW)
    standard = read(detail, "standard")
    assert (standard["config"], standard["own_config"], standard["depth"]) == ({"concurrency": 2}, {}, 3)
    assert standard["queue"] == {"name": "q", "status": "paused", "paused": True}
    assert read(detail, "cli") == standard | {"running": 2}
    assert read(detail, "ui") == standard | {"configuration": {"concurrency": 2}}
    configured = configured_queue("q", None, limit)
    assert read(configured, "ui") == read(configured, "standard") | {"configuration": {"concurrency": 2}}
    assert read(configured_queue("q", None, NOT_SET), "standard")["status"] == "active"


def test_priorities_and_purges_have_the_names_of_their_readers() -> None:
    levels = priority_stats("q", Levels(counts={5: 2, 0: 1}))
    assert read(levels, "standard") == {"queue": "q", "counts_by_priority": {"5": 2, "0": 1}, "total": 3}
    assert read(levels, "ui")["distribution"] == [{"priority": 5, "count": 2}, {"priority": 0, "count": 1}]
    purged = purged_queue("q", Purge(()), Emptied(7, 1))
    assert read(purged, "cli") == read(purged, "standard") | {"deleted": 7}
