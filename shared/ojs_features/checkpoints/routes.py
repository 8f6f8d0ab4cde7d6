"""Checkpoints of jobs: save, read, delete (docs/checkpoints.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import checkpoints as contract
from ojs_engine.api.contract import part_of
from ojs_features.checkpoints.handlers import CheckpointHandlers

PART: Final = part_of(
    contract.CHECKPOINTS,
    (
        CheckpointHandlers,
        {
            contract.SAVE: CheckpointHandlers.save,
            contract.GET: CheckpointHandlers.read,
            contract.RESUME: CheckpointHandlers.resume,
            contract.DELETE: CheckpointHandlers.delete,
        },
    ),
)
