"""The context of a feature's handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from ojs_core.base.payload_limits import PayloadLimits
from ojs_core.operations.job_checks import FeatureCheck, job_check
from ojs_core.operations.rejections import RejectionEvents
from ojs_core.read.client import Queries
from ojs_core.runtime.settings import Settings
from ojs_core.store.store import Store


class HandlerContext:
    """Things that all handlers of one gateway share."""

    def __init__(
        self,
        store: Store,
        limits: PayloadLimits,
        settings: Settings,
        checks: Iterable[FeatureCheck],
        not_honoured: Sequence[str],
    ) -> None:
        self.store = store
        self.limits = limits
        self.settings = settings
        self.queries = Queries(store)
        self.refusals = RejectionEvents(store)
        self.strict = settings.strict_mode
        self.check = job_check(store, checks, self.strict, not_honoured)
        self.at_stop: list[Callable[[], Awaitable[None]]] = []
        """Functions that the gateway calls when it stops, after its last answer."""
