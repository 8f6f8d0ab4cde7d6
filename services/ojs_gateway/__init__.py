"""The gateway: the HTTP binding of Open Job Spec over the store. Any number of them may run; none keeps anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ojs_features.all import FEATURES
from ojs_gateway.server import Gateway

if TYPE_CHECKING:
    from ojs_engine.store.store import Store
    from ojs_runtime.settings import Settings


def build(store: Store, settings: Settings) -> Gateway:
    """Return a gateway that is not started yet."""
    return Gateway(store, settings, FEATURES)
