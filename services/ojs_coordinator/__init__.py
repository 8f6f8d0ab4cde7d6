"""The coordinator: advances workflows. Any number of them may run; none keeps anything that the others need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ojs_coordinator.coordinator import Coordinator

if TYPE_CHECKING:
    from ojs_nats.service import Service
    from ojs_nats.settings import Settings
    from ojs_nats.store import Store

__all__ = ["Coordinator", "build"]


def build(store: Store, settings: Settings) -> Service:
    del settings
    return Coordinator(store)
