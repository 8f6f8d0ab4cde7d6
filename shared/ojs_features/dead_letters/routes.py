"""Dead letters (docs/admin.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import dead_letters as contract
from ojs_engine.api.contract import part_of
from ojs_features.dead_letters.dialects import SHAPES
from ojs_features.dead_letters.handlers import DeadLetterHandlers

PART: Final = part_of(
    contract.DEAD_LETTERS,
    (
        DeadLetterHandlers,
        {
            contract.LIST: DeadLetterHandlers.list,
            contract.ADMIN_LIST: DeadLetterHandlers.admin_list,
            contract.STATS: DeadLetterHandlers.stats,
            contract.GET: DeadLetterHandlers.read,
            contract.RETRY: DeadLetterHandlers.retry,
            contract.DELETE: DeadLetterHandlers.delete,
            contract.ADMIN_DELETE: DeadLetterHandlers.admin_delete,
            contract.RETRY_ALL: DeadLetterHandlers.retry_all,
            contract.PURGE: DeadLetterHandlers.purge,
            contract.CLEAR: DeadLetterHandlers.clear,
        },
    ),
    shapes=SHAPES,
)
