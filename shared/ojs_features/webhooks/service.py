"""The service that sends events to the URLs that have subscribed to them. Any number may run; none keeps anything."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ojs_features.webhooks.deliverer import Deliverer
from ojs_features.webhooks.startup import INSECURE, PRIVATE
from ojs_features.webhooks.targets import Targets

if TYPE_CHECKING:
    from ojs_engine.base.service import Service
    from ojs_engine.store.store import Store
    from ojs_runtime.settings import Settings


def build(store: Store, settings: Settings) -> Service:
    """Return the service, which takes no new jobs."""
    store.room.takes_no_jobs()
    return Deliverer(store, Targets(insecure=settings.value(INSECURE), private=settings.value(PRIVATE)))
