"""Queues that can't be served for the moment: a fetch that names others goes on with those (docs/adr/029)."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.telemetry import metrics
from ojs_engine.telemetry.logs import SeldomLog

log = structlog.get_logger(__name__)

_SLOW: Final = 2
"""After so many queues that took long to fail, NATS itself hangs: going on would keep the fetch waiting for each of them."""
_told: Final = SeldomLog(30.0)


class SkippedQueues:
    """The queues that one scan of a fetch couldn't serve."""

    def __init__(self, slow_s: float) -> None:
        self._slow_s = slow_s
        self.queues: dict[str, OjsError] = {}
        self._served = False
        self._slow = 0

    @property
    def enough(self) -> bool:
        """Whether it is of no use to go on."""
        return self._slow >= _SLOW

    def skipping(self, queue: str) -> Skipping:
        """Scan a queue in this context: a failure is noted, and the next queue is scanned."""
        return Skipping(self, queue)

    def served(self) -> None:
        """One of the queues could be served."""
        self._served = True

    def failed(self, queue: str, error: OjsError, seconds: float) -> None:
        """One of them couldn't, which took so long."""
        self.queues[queue] = error
        self._slow += seconds >= self._slow_s

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


class Skipping:
    """The context of `SkippedQueues.skipping`; a fetch may enter a hundred, so it is no generator."""

    __slots__ = ("_began", "_queue", "_skipped")

    def __init__(self, skipped: SkippedQueues, queue: str) -> None:
        self._skipped = skipped
        self._queue = queue
        self._began = 0.0

    def __enter__(self) -> None:
        self._began = asyncio.get_running_loop().time()

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        if error is None:
            self._skipped.served()
        elif isinstance(error, OjsError):
            self._skipped.failed(self._queue, error, asyncio.get_running_loop().time() - self._began)
            return True
        return False
