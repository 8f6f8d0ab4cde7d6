"""A request that fails keeps nothing of those that failed before it: outages may be long, and clients go on calling."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Final

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.jetstream.connection import Failed
from ojs_engine.jetstream.consumer_names import ConsumerNames
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.jetstream.turns import Turns, TurnTimings
from ojs_index.asking.client import Barrier

ASKED: Final = 50
MOST_KEPT: Final = 3
"""The failures of the last few requests, which may still be somebody's."""
Ask = Callable[[], Awaitable[object]]


class Away:
    """The connection to a server that doesn't answer: a request fails when its time is over."""

    def __init__(self) -> None:
        self.turns = Turns(TurnTimings())

    async def request(self, *_: object, **__: object) -> Failed:
        for _turn in range(10):
            await asyncio.sleep(0)
        return Failed("nobody answers", sent=True)


def barrier() -> Ask:
    store = SimpleNamespace(nats=Away(), config=StoreConfig(), instance="one")
    return Barrier(store).sequence  # type: ignore[arg-type]


def names_of_consumers() -> Ask:
    return ConsumerNames(Away(), "a_stream").now  # type: ignore[arg-type]


@pytest.mark.parametrize("asking", [barrier, names_of_consumers])
async def test_no_failure_keeps_the_one_before_it(asking: Callable[[], Ask]) -> None:
    """Somebody asks always ahead of the end of the request before."""
    ask = asking()
    failures: list[weakref.ref[BaseException]] = []
    under_way = [asyncio.ensure_future(ask())]
    for _ in range(ASKED):
        await asyncio.sleep(0)
        under_way.append(asyncio.ensure_future(ask()))
        with pytest.raises(OjsError) as caught:
            await under_way.pop(0)
        # Each caller may have an error of its own, made of the one that they share.
        failures.append(weakref.ref(caught.value.__context__ or caught.value))
        del caught
    await asyncio.gather(*under_way, return_exceptions=True)
    gc.collect()
    assert sum(failure() is not None for failure in failures) <= MOST_KEPT
