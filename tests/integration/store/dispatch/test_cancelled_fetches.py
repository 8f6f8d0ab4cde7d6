"""A fetch may be cancelled at any moment: what it has claimed by then, or is just claiming, is given back."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from integration.samples import draft, fetch
from ojs_core.store.store import Store


async def test_a_claim_in_flight_is_given_back(store: Store, other: Store, queue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pushed = await store.jobs.push(draft(queue=queue))
    commit_all, claiming, go_on = store.committer.commit_all, asyncio.Event(), asyncio.Event()

    async def slow(commits: Any) -> Any:
        claiming.set()
        await go_on.wait()
        return await commit_all(commits)

    monkeypatch.setattr(store.committer, "commit_all", slow)
    task = asyncio.create_task(fetch(store, queue, worker="gone"))
    await claiming.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go_on.set()
    [again] = await fetch(other, queue, worker="w", wait_ms=5_000)
    assert (again.id, again.worker, again.attempt, again.uncharged) == (pushed.id, "w", 2, 1)


async def test_closing_waits_for_what_a_cancelled_fetch_claims(
    store: Store, other: Store, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pushed = await store.jobs.push(draft(queue=queue))
    commit_all, claiming = store.committer.commit_all, asyncio.Event()

    async def told(commits: Any) -> Any:
        claiming.set()
        return await commit_all(commits)

    monkeypatch.setattr(store.committer, "commit_all", told)
    task = asyncio.create_task(fetch(store, queue))
    await claiming.wait()
    task.cancel()
    await store.dispatcher.close()
    assert [job.id for job in await fetch(other, queue)] == [pushed.id]


async def test_no_job_is_lost_at_whatever_moment_a_fetch_is_cancelled(store: Store, other: Store, queue: str) -> None:
    chance = random.Random(22)
    pushed = {(await store.jobs.push(draft(queue=queue))).id for _ in range(40)}
    loop = asyncio.get_running_loop()
    taken: set[str] = set()
    for round_ in range(60):
        task = asyncio.create_task(fetch(store, queue, worker="w", count=1 + round_ % 3))
        loop.call_later(chance.random() * 0.003, task.cancel)
        try:
            taken |= {job.id for job in await task}
        except asyncio.CancelledError:
            pass
    while found := await fetch(other, queue, count=10, wait_ms=300):
        taken |= {job.id for job in found}
    assert taken == pushed
