"""Statistics over time (docs/statistics.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import statistics as contract
from ojs_engine.api.contract import part_of
from ojs_features.statistics.answers import SHAPES
from ojs_features.statistics.handlers import StatisticsHandlers

PART: Final = part_of(
    contract.STATISTICS,
    (
        StatisticsHandlers,
        {
            contract.HISTORY: StatisticsHandlers.history,
            contract.QUEUE_HISTORY: StatisticsHandlers.queue_history,
        },
    ),
    shapes=SHAPES,
)
