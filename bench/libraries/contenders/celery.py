from __future__ import annotations

import os
import sys

from celery import Celery
from contenders import mark

# Threads share the count of `mark`; the result is ignored and acks are late, as for jobs that must not be lost.
app = Celery("contenders.celery", broker=os.environ["REDIS"], task_ignore_result=True, task_acks_late=True)


@app.task(name="noop")
def noop(_number: int) -> None:
    mark()


if __name__ == "__main__":
    with app.producer_pool.acquire(block=True) as producer:
        for number in range(int(sys.argv[2])):
            noop.apply_async((number,), producer=producer)
