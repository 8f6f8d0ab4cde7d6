"""The coordinator: advances workflows. Any number of them may run; none keeps anything that the others need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ojs_coordinator.coordinator import Coordinator

if TYPE_CHECKING:
    from ojs_core.runtime.service import Service
    from ojs_core.runtime.settings import Settings
    from ojs_core.store.store import Store


def build(store: Store, settings: Settings) -> Service:
    del settings
    return Coordinator(store)
