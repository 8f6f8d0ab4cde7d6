"""What the store counts while it works with a real server."""

from __future__ import annotations

import asyncio

import pytest

from integration.conftest import OpenStore
from integration.samples import acked, draft, fetch, losing_answers, refusal, unreachable
from ojs_engine.domain import transitions
from ojs_engine.store.store import Store
from ojs_engine.telemetry import metrics
from support.nats import NatsServer
from support.waiting import eventually


def value(name: str, **labels: str) -> float:
    return metrics.REGISTRY.get_sample_value(name, labels) or 0.0


def enqueued() -> float:
    """How many jobs were counted as enqueued, of any queue and type: others of this process may have used up the series."""
    samples = (sample for family in metrics.REGISTRY.collect() for sample in family.samples)
    return sum(sample.value for sample in samples if sample.name == "ojs_job_enqueued_total")


def commits() -> dict[str, float]:
    return {outcome: value("ojs_commits_total", outcome=outcome) for outcome in ("stored", "conflict", "failed")}


def since(before: dict[str, float]) -> dict[str, float]:
    return {outcome: number - before[outcome] for outcome, number in commits().items() if number != before[outcome]}


async def test_commits_are_counted_by_their_outcome(store: Store, other: Store, queue: str) -> None:
    before = commits()
    pushed = await store.enqueue.push(draft(queue=queue))
    await fetch(store, queue)
    assert since(before) == {"stored": 2}
    await other.jobs.change(pushed.id, transitions.cancel)
    with refusal("conflict"):  # the ack is decided over the cached record
        await store.jobs.change(pushed.id, acked)
    assert since(before) == {"stored": 3, "conflict": 1}


async def test_a_commit_whose_answer_was_lost_counts_once(store: Store, queue: str) -> None:
    before, jobs = commits(), enqueued()
    with losing_answers(store.nats, store.config.job("")):
        await store.enqueue.push(draft(queue=queue))
    assert since(before) == {"stored": 1}
    assert enqueued() - jobs == 1


@pytest.mark.parametrize("alone", [True, False])
async def test_a_commit_that_failed_counts_as_no_transition(store: Store, queue: str, *, alone: bool) -> None:
    before, jobs = commits(), enqueued()
    with unreachable(store.nats, store.config.job(""), times=1_000), refusal("backend_unavailable"):
        await store.enqueue.push(draft(queue=queue)) if alone else await _push_two(store, queue)
    assert since(before) == {"failed": 1 if alone else 2}
    assert enqueued() == jobs


async def _push_two(store: Store, queue: str) -> None:
    outcomes = await asyncio.gather(*(store.enqueue.push(draft(queue=queue)) for _ in range(2)), return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome


async def test_one_round_trip_of_seventeen_is_measured(store: Store) -> None:
    def measured() -> float:
        return value("ojs_nats_request_duration_seconds_count", connection=store.nats.name)

    before = measured()
    for _ in range(34):
        await store.ping()
    assert measured() - before >= 2
    assert measured() - before <= 4  # beats of the service are requests, too


async def test_lost_connections_and_silence_are_counted(nats_server: NatsServer, open_store: OpenStore) -> None:
    store = await open_store(nats_server.url)
    nats = store.nats.name
    reconnects = value("ojs_nats_reconnects_total", connection=nats)
    nats_server.restart()

    async def connected_again() -> bool:
        return value("ojs_nats_reconnects_total", connection=nats) > reconnects

    await eventually(connected_again)
    assert value("ojs_nats_reconnects_total", connection=nats) == reconnects + 1
    timeouts = value("ojs_nats_request_timeouts_total", connection=nats)
    await store.nats.listen("nobody.answers", lambda _message: None)
    await store.nats.request("nobody.answers", timeout_s=0.1)
    assert value("ojs_nats_request_timeouts_total", connection=nats) == timeouts + 1
