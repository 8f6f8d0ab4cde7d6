"""Cron entries that a key leaves behind (docs/adr/072)."""

from __future__ import annotations

from ojs_engine.store.store import Store
from ojs_features.crons.store import Crons


async def crons_of(store: Store, key_id: str) -> list[str]:
    """Return the names of the entries that a key registered or changed last. They go on."""
    return [cron.name for cron in await store.of(Crons).all() if cron.key == key_id]
