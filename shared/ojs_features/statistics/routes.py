"""Statistics: totals, and what happened when (docs/statistics.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import statistics as contract
from ojs_engine.api.contract import part_of
from ojs_features.statistics.dialects import SHAPES
from ojs_features.statistics.handlers import StatisticsHandlers
from ojs_features.statistics.totals_handlers import TotalsHandlers

PART: Final = part_of(
    contract.STATISTICS,
    (TotalsHandlers, {contract.TOTALS: TotalsHandlers.stats, contract.STREAM: TotalsHandlers.stream}),
    (
        StatisticsHandlers,
        {
            contract.HISTORY: StatisticsHandlers.history,
            contract.QUEUE_HISTORY: StatisticsHandlers.queue_history,
        },
    ),
    shapes=SHAPES,
)
