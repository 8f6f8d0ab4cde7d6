from __future__ import annotations

import os
import sys

import dramatiq
from contenders import mark
from dramatiq.brokers.redis import RedisBroker

broker = RedisBroker(url=os.environ["REDIS"])
dramatiq.set_broker(broker)


@dramatiq.actor
def noop(_number: int) -> None:
    mark()


if __name__ == "__main__":
    for number in range(int(sys.argv[2])):
        noop.send(number)
