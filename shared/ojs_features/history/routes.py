"""What happened to jobs (docs/history.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import history as contract
from ojs_engine.api.contract import part_of
from ojs_features.history.handlers import HistoryHandlers

PART: Final = part_of(
    contract.HISTORIES,
    (
        HistoryHandlers,
        {
            contract.HISTORY: HistoryHandlers.history,
            contract.LINEAGE: HistoryHandlers.lineage,
            contract.TRACES: HistoryHandlers.traces,
            contract.TRACE: HistoryHandlers.trace,
            contract.RETRIES: HistoryHandlers.retries,
            contract.STATES: HistoryHandlers.states,
            contract.LOG: HistoryHandlers.log,
            contract.FAILURES: HistoryHandlers.failures,
        },
    ),
)
