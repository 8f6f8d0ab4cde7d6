"""The metric of backups."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from prometheus_client import Gauge
from prometheus_client.metrics_core import Metric

from ojs_engine.telemetry.metrics import OF_GATEWAY, Listed


class OptionalGauge(Gauge):
    """A gauge without labels that isn't served until it is set, and after `forget`: 0 would be a figure."""

    _known = False

    def set(self, value: float) -> None:
        """Serve the value."""
        super().set(value)
        self._known = True

    def forget(self) -> None:
        """Serve no value."""
        self._known = False

    def collect(self) -> Iterable[Metric]:
        """Return the value, if there is one."""
        return super().collect() if self._known else ()


AGE: Final = OptionalGauge("ojs_backup_age_seconds", "Age of the last backup; absent while none was made.", registry=None)
OF_GATEWAY.append(Listed(AGE, ()))
