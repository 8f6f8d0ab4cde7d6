"""Cron entries (docs/cron.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import crons as contract
from ojs_engine.api.contract import part_of
from ojs_features.crons.dialects import SHAPES
from ojs_features.crons.handlers import CronHandlers

PART: Final = part_of(
    contract.CRONS,
    (
        CronHandlers,
        {
            contract.REGISTER: CronHandlers.register,
            contract.LIST: CronHandlers.list,
            contract.GET: CronHandlers.read,
            contract.UPDATE: CronHandlers.patch,
            contract.DELETE: CronHandlers.delete,
            contract.TRIGGER: CronHandlers.run,
            contract.PAUSE: CronHandlers.pause,
            contract.RESUME: CronHandlers.resume,
            contract.COMING: CronHandlers.coming,
            contract.PREVIEW: CronHandlers.preview,
            contract.HISTORY: CronHandlers.history,
        },
    ),
    shapes=SHAPES,
)
