"""Pools, and what they come to (ojs-fair-scheduling §10)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

import msgspec

from ojs_api.pools import DeletedPool, ListedPool, OnePool, PoolList
from ojs_engine.api.call import Call, Response
from ojs_engine.store.announce import announce
from ojs_features.context import HandlerContext
from ojs_features.pools.bodies import listed_pool, parse_pool, pool_answer, pool_name
from ojs_features.pools.rules import Pool
from ojs_features.pools.scheduling import scheduling_stats
from ojs_features.pools.store import Pools
from ojs_index.asking.messages import DispatchesOfQueue, WorkerRow
from ojs_index.asking.walk import live_workers


class PoolHandlers:
    """Handlers under /admin/pools and /admin/scheduling."""

    def __init__(self, context: HandlerContext) -> None:
        self._store = context.store
        self._pools = context.store.of(Pools)
        self._queries = context.queries
        self._limits = context.limits

    async def list(self, _call: Call) -> Response:
        """GET /admin/pools: by name, each with who works for it."""
        pools = await self._pools.all()
        if not pools:
            return Response(200, PoolList([]))
        workers = await live_workers(self._queries)
        return Response(200, PoolList(await asyncio.gather(*(self._listed(pool, workers) for pool in pools))))

    async def _listed(self, pool: Pool, workers: Sequence[WorkerRow]) -> ListedPool:
        queues = await asyncio.gather(*(self._queries.queue(name) for name in pool.weights))
        serving = [worker for worker in workers if not pool.weights.keys().isdisjoint(worker.record.queues)]
        return listed_pool(pool, serving, sum(queue.counts.active for queue in queues))

    async def read(self, call: Call) -> Response:
        """GET /admin/pools/{name}."""
        pool = await self._pools.get(pool_name(call.parameters[0], self._limits))
        return Response(200, OnePool(pool_answer(pool)))

    async def put(self, call: Call) -> Response:
        """PUT /admin/pools/{name}: 201 for a new pool, 200 for one that was there."""
        wanted = await call.read(parse_pool, call.parameters[0], self._limits)
        await self._pools.all()
        before, pool = await self._pools.put(wanted)
        if before is None:
            return Response(201, OnePool(pool_answer(pool)))
        if msgspec.structs.replace(before, updated_at=pool.updated_at, op=pool.op) != pool:
            told = {"pool": pool.name, "previous_strategy": before.strategy, "new_strategy": pool.strategy}
            await announce(self._store, "scheduling.rebalanced", scope="pool", subject=pool.name, data=told)
        return Response(200, OnePool(pool_answer(pool)))

    async def delete(self, call: Call) -> Response:
        """DELETE /admin/pools/{name}."""
        pool = await self._pools.delete(pool_name(call.parameters[0], self._limits))
        return Response(200, DeletedPool(True, pool.name))

    async def stats(self, _call: Call) -> Response:
        """GET /admin/scheduling/stats: what each queue gave within the last minute, through whichever gateway."""
        pools = await self._pools.all()
        held = {name for name, record in (await self._store.queues.all()).items() if record.held}
        lately = await self._queries.dispatches(tuple(queue for pool in pools for queue in pool.weights))
        if await self._store.queues.under_maintenance():
            held |= {queue.name for queue in lately.queues}
        now = self._store.clock.now()
        held |= await self._limited(queue for queue in lately.queues if queue.name not in held)
        return Response(200, scheduling_stats(lately, pools, held, now))

    async def _limited(self, queues: Iterable[DispatchesOfQueue]) -> set[str]:
        """Return the queues with waiting jobs whose gate leaves no room now."""
        store = self._store
        full: set[str] = set()
        for name in (queue.name for queue in queues if queue.available):
            await store.queues.settings(name)
            gate = store.queues.gate(name)
            if gate is not None and (await gate.room(name)).number <= 0:
                full.add(name)
        return full
