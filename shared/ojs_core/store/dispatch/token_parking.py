"""Holding tokens many at a time when a gate lets none of their jobs start, while the fetch goes on with other jobs
(docs/adr/014).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Final

import structlog

from ojs_core.base.errors import OjsError
from ojs_core.base.loops import stop_tasks
from ojs_core.jetstream.subjects import REST, StoreConfig
from ojs_core.store.dispatch.claims import Claims
from ojs_core.store.dispatch.token_reader import TokenReader
from ojs_core.store.dispatch.wakeups import Wakeups
from ojs_core.store.gates import StartGate

log = structlog.get_logger(__name__)

_FIRST: Final = 16
_MOST: Final = 50
"""Tokens in hand together: the more only blocked ones are met, the more. What they cost delays others' fetches."""
_TOLD: Final = 1_000
"""So many are worth a line in the log."""


class TokenParking:
    """Clears the heads of lanes until a job is met that may start, or nothing is left; one task for each lane."""

    def __init__(self, gate: StartGate, reader: TokenReader, claims: Claims, wakeups: Wakeups, config: StoreConfig) -> None:
        self._gate = gate
        self._reader = reader
        self._claims = claims
        self._wakeups = wakeups
        self._config = config
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @property
    def busy(self) -> bool:
        """Whether any lane is being cleared."""
        return bool(self._tasks)

    def usable(self, lanes: Sequence[str]) -> list[str]:
        """Those of one priority's lanes that nobody clears just now."""
        return [subject for subject in lanes if subject not in self._tasks]

    def begin(self, queue: str, subject: str) -> None:
        """Have a lane cleared, unless it is being."""
        if subject not in self._tasks:
            self._tasks[subject] = asyncio.create_task(self._clear(queue, subject), name=f"clear-{subject}")

    async def done(self, subject: str, patience_s: float) -> None:
        """Wait until a lane is cleared, or patience is at an end."""
        if task := self._tasks.get(subject):
            await asyncio.wait({task}, timeout=patience_s)

    async def settled(self, queues: Iterable[str], patience_s: float) -> bool:
        """Wait until no lane of some queues is being cleared, if any is; whether one has been done with."""
        prefixes = tuple(self._config.ready_of_queue(queue).removesuffix(REST) for queue in queues)
        tasks = [task for subject, task in self._tasks.items() if subject.startswith(prefixes)]
        if not tasks:
            return False
        done, _ = await asyncio.wait(tasks, timeout=patience_s, return_when=asyncio.FIRST_COMPLETED)
        return bool(done)

    async def close(self) -> None:
        """Leave the rest to others; tokens in hand come back by themselves."""
        await stop_tasks(self._tasks.values())

    async def _clear(self, queue: str, subject: str) -> None:
        number, aside = _FIRST, 0
        try:
            while tokens := await self._reader.pull(subject, queue, number, much=True):
                if not await self._claims.set_aside(self._gate, queue, tokens):
                    break
                aside += len(tokens)
                number = min(2 * number, _MOST)
        except OjsError as error:
            log.debug("tokens of blocked jobs stay in their lane for now", queue=queue, reason=error.message)
        finally:
            del self._tasks[subject]
            if aside > _TOLD:
                log.info("tokens of blocked jobs were put aside", queue=queue, tokens=aside)
            self._wakeups.wake_queue(queue)
