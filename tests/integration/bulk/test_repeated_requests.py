"""Bulk operations that are carried out a second time, because whoever ran them first could not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from integration.samples import acked, draft, failed, fetch, in_state, no_leader, refusal
from ojs_engine.api.call import Response
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain import transitions
from ojs_engine.domain.job import Job, Retry, State
from ojs_engine.jetstream.connection import Connection, ReplyOrFailure
from ojs_engine.store.store import Store
from ojs_features.bulk.handlers import BulkHandlers
from ojs_gateway.context import Context
from ojs_gateway.dialects.readers import dialect_of
from ojs_runtime.settings import Settings
from support.call import Request, answered
from support.outside import Send, tapped
from support.waiting import eventually


@pytest.fixture
def bulk(store: Store) -> BulkHandlers:
    return BulkHandlers(Context(store, PayloadLimits(), Settings(test_mode=True), ()))


async def prepared(store: Store, queue: str, operation: str) -> list[Job]:
    """Three jobs that the operation can change."""
    once = Retry(max_attempts=1, on_exhaustion="dead_letter")
    jobs = [await store.enqueue.push(draft(queue=queue, retry=once)) for _ in range(3)]
    if operation == "cancel":
        return jobs
    end = failed if operation == "retry" else acked
    return [(await store.jobs.change(job.id, end)).after for job in await fetch(store, queue, count=3)]


GO = dialect_of("Go-http-client/1.1", "application/openjobspec+json", None, "application/openjobspec+json")


async def test_what_needs_to_be_confirmed_needs_it_from_every_client(bulk: BulkHandlers) -> None:
    request = Request({"filter": {"state": "discarded"}})
    request.dialect = GO
    with refusal("invalid_request"):
        await bulk.retry(request)


@asynccontextmanager
async def killed_before(nats: Connection, beginning: str, work: Coroutine[Any, Any, object]) -> AsyncIterator[None]:
    """End whoever works before a request to a subject with this beginning is sent, once what is within is done."""
    waits = asyncio.Event()

    def tap(_send: Send, subject: str, *_: object) -> Awaitable[ReplyOrFailure] | None:
        if not subject.startswith(beginning):
            return None
        waits.set()
        return asyncio.Future()

    task = asyncio.ensure_future(work)
    with tapped(nats, tap):
        await asyncio.wait_for(waits.wait(), 60.0)
        yield
        task.cancel()
        await asyncio.wait([task])


def statuses(answer: Response) -> list[str]:
    return [item["status"] for item in answered(answer)["items"]]


@pytest.mark.parametrize("atomicity", ["partial", "atomic"])
@pytest.mark.parametrize(("operation", "done"), [("cancel", "cancelled"), ("retry", "retried"), ("delete", "deleted")])
async def test_what_the_first_go_did_is_done_and_not_done_again(
    store: Store, bulk: BulkHandlers, queue: str, operation: str, done: str, atomicity: str
) -> None:
    jobs = await prepared(store, queue, operation)
    operate = getattr(bulk, operation)
    request = Request({"job_ids": [job.id for job in jobs], "idempotency_key": f"{queue}-key", "atomicity": atomicity})

    async with killed_before(store.nats, store.config.event(f"bulk.{operation}.completed", "bulk", ""), operate(request)):
        """All is done, but nobody has said so."""
    before = [await store.records.log_of(job.id) for job in jobs]
    answer = await operate(request)
    assert (answer.status, statuses(answer)) == (200, [done] * 3)
    assert [await store.records.log_of(job.id) for job in jobs] == before
    again = await operate(request)
    assert again.answer == answer.answer


async def test_the_rest_of_a_go_that_broke_off_is_done_and_what_others_did_is_not_claimed(
    store: Store, bulk: BulkHandlers, queue: str
) -> None:
    jobs = await prepared(store, queue, "cancel")
    missing = replace(draft(queue=queue), id=jobs[0].id[:-4] + "ffff").id
    await store.jobs.change(jobs[2].id, transitions.cancel)  # by somebody else, before
    then = store.clock.now()
    await eventually(lambda: store.clock.now() > then)
    request = Request({"job_ids": [*(job.id for job in jobs), missing], "idempotency_key": f"{queue}-key"})
    async with killed_before(store.nats, store.config.job(jobs[1].id), bulk.cancel(request)):
        await eventually(lambda: in_state(store, jobs[0].id, State.CANCELLED))
    answer = await bulk.cancel(request)
    assert (answer.status, statuses(answer)) == (207, ["cancelled", "cancelled", "skipped", "skipped"])
    assert (await store.jobs.get(jobs[1].id)).state is State.CANCELLED


async def test_what_nats_kept_from_being_enqueued_is_enqueued_by_the_same_request(
    store: Store, bulk: BulkHandlers, queue: str
) -> None:
    jobs = [{"type": "test.job", "args": [number], "options": {"queue": queue}} for number in range(3)]
    request = Request({"jobs": jobs, "idempotency_key": f"{queue}-key"})

    def tap(_send: Send, subject: str, payload: bytes, _headers: str, _timeout_s: float) -> Awaitable[ReplyOrFailure] | None:
        return no_leader() if subject.startswith(store.config.job("")) and b'"args":[0]' not in payload else None

    with tapped(store.nats, tap):
        answer = await bulk.enqueue(request)
    assert (answer.status, statuses(answer)) == (207, ["created", "failed", "failed"])
    answer = await bulk.enqueue(request)
    assert (answer.status, statuses(answer)) == (201, ["created"] * 3)
    assert (await bulk.enqueue(request)).answer == answer.answer
    assert len(await fetch(store, queue, count=10)) == 3
