"""Keys, and the sessions of browsers (docs/security.md)."""

from __future__ import annotations

from typing import Final

from ojs_api import keys as contract
from ojs_engine.api.contract import part_of
from ojs_features.access.handlers import KeyHandlers
from ojs_features.access.session_handlers import SessionHandlers

PART: Final = part_of(
    contract.KEYS,
    (
        KeyHandlers,
        {
            contract.LIST: KeyHandlers.list,
            contract.CREATE: KeyHandlers.create,
            contract.GET: KeyHandlers.read,
            contract.ROTATE: KeyHandlers.rotate,
            contract.LIMIT: KeyHandlers.limit,
            contract.REVOKE: KeyHandlers.revoke,
        },
    ),
    (
        SessionHandlers,
        {
            contract.BEGIN_SESSION: SessionHandlers.begin,
            contract.GET_SESSION: SessionHandlers.read,
            contract.END_SESSION: SessionHandlers.end,
        },
    ),
)
