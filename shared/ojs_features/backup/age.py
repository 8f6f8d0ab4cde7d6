"""The age of the last backup, for the findings and the metric of one gateway."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.wording import counted
from ojs_engine.operations.finding import Finding, warning
from ojs_engine.store.store import Store
from ojs_features.backup.last import last_backup
from ojs_features.backup.metrics import AGE
from ojs_features.backup.timings import BackupAgeTimings
from ojs_index.asking.client import Queries

_DAY_MS: Final = 86_400_000
_FRESH_DAYS: Final = 8
"""A weekly backup may be so old."""


class BackupAge:
    """Reads the record of the last backup now and then."""

    def __init__(self, store: Store) -> None:
        self._every_s = store.bucket.timings(BackupAgeTimings).backup_s
        self._store = store
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to look."""
        self._task = start_loop("backup-age", self._run, tell=False)

    async def stop(self) -> None:
        """Look no more."""
        await stop_loop(self._task)

    async def _run(self) -> None:
        await age(self._store)
        await asyncio.sleep(self._every_s)


async def age(store: Store) -> int | None:
    """Return the age (ms), None if no backup was made, and set the metric. Raises OjsError backend_unavailable."""
    at = await last_backup(store.nats, store.config)
    if at is None:
        AGE.forget()
        return None
    age_ms = max(0, store.clock.now() - at)
    AGE.set(age_ms / 1_000)
    return age_ms


async def look(store: Store, _queries: Queries) -> Iterable[Finding]:
    """Read when the last backup was made. Raises OjsError backend_unavailable."""
    return findings(await age(store))


def findings(age_ms: int | None) -> Iterator[Finding]:
    """Whether the last backup is fresh. There is no finding where none was made: the system may be a trial."""
    if age_ms is not None and age_ms > _FRESH_DAYS * _DAY_MS:
        yield warning(
            "backup",
            f"the last backup is {counted(age_ms // _DAY_MS, 'day')} old",
            "if NATS loses its data, what was pushed and what ended since is lost",
            "make one: 'ojs-nats backup DIR --nats URL', and see what makes them regularly (docs/backup.md)",
            "/system",
        )
