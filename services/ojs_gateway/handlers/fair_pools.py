"""Fair pools, and what they come to (ojs-fair-scheduling §10)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from ojs_core.domain.fair_pools import Pool
from ojs_core.read.messages import WorkerRow
from ojs_core.store.announce import announce
from ojs_core.wire.fair_pools import listed_view, parse_pool, pool_name, pool_view
from ojs_core.wire.lists import with_progress
from ojs_core.wire.members import encode
from ojs_core.wire.scheduling import scheduling_view
from ojs_gateway.context import Context
from ojs_gateway.handlers.worker_admin import live_workers
from ojs_gateway.http.call import Call, Response


class PoolHandlers:
    """Handlers under /admin/pools and /admin/scheduling."""

    def __init__(self, context: Context) -> None:
        self._store = context.store
        self._queries = context.queries
        self._limits = context.limits

    async def list(self, _call: Call) -> Response:
        """GET /admin/pools: by name; `items` as they are set, `pools` with who works for them."""
        pools = await self._store.pools.all()
        if not pools:
            return Response(200, encode({"items": [], "pools": []}))
        workers = await live_workers(self._queries)
        listed = await asyncio.gather(*(self._listed(pool, workers) for pool in pools))
        return Response(200, encode({"items": [pool_view(pool) for pool in pools], "pools": listed}))

    async def _listed(self, pool: Pool, workers: Sequence[WorkerRow]) -> dict[str, Any]:
        queues = await asyncio.gather(*(self._queries.queue(name) for name in pool.weights))
        serving = [worker for worker in workers if not pool.weights.keys().isdisjoint(worker.record.queues)]
        return listed_view(pool, serving, sum(queue.counts.active for queue in queues))

    async def read(self, call: Call) -> Response:
        """GET /admin/pools/{name}."""
        pool = await self._store.pools.get(pool_name(call.parameters[0], self._limits))
        return Response(200, encode({"pool": pool_view(pool)}))

    async def put(self, call: Call) -> Response:
        """PUT /admin/pools/{name}: 201 for a new pool, 200 for one that was there."""
        wanted = await call.read(parse_pool, call.parameters[0], self._limits)
        await self._store.pools.all()
        before, pool = await self._store.pools.put(wanted)
        if before is None:
            return Response(201, encode({"pool": pool_view(pool)}))
        if msgspec.structs.replace(before, updated_at=pool.updated_at, op=pool.op) != pool:
            told = {"pool": pool.name, "previous_strategy": before.strategy, "new_strategy": pool.strategy}
            await announce(self._store, "scheduling.rebalanced", scope="pool", subject=pool.name, data=told)
        return Response(200, encode({"pool": pool_view(pool)}))

    async def delete(self, call: Call) -> Response:
        """DELETE /admin/pools/{name}."""
        pool = await self._store.pools.delete(pool_name(call.parameters[0], self._limits))
        return Response(200, encode({"deleted": True, "name": pool.name}))

    async def stats(self, _call: Call) -> Response:
        """GET /admin/scheduling/stats: what each queue gave within the last minute, through whichever gateway."""
        pools = await self._store.pools.all()
        held = {name for name, record in (await self._store.queues.all()).items() if record.held}
        lately = await self._queries.dispatches(tuple(queue for pool in pools for queue in pool.weights))
        if await self._store.queues.under_maintenance():
            held |= {queue.name for queue in lately.queues}
        return Response(200, encode(with_progress(scheduling_view(lately, pools, held, self._store.clock.now()), lately)))
