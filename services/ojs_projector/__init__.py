"""The projector: follows the job records, publishes their lifecycle events and answers what is asked about many jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ojs_features.all import FOLLOWED
from ojs_projector.projector import Projector

if TYPE_CHECKING:
    from ojs_engine.base.service import Service
    from ojs_engine.store.store import Store
    from ojs_runtime.settings import Settings


def build(store: Store, settings: Settings) -> Service:
    return Projector(
        store,
        settings.projector_data,
        dead_letters=settings.dead_letter_max_count,
        features=FOLLOWED,
    )
