from __future__ import annotations

from typing import Any

import pytest

from ojs_engine.domain.job import Retention
from ojs_engine.domain.queues.config import NOT_SET, QueueConfig
from ojs_engine.wire.members import members
from ojs_features.dead_letters.answers import dead_letter_stats
from ojs_index.asking.messages import DeadLetterStats


@pytest.mark.parametrize(
    ("config", "max_count", "expected"),
    [
        (NOT_SET, 10_000, {"max_age": "P180D", "max_count": 10_000}),
        (NOT_SET, 0, {"max_age": "P180D"}),
        (
            QueueConfig(dead_letter_max=7, retention=Retention(dead_letter_s=172_800)),
            10_000,
            {"max_age": "P2D", "max_count": 7},
        ),
        (QueueConfig(dead_letter_max=0, retention=Retention(dead_letter_s=5_400)), 5, {"max_age": "PT1H30M"}),
    ],
)
def test_statistics_say_what_is_kept(config: QueueConfig, max_count: int, expected: Any) -> None:
    stats = DeadLetterStats(total=0, by_queue={}, by_type={}, by_error_type={}, max_count=max_count, next_prune_at=0)
    view = members(dead_letter_stats(stats, config).retention)
    assert view == expected | {"next_prune_at": "1970-01-01T00:00:00.000Z"}
