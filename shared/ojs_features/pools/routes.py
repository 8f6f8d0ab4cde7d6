"""Pools (docs/queues.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import pools as contract
from ojs_engine.api.contract import part_of
from ojs_features.pools.dialects import SHAPES
from ojs_features.pools.handlers import PoolHandlers

PART: Final = part_of(
    contract.POOLS,
    (
        PoolHandlers,
        {
            contract.LIST: PoolHandlers.list,
            contract.GET: PoolHandlers.read,
            contract.PUT: PoolHandlers.put,
            contract.DELETE: PoolHandlers.delete,
            contract.STATS: PoolHandlers.stats,
        },
    ),
    shapes=SHAPES,
)
