from __future__ import annotations

import asyncio
import os
import sys

import nats.js.api
from contenders import mark
from taskiq_nats import PullBasedJetStreamBroker

broker = PullBasedJetStreamBroker(
    [os.environ["NATS"]],
    stream_config=nats.js.api.StreamConfig(name="taskiq_jetstream", subjects=["taskiq_tasks"]),
    pull_consume_batch=int(os.environ.get("BATCH", "1")),
)


@broker.task(task_name="noop")
async def noop(_number: int) -> None:
    mark()


async def push(count: int) -> None:
    await broker.startup()
    for start in range(0, count, 100):
        await asyncio.gather(*(noop.kiq(number) for number in range(start, min(start + 100, count))))
    await broker.shutdown()


if __name__ == "__main__":
    asyncio.run(push(int(sys.argv[2])))
