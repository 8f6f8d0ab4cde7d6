"""What scenarios need that reach behind the HTTP API: the store of the system under measurement."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Final

from bench.plan import Bench, ServerRefused
from ojs_core.base.errors import OjsError
from ojs_core.jetstream.subjects import StoreConfig
from ojs_core.read.client import Queries
from ojs_core.store.store import Store

_CAUGHT_UP_S: Final = 600.0
_PAUSE_S: Final = 0.2


@asynccontextmanager
async def opened_store(bench: Bench) -> AsyncIterator[Store]:
    """Raises StartupProblem when NATS can't be used."""
    assert bench.nats is not None, "this scenario is left out when the system's NATS isn't known"
    store = await Store.open(bench.nats, StoreConfig(), role="bench")
    try:
        yield store
    finally:
        await store.close()


async def caught_up(store: Store) -> float:
    """Wait until the projector has indexed and relayed all that is stored; returns the seconds. Raises ServerRefused."""
    began = perf_counter()
    queries = Queries(store)
    while True:
        try:
            await queries.until_relayed()
            if not (await queries.totals()).partial:
                return perf_counter() - began
        except OjsError as error:
            if perf_counter() - began > _CAUGHT_UP_S:
                raise ServerRefused(f"the projector does not catch up: {error.message}") from None
        await asyncio.sleep(_PAUSE_S)
