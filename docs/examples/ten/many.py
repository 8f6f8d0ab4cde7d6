"""Push fifty jobs in one request: all of them or, if one is refused, none."""

from __future__ import annotations

import asyncio

from jobs import add, app


async def main() -> None:
    async with app:
        handles = await app.client.push_all([add.job(number, 1) for number in range(50)])
        print(sum([await handle.result(timeout="1m") for handle in handles]))


asyncio.run(main())
