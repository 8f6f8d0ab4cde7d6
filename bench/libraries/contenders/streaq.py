from __future__ import annotations

import asyncio
import os
import sys

from contenders import CONCURRENCY, mark
from streaq import Worker

worker = Worker(redis_url=os.environ["REDIS"], concurrency=CONCURRENCY)


@worker.task
async def noop(_number: int) -> None:
    mark()


async def push(count: int) -> None:
    async with worker:
        for start in range(0, count, 1_000):
            await worker.enqueue_many([noop.enqueue(number) for number in range(start, min(start + 1_000, count))])


if __name__ == "__main__":
    asyncio.run(push(int(sys.argv[2])))
