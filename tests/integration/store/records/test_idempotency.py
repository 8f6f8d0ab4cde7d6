"""Requests under idempotency keys: carried out once, taken over from the dead, refused when they differ."""

from __future__ import annotations

import asyncio

import pytest

from integration.conftest import OpenStore
from integration.samples import holding, losing_answers, message, refusal, timed, unreachable
from ojs_engine.base.errors import OjsError
from ojs_engine.store.records.idempotency import IdempotencyTimings, KeptAnswer, KeyedRun
from ojs_engine.store.records.kept import KeptTimings
from ojs_engine.store.store import Store, StoreTimings
from support.nats import NatsServer
from support.network import GOOD, UP_ALONE, Network
from support.waiting import eventually


class Work:
    """Counts its runs; `gate` holds them, `failure` ends them."""

    def __init__(self) -> None:
        self.runs: list[KeyedRun] = []
        self.limiter = asyncio.Event()
        self.limiter.set()
        self.failure: Exception | None = None
        self.final = True
        self.status = 201
        self.makes = True
        """Whether it has made something before it ends."""

    async def __call__(self, run: KeyedRun) -> KeptAnswer:
        self.runs.append(run)
        await self.limiter.wait()
        run.made = self.makes
        if self.failure is not None:
            raise self.failure
        return KeptAnswer(self.status, b'{"run":%d}' % len(self.runs), self.final)


def refused(code: str = "invalid_request") -> Work:
    """Work that is refused before it makes anything."""
    work = Work()
    work.failure = OjsError(code, "no")
    work.makes = False
    return work


async def test_many_at_once_are_carried_out_once(store: Store, other: Store, queue: str) -> None:
    work = Work()
    both = (store.idempotency, other.idempotency)
    answers = await asyncio.gather(*(both[index % 2].run("op", queue, b"request", work) for index in range(20)))
    assert len(work.runs) == 1
    assert set(answers) == {(201, b'{"run":1}')}
    assert await store.idempotency.run("op", queue, b"request", work) == (201, b'{"run":1}')
    assert not work.runs[0].repeated


async def test_the_answer_is_kept_for_a_day(store: Store, queue: str) -> None:
    work = Work()
    await store.idempotency.run("op", queue, b"request", work)
    record = await message(store, store.config.record("idempotency", work.runs[0].name))
    assert record is not None
    assert record[1]["Nats-TTL"] == f"{KeptTimings().request_s}s"
    assert KeptTimings().request_s >= 24 * 3_600


async def test_another_request_under_the_key_is_refused_but_not_another_operation(store: Store, queue: str) -> None:
    work = Work()
    await store.idempotency.run("op", queue, b"request", work)
    with refusal("conflict"):
        await store.idempotency.run("op", queue, b"another", work)
    await store.idempotency.run("other op", queue, b"another", work)
    assert len(work.runs) == 2


async def test_what_failed_may_be_sent_again_at_once_and_has_the_same_name(store: Store, other: Store, queue: str) -> None:
    work = Work()
    work.failure = OjsError("backend_unavailable", "away")
    with refusal("backend_unavailable"):
        await store.idempotency.run("op", queue, b"request", work)
    work.failure = None
    assert await other.idempotency.run("op", queue, b"request", work) == (201, b'{"run":2}')
    first, second = work.runs
    assert (first.name, first.began) == (second.name, second.began)
    assert (first.repeated, second.repeated) == (False, True)


@pytest.mark.parametrize("code", ["invalid_request", "permission_denied", "duplicate", "queue_full", "queue_paused"])
async def test_what_is_refused_frees_its_key(store: Store, other: Store, queue: str, code: str) -> None:
    no, work = refused(code), Work()
    for one in (store, other):
        with refusal(code):
            await one.idempotency.run("op", queue, b"wrong", no)
    assert await other.idempotency.run("op", queue, b"right", work) == (201, b'{"run":1}')
    assert await store.idempotency.run("op", queue, b"right", work) == (201, b'{"run":1}')
    assert [run.repeated for run in (*no.runs, *work.runs)] == [False] * 3
    with refusal("conflict"):
        await store.idempotency.run("op", queue, b"wrong", no)


async def test_an_answer_that_made_nothing_frees_the_key(store: Store, other: Store, queue: str) -> None:
    nothing, work = Work(), Work()
    nothing.status, nothing.makes = 422, False
    assert await store.idempotency.run("op", queue, b"wrong", nothing) == (422, b'{"run":1}')
    assert await other.idempotency.run("op", queue, b"wrong", nothing) == (422, b'{"run":2}')
    assert await other.idempotency.run("op", queue, b"right", work) == (201, b'{"run":1}')


@pytest.mark.parametrize("code", ["backend_unavailable", "backend_timeout", "backend_error"])
async def test_an_outcome_that_is_open_keeps_the_key(store: Store, other: Store, queue: str, code: str) -> None:
    failed = refused(code)
    with refusal(code):
        await store.idempotency.run("op", queue, b"request", failed)
    with refusal("conflict"):
        await other.idempotency.run("op", queue, b"another", Work())
    no = refused()  # the second go says nothing of what the first one made
    with refusal("invalid_request"):
        await other.idempotency.run("op", queue, b"request", no)
    assert [run.repeated for run in no.runs] == [True]
    with refusal("conflict"):
        await other.idempotency.run("op", queue, b"another", Work())


async def test_what_is_cut_off_keeps_the_key(store: Store, other: Store, queue: str) -> None:
    cut, work = refused(), Work()
    cut.limiter.clear()
    runner = asyncio.create_task(store.idempotency.run("op", queue, b"request", cut))
    await eventually(lambda: cut.runs)
    runner.cancel()
    with pytest.raises(asyncio.CancelledError):
        await runner
    with refusal("conflict"):
        await other.idempotency.run("op", queue, b"another", work)
    assert work.runs == []


async def test_a_refusal_after_something_was_made_keeps_the_key(store: Store, other: Store, queue: str) -> None:
    late = refused()
    late.makes = True
    with refusal("invalid_request"):
        await store.idempotency.run("op", queue, b"request", late)
    with refusal("conflict"):
        await other.idempotency.run("op", queue, b"another", Work())


@pytest.mark.parametrize("others", [b"wrong", b"right"])
async def test_who_waits_for_a_request_that_is_refused_goes_on_by_itself(
    store: Store, other: Store, queue: str, others: bytes
) -> None:
    no, work = refused(), Work()
    no.limiter.clear()
    first = asyncio.create_task(store.idempotency.run("op", queue, b"wrong", no))
    await eventually(lambda: no.runs)
    waiting = [asyncio.create_task(one.idempotency.run("op", queue, others, work)) for one in (store, other, other)]
    no.limiter.set()
    with refusal("invalid_request"):
        await first
    assert await asyncio.gather(*waiting) == [(201, b'{"run":1}')] * 3
    assert [run.repeated for run in work.runs] == [False]


async def test_another_request_waits_until_it_is_known_whether_the_first_one_counts(
    store: Store, other: Store, queue: str
) -> None:
    work = Work()
    work.limiter.clear()
    first = asyncio.create_task(store.idempotency.run("op", queue, b"request", work))
    await eventually(lambda: work.runs)
    waiting = asyncio.create_task(other.idempotency.run("op", queue, b"another", Work()))
    work.limiter.set()
    with refusal("conflict"):
        await waiting
    assert await first == (201, b'{"run":1}')


@timed(idempotency=IdempotencyTimings(silent_ms=200))
async def test_who_dies_with_a_refusal_in_hand_leaves_the_key_to_the_same_request(
    store: Store, other: Store, queue: str
) -> None:
    dead, no = Work(), refused()
    dead.limiter.clear()
    runner = asyncio.create_task(store.idempotency.run("op", queue, b"wrong", dead))
    await eventually(lambda: dead.runs)
    with refusal("invalid_request"):
        await other.idempotency.run("op", queue, b"wrong", no)
    with refusal("conflict"):
        await other.idempotency.run("op", queue, b"right", Work())
    dead.limiter.set()
    assert await runner == (201, b'{"run":1}'), "it may have made something after all"


async def test_a_key_is_freed_once_nats_is_back(store: Store, other: Store, queue: str) -> None:
    no, work = refused(), Work()
    no.limiter.clear()
    runner = asyncio.create_task(store.idempotency.run("op", queue, b"wrong", no))
    await eventually(lambda: no.runs)
    with unreachable(store.nats, store.config.record("idempotency", ""), times=1_000):
        no.limiter.set()
        with refusal("invalid_request"):
            await runner
    assert await other.idempotency.run("op", queue, b"right", work) == (201, b'{"run":1}')
    assert [run.repeated for run in work.runs] == [False]


async def test_an_answer_that_is_not_final_is_not_kept(store: Store, other: Store, queue: str) -> None:
    work = Work()
    work.final = False
    assert await store.idempotency.run("op", queue, b"request", work) == (201, b'{"run":1}')
    work.final = True
    for one in (store, other):
        assert await one.idempotency.run("op", queue, b"request", work) == (201, b'{"run":2}')
    assert [run.repeated for run in work.runs] == [False, True]


@timed(idempotency=IdempotencyTimings(silent_ms=200))
async def test_a_runner_that_is_dead_is_taken_over_from(store: Store, other: Store, queue: str) -> None:
    dead, work = Work(), Work()
    dead.limiter.clear()
    runner = asyncio.create_task(store.idempotency.run("op", queue, b"request", dead))
    await eventually(lambda: dead.runs)
    assert await other.idempotency.run("op", queue, b"request", work) == (201, b'{"run":1}')
    assert (work.runs[0].began, work.runs[0].repeated) == (dead.runs[0].began, True)
    dead.limiter.set()
    assert await runner == (201, b'{"run":1}')
    assert await store.idempotency.run("op", queue, b"request", work) == (201, b'{"run":1}')
    assert len(work.runs) == 1


async def test_one_that_still_runs_is_waited_for_but_not_for_ever(
    store: Store, other: Store, queue: str, shared_nats_server: NatsServer, open_store: OpenStore
) -> None:
    work = Work()
    work.limiter.clear()
    runner = asyncio.create_task(store.idempotency.run("op", queue, b"request", work))
    await eventually(lambda: work.runs)
    hurried = await open_store(
        shared_nats_server.url,
        namespace=store.config.namespace,
        timings=StoreTimings(idempotency=IdempotencyTimings(wait_s=0.2)),
    )
    with refusal("conflict"):
        await hurried.idempotency.run("op", queue, b"request", work)
    waiting = asyncio.create_task(other.idempotency.run("op", queue, b"request", work))
    work.limiter.set()
    assert await waiting == await runner == (201, b'{"run":1}')


async def test_lost_answers_of_nats_don_t_make_it_run_twice(store: Store, queue: str) -> None:
    work = Work()
    with losing_answers(store.nats, store.config.record("idempotency", ""), times=2):
        await store.idempotency.run("op", queue, b"request", work)
    assert await store.idempotency.run("op", queue, b"request", work) == (201, b'{"run":1}')
    assert len(work.runs) == 1


async def test_a_run_that_ends_while_nats_is_away_is_over_once_nats_is_back(store: Store, other: Store, queue: str) -> None:
    """Or whoever sends the request again would wait for as long as a runner may be silent."""
    failed, work = Work(), Work()
    failed.limiter.clear()
    failed.failure = OjsError("backend_unavailable", "away")
    runner = asyncio.create_task(store.idempotency.run("op", queue, b"request", failed))
    await eventually(lambda: failed.runs)
    with unreachable(store.nats, store.config.record("idempotency", ""), times=1_000):
        failed.limiter.set()
        with refusal("backend_unavailable"):
            await runner
    assert await other.idempotency.run("op", queue, b"request", work) == (201, b'{"run":1}')
    assert [run.repeated for run in work.runs] == [True]


async def test_an_answer_that_cant_be_kept_at_once_is_kept_later(store: Store, other: Store, queue: str) -> None:
    first, second = Work(), Work()
    first.limiter.clear()
    runner = asyncio.create_task(store.idempotency.run("op", queue, b"request", first))
    await eventually(lambda: first.runs)
    with unreachable(store.nats, store.config.record("idempotency", ""), times=1_000):
        first.limiter.set()
        answer = await runner
    assert await other.idempotency.run("op", queue, b"request", second) == answer
    assert second.runs == []


async def test_a_request_that_may_have_been_taken_is_nobodys_once_nats_is_back(
    shared_nats_server: NatsServer, open_store: OpenStore, other: Store, queue: str
) -> None:
    lost, work = Work(), Work()
    with Network() as network:
        link = network.link(shared_nats_server.port)
        store = await open_store(f"nats://127.0.0.1:{link.port}", namespace=other.config.namespace)
        with holding(store.nats, "") as held:
            runner = asyncio.create_task(store.idempotency.run("op", queue, b"request", lost))
            await held.met(runner)
            link.become(UP_ALONE)
            held.go.set()
            with refusal("backend_unavailable"):
                await runner
        link.become(GOOD)
        assert await other.idempotency.run("op", queue, b"request", work) == (201, b'{"run":1}')
        assert [run.repeated for run in work.runs] == [True], "it had been taken"
        assert lost.runs == []
        await store.close()
