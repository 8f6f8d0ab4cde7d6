"""A batch whose gateway, or nats-server, is killed at any moment is there wholly or not at all, and can be fetched soon."""

from __future__ import annotations

import asyncio
import random
import time
from http.client import HTTPException
from typing import Any

import pytest

from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store
from ojs_features.all import STORE_FEATURES
from support.nats import NatsServer
from support.system import Processes, send
from support.waiting import eventually

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

ROUNDS = 3
"""Of each victim."""
VICTIMS = ("gateway", "nats-server")
LEASE_MS = 600_000
SIZE = 1_500
"""More than nats-server's default takes at once."""
FINISHED_S = 40.0
"""Twice the bound of docs/reliability.md for tokens that a crash has left out: hundreds of other tests may run beside this."""
BEYOND = 1.2
"""The moments of the kills lie within the time that a batch takes, and a little beyond."""


def batch(number: int) -> list[dict[str, Any]]:
    """Jobs with ids of the client's own, so that they can be looked for whatever was answered."""
    return [
        {
            "id": f"0190{number:04x}-0000-7000-8000-{index:012x}",
            "type": "batch.job",
            "args": [index],
            "options": {"queue": f"batch-{number}"},
        }
        for index in range(SIZE)
    ]


async def test_a_batch_is_there_wholly_or_not_at_all(processes: Processes, nats_server: NatsServer, seed: int) -> None:
    chance = random.Random(seed)
    processes.start("projector").ready()
    survivor = processes.start("gateway")
    url = str(survivor.ready()["url"])
    rounds = [(victim, place) for victim in VICTIMS for place in range(ROUNDS)]
    began = time.monotonic()
    assert push(url, batch(len(rounds))) == 201
    took_s = time.monotonic() - began
    stored: list[str] = []
    slowest_s = 0.0
    for number, (victim, place) in enumerate(rounds):
        target = processes.start("gateway")
        jobs = batch(number)
        sent = asyncio.create_task(asyncio.to_thread(push, str(target.ready()["url"]), jobs))
        await asyncio.sleep(took_s * BEYOND * (place + chance.random()) / ROUNDS)
        await asyncio.to_thread(target.kill if victim == "gateway" else nats_server.restart)
        died = time.monotonic()
        answered = await sent
        store = await Store.open(nats_server.url, StoreConfig(), role="test", features=STORE_FEATURES)
        try:
            found = [one.job is not None for one in (await store.records.many([job["id"] for job in jobs])).values()]
        finally:
            await store.close()
        assert sum(found) in {0, SIZE}, f"{victim}: {sum(found)} of {SIZE} are there"
        assert (answered == 201) <= all(found), f"{victim}: it was acknowledged, and isn't there"
        numbers: list[int] = []

        async def as_stored(number: int = number, numbers: list[int] = numbers, wanted: int = sum(found)) -> bool:
            numbers += await asyncio.to_thread(fetched, url, number)
            return len(numbers) >= wanted

        await eventually(as_stored)
        slowest_s = max(slowest_s, time.monotonic() - died)
        assert sorted(numbers) == list(range(sum(found))), victim
        stored += [victim] * all(found)
        target.kill()
    print(f"{len(stored)} of {len(rounds)} batches were stored: {stored}")  # noqa: T201
    print(f"the slowest could be fetched {slowest_s:.1f} s after the kill")  # noqa: T201
    assert slowest_s < FINISHED_S


def push(url: str, jobs: list[dict[str, Any]]) -> int | None:
    """What the client hears; None if nothing."""
    try:
        return send("POST", f"{url}/ojs/v1/jobs/batch", {"jobs": jobs}).status
    except (OSError, HTTPException):
        return None


def fetched(url: str, number: int) -> list[int]:
    body = {"queues": [f"batch-{number}"], "count": 1_000, "worker_id": "w1", "wait_ms": 0, "visibility_timeout_ms": LEASE_MS}
    answer = send("POST", f"{url}/ojs/v1/workers/fetch", body)
    return [one["args"][0] for one in answer.body["jobs"]] if answer.status == 200 else []
