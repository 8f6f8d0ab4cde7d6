from __future__ import annotations

import asyncio
import os
import sys
from typing import Any, ClassVar

from arq import create_pool
from arq.connections import RedisSettings
from contenders import CONCURRENCY, mark

REDIS = RedisSettings.from_dsn(os.environ["REDIS"])


async def noop(_ctx: Any, _number: int) -> None:
    mark()


class WorkerSettings:
    functions: ClassVar = [noop]
    redis_settings = REDIS
    max_jobs = CONCURRENCY
    poll_delay = 0.01  # it looks for jobs so often; by default, twice a second


async def push(count: int) -> None:
    pool = await create_pool(REDIS)
    for start in range(0, count, 100):
        await asyncio.gather(*(pool.enqueue_job("noop", number) for number in range(start, min(start + 100, count))))
    await pool.aclose()


if __name__ == "__main__":
    asyncio.run(push(int(sys.argv[2])))
