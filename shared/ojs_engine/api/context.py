"""The context of a feature's handlers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from ojs_engine.api.large_bodies import LargeBodies
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.strict import Strict
from ojs_engine.operations.job_checks import FeatureCheck, job_check
from ojs_engine.operations.rejections import RejectionEvents
from ojs_engine.read.client import Queries
from ojs_engine.store.store import Store


class HandlerContext:
    """Things that all handlers of one gateway share."""

    def __init__(
        self,
        store: Store,
        limits: PayloadLimits,
        setting: Callable[[Any], Any],
        strict: Strict | None,
        checks: Iterable[FeatureCheck],
        not_honoured: Sequence[str],
        aside: LargeBodies,
    ) -> None:
        self.store = store
        self.limits = limits
        self.setting = setting
        """The value of a feature's option (`ojs_runtime.settings.Option`)."""
        self.queries = Queries(store)
        self.refusals = RejectionEvents(store)
        self.strict = strict
        """What is refused beyond the specification, None for nothing."""
        self.check = job_check(store, checks, self.strict, not_honoured)
        self.aside = aside
        self.at_stop: list[Callable[[], Awaitable[None]]] = []
        """Functions that the gateway calls when it stops, after its last answer."""
