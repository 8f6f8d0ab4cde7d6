"""Maintenance, and records that can't be read (docs/admin.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import maintenance as contract
from ojs_engine.api.contract import part_of
from ojs_features.maintenance.answers import SHAPES
from ojs_features.maintenance.handlers import MaintenanceHandlers
from ojs_features.maintenance.unreadable_handlers import UnreadableHandlers

PART: Final = part_of(
    contract.MAINTENANCE,
    (MaintenanceHandlers, {contract.GET: MaintenanceHandlers.read, contract.SET: MaintenanceHandlers.change}),
    (
        UnreadableHandlers,
        {contract.LIST_UNREADABLE: UnreadableHandlers.list, contract.REMOVE_UNREADABLE: UnreadableHandlers.remove},
    ),
    shapes=SHAPES,
)
