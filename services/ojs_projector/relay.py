"""The relay's role: who holds it, from where a new holder reads, and its end (architecture §8b; docs/adr/007)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import structlog

from ojs_nats.errors import OjsError
from ojs_nats.store.clock import ServerClock
from ojs_nats.store.eventlog import EventLog
from ojs_nats.store.lease import Lease
from ojs_nats.store.names import StoreConfig
from ojs_projector.model import Seen
from ojs_projector.tenure import Tenure

__all__ = ["Relay"]

log = structlog.get_logger(__name__)

RENEW_S: Final = 1.0
LOOK_S: Final = 0.25
TAKEOVER_MS: Final = 3_500
"""With a renewal just before the end, a look just too early and a loaded machine it stays below the 5 s that are promised."""
RESET_S: Final = 5.0
_DRAIN_S: Final = 0.5


class Relay:
    """One replica's part: it holds the lease and a tenure, or looks whether the holder is still there."""

    def __init__(self, lease: Lease, event_log: EventLog, clock: ServerClock, config: StoreConfig, instance: str) -> None:
        self._lease = lease
        self._log = event_log
        self._clock = clock
        self._config = config
        self._instance = instance
        self._revision = 0
        self._tenure: Tenure | None = None
        self._begun = False
        self._changed = asyncio.Event()
        """Set when a tenure begins."""
        self._held_until = 0.0
        self._events_before = 0
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = asyncio.create_task(self._keep(), name="relay-lease")

    async def stop(self) -> None:
        """Append what was taken, give the role up, so that another takes over at once."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        tenure = self._tenure
        if tenure is None:
            return
        await tenure.drain(_DRAIN_S)
        await self._close(tenure)
        try:
            await self._lease.write(self._revision, "", tenure.done)
        except OjsError as error:
            log.debug("the relay's lease was not given up", reason=error.message)

    # For whoever reads the records

    @property
    def wanted(self) -> int | None:
        """The sequence from which a tenure that has just begun must be fed; None if there is none. See `begin`."""
        return self._tenure.done + 1 if self._tenure is not None and not self._begun else None

    def begin(self) -> None:
        """From now on `take` gets everything from the wanted sequence on."""
        if self._tenure is not None:
            self._begun = True
            self._tenure.start()

    async def take(self, batch: Sequence[Seen]) -> None:
        """Relay what is new in a batch, if this replica holds the role. Raises OjsError backend_unavailable."""
        tenure = self._tenure
        if tenure is not None and self._begun:
            try:
                await tenure.take(batch)
            except OjsError:
                await self._close(tenure)  # the batch was not taken: the next tenure reads it again
                raise

    @property
    def leading(self) -> bool:
        return self._tenure is not None and self._begun and self._tenure.over is None

    @property
    def relayed(self) -> int:
        return self._tenure.done if self._tenure is not None else 0

    @property
    def events(self) -> int:
        """Events stored since this process started."""
        return self._events_before + (self._tenure.appended if self._tenure is not None else 0)

    async def until_relayed(self, sequence: int) -> None:
        """Wait until this replica has relayed everything up to `sequence`: for ever, unless it holds the role or gets it."""
        while self._tenure is None or self._tenure.done < sequence:
            changed = self._changed if self._tenure is None else self._tenure.progress
            changed.clear()
            await changed.wait()

    async def clear(self) -> None:
        """A reset has begun (see `Store.on_reset`)."""
        if self._tenure is not None:
            self._held_until = asyncio.get_running_loop().time() + RESET_S
            await self._tenure.hold()

    # The lease

    async def _keep(self) -> None:
        renewed = 0.0
        loop = asyncio.get_running_loop()
        while True:
            try:
                if self._tenure is None:
                    await self._try()
                    renewed = loop.time()
                elif self._over(self._tenure) or loop.time() - renewed >= RENEW_S:
                    await self._renew(self._tenure)
                    renewed = loop.time()
            except OjsError as error:
                log.debug("the relay's lease waits", reason=error.message)
            except Exception:
                log.exception("the relay's lease failed")
            await asyncio.sleep(LOOK_S)

    async def _try(self) -> None:
        held = await self._lease.read()
        now = self._clock.now()
        if held.holder not in {"", self._instance} and now - held.at < TAKEOVER_MS:
            return
        revision = await self._lease.write(held.sequence, self._instance, held.done)
        if revision is None:
            return
        last = await self._log.last_sequence()
        self._revision, self._begun = revision, False
        self._tenure = Tenure(self._log, self._config, last=last, began_at=now, done=held.done)
        self._changed.set()
        log.info("relaying events", after=held.done, predecessor=held.holder or None)

    async def _renew(self, tenure: Tenure) -> None:
        if self._over(tenure):
            log.warning("relaying ended", reason=tenure.over or "a reset was not completed")
            await self._close(tenure)
            await asyncio.sleep(RENEW_S)
            return
        revision = await self._lease.write(self._revision, self._instance, tenure.done)
        if revision is None:
            log.warning("relaying ended", reason="another projector took the lease")
            await self._close(tenure)
        else:
            self._revision = revision

    def _over(self, tenure: Tenure) -> bool:
        return tenure.over is not None or (tenure.held and asyncio.get_running_loop().time() > self._held_until)

    async def _close(self, tenure: Tenure) -> None:
        await tenure.stop()
        if self._tenure is tenure:
            self._events_before += tenure.appended
            self._tenure, self._begun = None, False
