"""The service that advances workflows. Any number may run; none keeps anything that the others need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ojs_features.workflows.coordinator import Coordinator

if TYPE_CHECKING:
    from ojs_engine.base.service import Service
    from ojs_engine.store.store import Store
    from ojs_runtime.settings import Settings


def build(store: Store, settings: Settings) -> Service:
    """Return the service, which takes no new jobs: those of later steps are accepted work."""
    del settings
    store.room.takes_no_jobs()
    return Coordinator(store)
