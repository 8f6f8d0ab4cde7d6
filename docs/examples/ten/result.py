"""Push a job, and wait for what its handler returns."""

from __future__ import annotations

import asyncio

from jobs import add, app


async def main() -> None:
    async with app:
        handle = await add.push(1, 2)
        print(await handle.result(timeout="30s"))
    print(add(3, 4), "without a job")


asyncio.run(main())
