"""The context of a feature's handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.read.client import Queries
from ojs_core.runtime.settings import Settings
from ojs_core.store.store import Store


class HandlerContext:
    """Things that all handlers of one gateway share."""

    def __init__(self, store: Store, limits: PayloadLimits, settings: Settings) -> None:
        self.store = store
        self.limits = limits
        self.settings = settings
        self.queries = Queries(store)
        self.at_stop: list[Callable[[], Awaitable[None]]] = []
        """Functions that the gateway calls when it stops, after its last answer."""
