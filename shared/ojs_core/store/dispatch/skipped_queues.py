"""Queues that can't be served for the moment: a fetch that names others goes on with those (docs/adr/029)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from ojs_core.base.errors import OjsError
from ojs_core.telemetry import metrics
from ojs_core.telemetry.logs import SeldomLog

log = structlog.get_logger(__name__)

_SLOW_S: Final = 1.0
_SLOW: Final = 2
"""After so many queues that took long to fail, NATS itself hangs: going on would keep the fetch waiting for each of them."""
_told: Final = SeldomLog(30.0)


class SkippedQueues:
    """What one look of a fetch couldn't serve."""

    def __init__(self) -> None:
        self.queues: dict[str, OjsError] = {}
        self._served = False
        self._slow = 0

    @property
    def enough(self) -> bool:
        """Whether it is of no use to go on."""
        return self._slow >= _SLOW

    @contextmanager
    def skipping(self, queue: str) -> Iterator[None]:
        """Look into a queue in this context: that it fails is noted, and keeps nobody from the next."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            yield
        except OjsError as error:
            self.queues[queue] = error
            self._slow += loop.time() - began >= _SLOW_S
        else:
            self._served = True

    def judge(self, *, found: bool) -> None:
        """Raise the first failure if no queue at all could be served; else count and log those that were skipped."""
        if not self.queues:
            return
        queue, error = next(iter(self.queues.items()))
        if not found and not self._served:
            raise error
        metrics.QUEUES_SKIPPED.inc(len(self.queues))
        if _told.due():
            log.warning("queues of a fetch skipped", first=queue, queues=len(self.queues), reason=error.message)
