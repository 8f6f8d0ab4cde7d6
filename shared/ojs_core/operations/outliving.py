"""Cron entries that a key leaves behind (docs/adr/072)."""

from __future__ import annotations

from ojs_core.store.store import Store


async def crons_of(store: Store, key_id: str) -> list[str]:
    """Return the names of the cron entries that a key registered or changed last."""
    return [cron.name for cron in await store.crons.all() if cron.key == key_id]
