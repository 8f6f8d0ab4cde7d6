"""Who did what."""

from __future__ import annotations

from typing import Final

from ojs_api import audit as contract
from ojs_engine.api.contract import part_of
from ojs_features.audit.handlers import AuditHandlers

PART: Final = part_of(contract.AUDIT, (AuditHandlers, {contract.LIST: AuditHandlers.list}))
