"""Limits in one process: permits, the jobs that wait for one, and the gates that ask for them."""

from __future__ import annotations

from ojs_engine.store.store import Store
from ojs_engine.store.threshold_alerts import AlertTimings, ThresholdAlerts
from ojs_features.limits.blocked_jobs import BlockedJobs, BlockedJobTimings
from ojs_features.limits.limiter import Limiter, LimiterTimings
from ojs_features.limits.permits import Permits, PermitTimings


class Limits:
    """Made by `store.of(Limits)`."""

    def __init__(self, store: Store) -> None:
        bucket = store.bucket
        self._alerts = ThresholdAlerts(bucket, bucket.timings(AlertTimings))
        self.permits = Permits(bucket, bucket.timings(PermitTimings))
        self.blocked = BlockedJobs(bucket, self.permits, self._alerts, bucket.timings(BlockedJobTimings))
        self.push = self.permits
        self.start = Limiter(self.permits, self.blocked, bucket, bucket.timings(LimiterTimings))

    async def clear(self) -> None:
        """Forget what was read and noted (reset)."""
        await self._alerts.clear()
        await self.permits.clear()
