"""Progress of jobs: report, read, follow (docs/progress.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import progress as contract
from ojs_engine.api.contract import part_of
from ojs_features.progress.handlers import ProgressHandlers

PART: Final = part_of(
    contract.PROGRESS,
    (
        ProgressHandlers,
        {
            contract.REPORT: ProgressHandlers.report,
            contract.GET: ProgressHandlers.read,
            contract.STREAM: ProgressHandlers.stream,
        },
    ),
)
