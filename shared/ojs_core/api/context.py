"""The context of a feature's handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.operations.rejections import RejectionEvents
from ojs_core.read.client import Queries
from ojs_core.runtime.job_checks import job_check, strict_of
from ojs_core.runtime.settings import Settings
from ojs_core.store.store import Store


class HandlerContext:
    """Things that all handlers of one gateway share."""

    def __init__(self, store: Store, limits: PayloadLimits, settings: Settings) -> None:
        self.store = store
        self.limits = limits
        self.settings = settings
        self.queries = Queries(store)
        self.refusals = RejectionEvents(store)
        self.strict = strict_of(settings)
        self.check = job_check(store.schemas, self.strict)
        self.at_stop: list[Callable[[], Awaitable[None]]] = []
        """Functions that the gateway calls when it stops, after its last answer."""
