"""The context of a feature's handlers."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from ojs_engine.api.guard import Guard, KeyEnd
from ojs_engine.api.large_bodies import LargeBodies
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.job import Job
from ojs_engine.domain.strict import Strict
from ojs_engine.jetstream.reading import RecordReader
from ojs_engine.operations.finding import Reason
from ojs_engine.operations.job_checks import FeatureCheck, job_check
from ojs_engine.operations.rejections import RejectionEvents
from ojs_engine.store.store import Store
from ojs_features.plug import Check
from ojs_index.asking.client import Queries


class Known(Struct, frozen=True, kw_only=True):
    """Facts that a gateway knows of the system, and what features have for operators."""

    test_mode: bool
    damage: Callable[[], str | None]
    """Returns what nats-server has lost."""
    missing: Callable[[], Sequence[str]]
    """Returns the roles without a process."""
    without: Mapping[str, str]
    """What users miss without a role of a feature."""
    checks: Sequence[Check]
    records: Sequence[RecordReader[Any]]
    """Readers of the records that features have."""
    removed: Mapping[str, Callable[[Store, str], Awaitable[None]]]
    """By the kind of record: follows the removal of one of a name that can't be read."""
    reasons: Sequence[Callable[[Store, Job], Awaitable[Sequence[Reason]]]]
    """Return why a feature keeps an available job back. They raise OjsError backend_unavailable."""


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
        known: Known,
        keep_alive_s: float,
        guard: Guard,
        key_ends: Sequence[KeyEnd],
    ) -> None:
        self.store = store
        self.limits = limits
        self.known = known
        self.setting = setting
        """The value of a feature's option (`ojs_runtime.settings.Option`)."""
        self.queries = Queries(store)
        self.refusals = RejectionEvents(store)
        self.strict = strict
        """What is refused beyond the specification, None for nothing."""
        self.check = job_check(store, checks, self.strict, not_honoured)
        self.aside = aside
        self.keep_alive_s = keep_alive_s
        """After this long of silence a stream says that it is there (ojs-realtime §2.4)."""
        self.guard = guard
        self.key_ends = key_ends
        self.at_stop: list[Callable[[], Awaitable[None]]] = []
        """Functions that the gateway calls when it stops, after its last answer."""
        self._started = time.monotonic()

    @property
    def uptime_s(self) -> int:
        """Return for how long the gateway has run."""
        return int(time.monotonic() - self._started)
