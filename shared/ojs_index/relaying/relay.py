"""The relay's role: who holds it, from where a new holder reads, and its end (docs/adr/007)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

import structlog

from ojs_engine.base.errors import OjsError
from ojs_engine.base.loops import start_loop, stop_loop
from ojs_engine.base.waiting import until_next, within
from ojs_engine.jetstream.clock import ServerClock
from ojs_engine.jetstream.event_log import EventLog
from ojs_engine.jetstream.lease import Lease
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_index.relaying.relay_term import ReadCreation, RelayTerm, SourceOf, TermLimits
from ojs_index.sqlite.model import Seen
from ojs_link.timings import Order, Timings

log = structlog.get_logger(__name__)


class RelayTimings(Timings, frozen=True, kw_only=True):
    """When the role of the relay is renewed, and taken over."""

    renew_s: float = 1.0
    """How often the lease is written."""
    look_s: float = 0.25
    """How often the others check it."""
    takeover_ms: int = 3_500
    """With a renewal just before the end, a look just too early and a loaded machine it stays below the promised 5 s."""
    reset_s: float = 5.0
    """How long the end of a reset is waited for."""
    drain_s: float = 0.5
    """How long a relay that stops goes on with what it has read."""
    term: TermLimits = TermLimits()
    """One holder's time."""
    order: ClassVar[Order] = (
        ("renew_s", "takeover_ms", "a lease would be taken from a relay that renews it"),
        ("look_s", "takeover_ms", "no other would look before it is over"),
    )


class Relay:
    """One replica's part: it holds the lease and a tenure, or looks whether the holder is still there."""

    def __init__(
        self,
        lease: Lease,
        event_log: EventLog,
        clock: ServerClock,
        config: StoreConfig,
        source_of: SourceOf,
        read: ReadCreation,
        instance: str,
        timings: RelayTimings,
    ) -> None:
        self._timings = timings
        self._lease = lease
        self._log = event_log
        self._source_of = source_of
        self._read_creation = read
        self._clock = clock
        self._config = config
        self._instance = instance
        self._revision = 0
        self._renew_at = 0.0
        """When the lease is written next (loop time)."""
        self._term: RelayTerm | None = None
        self._begun = False
        self._changed = asyncio.Event()
        """Set when a tenure begins."""
        self._held_until = 0.0
        self._events_before = 0
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._task = start_loop("relay-lease", self._keep, tell=False)

    async def stop(self) -> None:
        """Append what was taken, give the role up, so that another takes over at once."""
        await stop_loop(self._task)
        tenure = self._term
        if tenure is None:
            return
        await tenure.drain(self._timings.drain_s)
        await self._close(tenure)
        try:
            await self._lease.write(self._revision, "", tenure.done)
        except OjsError as error:
            log.debug("the relay's lease was not given up", reason=error.message)

    # For whoever reads the records

    @property
    def wanted(self) -> int | None:
        """The sequence from which a tenure that has just begun must be fed; None if there is none. See `begin`."""
        return self._term.done + 1 if self._term is not None and not self._begun else None

    def begin(self) -> None:
        """From now on `take` gets everything from the wanted sequence on."""
        if self._term is not None:
            self._begun = True
            self._term.start()

    async def take(self, batch: Sequence[Seen]) -> None:
        """Relay what is new in a batch, if this replica holds the role. Raises OjsError backend_unavailable."""
        tenure = self._term
        if tenure is not None and self._begun:
            try:
                await tenure.take(batch)
            except OjsError:
                await self._close(tenure)  # the batch was not taken: the next tenure reads it again
                raise

    @property
    def leading(self) -> bool:
        return self._term is not None and self._begun and self._term.over is None

    @property
    def relayed(self) -> int:
        return self._term.done if self._term is not None else 0

    @property
    def events(self) -> int:
        """Events stored since this process started."""
        return self._events_before + (self._term.appended if self._term is not None else 0)

    async def until_relayed(self, sequence: int) -> None:
        """Wait until this replica has relayed everything up to `sequence`: for ever, unless it holds the role or gets it."""
        while self._term is None or self._term.done < sequence:
            changed = self._changed if self._term is None else self._term.progress
            changed.clear()
            await changed.wait()

    async def clear(self) -> None:
        """A reset has begun (see `Store.on_reset`)."""
        if self._term is not None:
            self._held_until = asyncio.get_running_loop().time() + self._timings.reset_s
            await self._term.hold()

    # The lease

    async def _keep(self) -> None:
        now = asyncio.get_running_loop().time
        if self._term is None:
            await self._try()
            self._renew_at = now() + until_next(self._timings.renew_s)
        elif self._over(self._term) or now() >= self._renew_at:
            await self._renew(self._term)
            self._renew_at = now() + until_next(self._timings.renew_s)
        if self._term is None:
            await asyncio.sleep(self._timings.look_s)
        else:
            await within(max(0.0, self._renew_at - now()), self._term.ended)

    async def _try(self) -> None:
        held = await self._lease.read()
        now = self._clock.now()
        if held.holder not in {"", self._instance} and now - held.at < self._timings.takeover_ms:
            return
        revision = await self._lease.write(held.sequence, self._instance, held.done)
        if revision is None:
            return
        last = await self._log.last_sequence()
        self._revision, self._begun = revision, False
        self._term = RelayTerm(
            self._log,
            self._config,
            self._source_of,
            self._read_creation,
            last=last,
            began_at=now,
            done=held.done,
            limits=self._timings.term,
        )
        self._changed.set()
        log.info("relaying events", after=held.done, predecessor=held.holder or None)

    async def _renew(self, tenure: RelayTerm) -> None:
        if self._over(tenure):
            log.warning("relaying ended", reason=tenure.over or "a reset was not completed")
            await self._close(tenure)
            await asyncio.sleep(self._timings.renew_s)
            return
        revision = await self._lease.write(self._revision, self._instance, tenure.done)
        if revision is None:
            log.warning("relaying ended", reason="another projector took the lease")
            await self._close(tenure)
        else:
            self._revision = revision

    def _over(self, tenure: RelayTerm) -> bool:
        return tenure.over is not None or (tenure.held and asyncio.get_running_loop().time() > self._held_until)

    async def _close(self, tenure: RelayTerm) -> None:
        await tenure.stop()
        if self._term is tenure:
            self._events_before += tenure.appended
            self._term, self._begun = None, False
