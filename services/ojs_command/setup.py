"""`ojs-nats setup`: makes the streams, for services whose users may not, and gives them the copies that are asked for."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar

from ojs_engine.base.errors import OjsError
from ojs_engine.base.problems import StartupProblem, Unreachable
from ojs_engine.jetstream.connection import CannotConnect, Connection
from ojs_engine.jetstream.grants import OPERATOR
from ojs_engine.jetstream.streams import behind, check_server, no_way_to_nats, provision, raise_copies
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_link.timings import Timings
from ojs_runtime.settings import Settings

T = TypeVar("T")


class SetupTimings(Timings, frozen=True, kw_only=True):
    """How long copies of streams are waited for."""

    look_s: float = 0.5
    """Between two looks how far they are, or whether all streams have leaders."""
    patience_s: float = 60.0
    """How long they may come no nearer before the command says so, and fails."""


async def set_up(settings: Settings, timings: SetupTimings = SetupTimings()) -> int:
    """Make, check and raise the streams once; returns the exit code. Raises StartupProblem."""
    nats = Connection(f"{settings.namespace}-{OPERATOR}")
    url = settings.nats_of(OPERATOR)
    try:
        await nats.connect(url)
        check_server(nats)
        await _once_led(settings, timings, partial(provision, nats, settings.streams))
        wanted = settings.streams.streams()
        raised = [one for one in wanted if await _once_led(settings, timings, partial(raise_copies, nats, one))]
        if raised:
            print(f"{settings.replicas} copies from now on: {', '.join(one['name'] for one in raised)}", flush=True)
            await _until_whole(nats, settings.streams, timings)
            print("all copies are up to date: restart the services now, one after the other, with the same --replicas")
        elif left := await _once_led(settings, timings, partial(_behind, nats, settings.streams)):
            _tell(left)
    except CannotConnect as error:
        raise no_way_to_nats(url, error) from None
    finally:
        await nats.close()
    names = ", ".join(stream["name"] for stream in settings.streams.streams())
    print(f"the streams are as they must be: {names}")
    return 0


async def _once_led(settings: Settings, timings: SetupTimings, what: Callable[[], Awaitable[T]]) -> T:
    """Return what something returns once all streams have leaders: a cluster that has lost one chooses another in
    seconds.

    Raises StartupProblem, that there is none as well after as long as services wait for NATS.
    """
    until = time.monotonic() + settings.connect_timeout
    told = False
    while True:
        try:
            return await what()
        except Unreachable as problem:
            if time.monotonic() + timings.look_s >= until:
                raise
            if not told:
                print(f"waiting for NATS: {problem}", file=sys.stderr, flush=True)
                told = True
            await asyncio.sleep(timings.look_s)


async def _behind(nats: Connection, config: StoreConfig) -> dict[str, int]:
    """Return how far copies are. Raises Unreachable while a stream has no leader."""
    try:
        return await behind(nats, config)
    except OjsError as error:
        raise Unreachable(f"JetStream does not answer yet: {error.message}.") from None


async def _until_whole(nats: Connection, config: StoreConfig, timings: SetupTimings) -> None:
    """Wait until every stream has all its copies, and say how far they are. Raises StartupProblem."""
    told: dict[str, int] | None = None
    moved = time.monotonic()
    while True:
        try:
            left = await behind(nats, config)
        except OjsError:  # a stream without a leader for a moment
            left = told or {"a stream": 0}
        if not left:
            return
        if left != told:
            told, moved = left, time.monotonic()
            _tell(left)
        elif time.monotonic() - moved > timings.patience_s:
            raise StartupProblem(
                f"the copies of {', '.join(left)} have come no nearer for {timings.patience_s:g} s: see that all "
                "nats-servers of the cluster run (ojs-nats doctor). NATS goes on by itself; run 'ojs-nats setup' again to look."
            )
        await asyncio.sleep(timings.look_s)


def _tell(left: Mapping[str, int]) -> None:
    said = ", ".join(f"{name} lacks {number} messages" for name, number in left.items())
    print(f"copying: {said}", file=sys.stderr, flush=True)
