"""Add in parallel, then add up what came out: a chord."""

from __future__ import annotations

import asyncio

from jobs import add, app, total

from ojs_nats import chain, group


async def main() -> None:
    async with app:
        flow = chain(group(add.job(1, 2), add.job(3, 4)), total.job())
        handle = await app.client.workflows.start(flow)
        print(await handle.result(timeout="30s"))


asyncio.run(main())
