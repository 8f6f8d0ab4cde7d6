"""Limits of keys (docs/queues.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import limits as contract
from ojs_engine.api.contract import part_of
from ojs_features.limits.dialects import SHAPES
from ojs_features.limits.handlers import RateLimitHandlers

PART: Final = part_of(
    contract.LIMITS,
    (
        RateLimitHandlers,
        {
            contract.LIST: RateLimitHandlers.list,
            contract.GET: RateLimitHandlers.read,
            contract.OVERRIDE: RateLimitHandlers.override,
            contract.RESTORE: RateLimitHandlers.restore,
        },
    ),
    shapes=SHAPES,
)
