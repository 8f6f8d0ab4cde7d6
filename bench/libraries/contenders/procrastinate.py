from __future__ import annotations

import asyncio
import os
import sys

from contenders import mark
from procrastinate import App, PsycopgConnector

app = App(connector=PsycopgConnector(conninfo=os.environ["POSTGRES"]))


@app.task(name="noop")
async def noop(number: int) -> None:  # noqa: ARG001
    mark()


async def push(count: int) -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        for start in range(0, count, 1_000):
            await noop.batch_defer_async(*({"number": number} for number in range(start, min(start + 1_000, count))))


if __name__ == "__main__":
    asyncio.run(push(int(sys.argv[2])))
