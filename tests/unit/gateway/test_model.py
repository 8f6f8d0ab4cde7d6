"""The fake store behind the gateway, beside the model that the running system is held to as well."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from acceptance.test_model import SOON_MS, STEPS, Api, Client
from ojs_engine.store.store import Store
from ojs_features.all import FEATURES
from ojs_gateway.server import Gateway
from ojs_runtime.settings import Settings
from support.fake_store import FakeStore
from support.model import ModelJob

EXAMPLES = 20

pytestmark = pytest.mark.timeout(600)  # hypothesis makes a failure small for up to five minutes


class Served:
    """A gateway over a fake store, in a thread of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.store = FakeStore()
        self.gateway = Gateway(cast("Store", self.store), Settings(port=0, nats_api="off"), FEATURES)

    def do(self, what: Callable[[], Any]) -> None:
        """Have something done where the gateway runs, and wait for it."""

        async def done() -> None:
            found = what()
            if asyncio.iscoroutine(found):
                await found

        asyncio.run_coroutine_threadsafe(done(), self._loop).result(60.0)


@contextmanager
def served() -> Iterator[Served]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        world = Served(loop)
        world.do(world.gateway.start)
        yield world
        world.do(world.gateway.stop)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def test_the_fake_store_does_what_the_model_does() -> None:
    with served() as world:
        api = Api(world.gateway.url)

        class FakeClient(Client):
            def wait_for(self, job: ModelJob, state: str) -> None:
                """Let the fake's time pass: by so little nothing but what is waited for comes due."""
                self.waits -= 1
                world.do(lambda: world.store.run_due(world.store.clock.now() + SOON_MS))
                assert self.api("GET", f"/jobs/{job.id}")[1]["job"]["state"] == state

        FakeClient.api = api
        try:
            run_state_machine_as_test(
                FakeClient,
                settings=settings(
                    max_examples=EXAMPLES,
                    stateful_step_count=STEPS,
                    deadline=None,
                    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
                ),
            )
        finally:
            api.close()
