from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from contenders import JOBS, mark

from ojs_nats import App

app = App()


@app.job("noop", queue="noop")
async def noop(_number: int) -> None:
    mark()


waits: list[float] = []


@app.job("clock", queue="clock")
async def clock(pushed_ns: int) -> None:
    note((time.monotonic_ns() - pushed_ns) / 1e6)


def note(milliseconds: float) -> None:
    """How long ago a job was pushed that begins now."""
    waits.append(milliseconds)
    if len(waits) == JOBS:
        Path(os.environ["DONE"]).write_text(json.dumps(waits), encoding="utf-8")


async def push(count: int) -> None:
    async with app:
        for start in range(0, count, 1_000):
            await app.client.push_all([noop.job(number) for number in range(start, min(start + 1_000, count))])


if __name__ == "__main__":
    asyncio.run(push(int(sys.argv[2])))
