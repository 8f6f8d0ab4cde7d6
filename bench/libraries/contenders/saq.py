from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from contenders import CONCURRENCY, mark
from saq import Queue

queue = Queue.from_url(os.environ["REDIS"])


async def noop(_ctx: Any, *, number: int) -> None:  # noqa: ARG001
    mark()


settings = {"queue": queue, "functions": [noop], "concurrency": CONCURRENCY}


async def push(count: int) -> None:
    await queue.connect()
    for start in range(0, count, 100):
        await asyncio.gather(*(queue.enqueue("noop", number=number) for number in range(start, min(start + 100, count))))
    await queue.disconnect()


if __name__ == "__main__":
    asyncio.run(push(int(sys.argv[2])))
