"""Many jobs in one request (docs/batches.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import bulk as contract
from ojs_engine.api.contract import part_of
from ojs_features.bulk.batch import BatchHandlers
from ojs_features.bulk.dialects import SHAPES
from ojs_features.bulk.handlers import BulkHandlers

PART: Final = part_of(
    contract.BULK,
    (BatchHandlers, {contract.PUSH_ALL: BatchHandlers.push}),
    (
        BulkHandlers,
        {
            contract.PUSH_EACH: BulkHandlers.enqueue,
            contract.CANCEL: BulkHandlers.cancel,
            contract.RETRY: BulkHandlers.retry,
            contract.DELETE: BulkHandlers.delete,
            contract.REPRIORITISE: BulkHandlers.reprioritise,
            contract.RETRY_ALL: BulkHandlers.confirmed_retry,
            contract.CANCEL_ALL: BulkHandlers.confirmed_cancel,
            contract.DELETE_ALL: BulkHandlers.confirmed_delete,
            contract.REPRIORITISE_ALL: BulkHandlers.confirmed_reprioritise,
        },
    ),
    shapes=SHAPES,
)
