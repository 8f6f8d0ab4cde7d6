from __future__ import annotations

import asyncio
import sys

from contenders import mark

from ojs_nats import App

app = App()


@app.job("noop", queue="noop")
async def noop(_number: int) -> None:
    mark()


async def push(count: int) -> None:
    async with app:
        for start in range(0, count, 1_000):
            await app.client.push_many([noop.s(number) for number in range(start, min(start + 1_000, count))])


if __name__ == "__main__":
    asyncio.run(push(int(sys.argv[2])))
