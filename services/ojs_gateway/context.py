"""The context of the gateway's handlers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ojs_engine.api.large_bodies import LargeBodies
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.members import not_honoured
from ojs_engine.store.workers.notes import WorkerNotes
from ojs_engine.wire.system.extensions import SupportedExtensions
from ojs_features.context import HandlerContext, Known
from ojs_features.plug import only
from ojs_gateway.damage import Damage
from ojs_gateway.roles import Roles
from ojs_gateway.without_keys import WithoutKeys
from ojs_link.timings import Order, Timings
from ojs_runtime.connections import HttpTimings

if TYPE_CHECKING:
    from ojs_engine.api.witness import Witness
    from ojs_engine.store.store import Store
    from ojs_features.plug import Feature
    from ojs_runtime.settings import Settings

T = TypeVar("T")


class GatewayTimings(Timings, frozen=True, kw_only=True):
    """How often a gateway looks after things, and says that a stream lives."""

    damage_s: float = 10.0
    """Between two looks whether nats-server has lost data."""
    connections: HttpTimings = HttpTimings()
    """Connections of clients."""
    body_s: float = 30.0
    """How long a body may take once its request is being handled."""
    keep_alive_s: float = 15.0
    """After this long of silence a stream says that it is there (ojs-realtime §2.4)."""
    leaving_ms: int = 1_000
    """How often a worker that is leaving is checked again."""
    goodbye_s: float = 1.0
    """How long a goodbye waits for the index; the reaper checks each job every half a minute."""
    shutdown_s: float = 1.8
    """What a running request has to finish, and again what it has after it was told to give up."""
    farewell_s: float = 0.6
    """How long, at most, open connections may bring one more request, which is answered as their last. Closed at
    once, they would cut off clients that ask again and again.
    """
    order: ClassVar[Order] = (("farewell_s", "shutdown_s", "a last request would have no time for its answer"),)


class Context(HandlerContext):
    """The store, the limits and the settings behind all handlers of one gateway, and its requests that only wait."""

    def __init__(
        self,
        store: Store,
        limits: PayloadLimits,
        settings: Settings,
        features: tuple[Feature, ...],
        *,
        witnesses: Sequence[Witness] = (),
        timings: GatewayTimings = GatewayTimings(),
        aside: LargeBodies | None = None,
    ) -> None:
        checks = [check for feature in features for check in feature.job_checks]
        self.settings = settings
        missing = not_honoured({feature.name for feature in features})
        self.roles = Roles(store, [process for feature in features for process in feature.processes])
        self.damage = Damage(store, timings.damage_s)
        known = Known(
            test_mode=settings.test_mode,
            damage=lambda: self.damage.found,
            missing=lambda: self.roles.missing,
            without=self.roles.without,
            checks=[check for feature in features for check in feature.checks],
            records=[reader for feature in features for reader in (*feature.records, *feature.lasting)],
            removed={kind: after for feature in features for kind, after in feature.removed.items()},
            reasons=[extras.why for feature in features for extras in feature.jobs],
        )
        guard = (only(feature.guard for feature in features) or WithoutKeys)(store, settings)
        ends = [end for feature in features for end in feature.key_ends]
        super().__init__(
            store,
            limits,
            settings.value,
            settings.strict_mode,
            checks,
            missing,
            aside or LargeBodies(),
            known,
            timings.keep_alive_s,
            guard,
            ends,
        )
        self.timings = timings
        self.features = features
        self.extensions = SupportedExtensions(one for feature in features for one in feature.extensions)
        self.witnesses = witnesses
        self.worker_notes = WorkerNotes(store.nats, store.clock, store.config, store.watches)
        self.nats_api = settings.nats_api != "off"
        self.stopping = False
        self.draining: Callable[[], bool] = lambda: False
        self._waiting: set[asyncio.Task[Any]] = set()

    async def unless_stopping(self, wait: Coroutine[Any, Any, T]) -> T | None:
        """The result of `wait`, or None if the gateway stops first. Only for waits that can be cut off at any point."""
        if self.stopping:
            wait.close()
            return None
        task = asyncio.create_task(wait)
        self._waiting.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():  # the request itself, not its wait
                raise
            return None
        finally:
            task.cancel()
            self._waiting.discard(task)

    def stop_waiting(self) -> None:
        """Let everybody go who waits for work or for a result."""
        self.stopping = True
        self.store.dispatcher.wakeups.wake_all()
        for task in self._waiting:
            task.cancel()
