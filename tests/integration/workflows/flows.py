"""Workflows on a real server, driven message by message: what a coordinator is given, and what dies where."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from msgspec import Raw

from integration.samples import ANYONE, fetch
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.job import Job
from ojs_engine.domain.transitions import Failure, Moment, Transition, ack, nack
from ojs_engine.jetstream.due_messages import Due
from ojs_engine.jetstream.subjects import ANY
from ojs_engine.store.store import Store
from ojs_features.workflows.records import StoredWorkflow
from ojs_features.workflows.requests import parse_workflow
from ojs_features.workflows.steps import StepWorker
from ojs_features.workflows.store import Workflows
from support.waiting import eventually


class Crash(BaseException):
    """The process is gone: nothing after this point happens."""


def job(name: str, queue: str, **options: Any) -> dict[str, Any]:
    return {"type": name, "args": [name], "options": {"queue": queue, **options}}


def chain(queue: str, *names: str, **more: Any) -> dict[str, Any]:
    return {"type": "chain", "steps": [job(name, queue) for name in names], **more}


def group(queue: str, *names: str) -> dict[str, Any]:
    return {"type": "group", "jobs": [job(name, queue, retry={"max_attempts": 1}) for name in names]}


def batch(queue: str, *names: str, callbacks: tuple[str, ...] = ("on_complete", "on_success", "on_failure")) -> dict[str, Any]:
    return group(queue, *names) | {
        "type": "batch",
        "callbacks": {name: job(name.replace("_", "."), queue) for name in callbacks},
    }


async def create(store: Store, definition: dict[str, Any]) -> str:
    body = json.dumps(definition).encode()
    stored = await store.of(Workflows).create(parse_workflow(body, store.clock.now(), DEFAULT_LIMITS))
    return stored.record.id


async def end(store: Store, queue: str, *, good: bool = True, result: Any = None, number: int = 1) -> list[Job]:
    """Fetch and finish the next jobs of a queue."""
    jobs = await fetch(store, queue, count=number, wait_ms=100)
    for one in jobs:
        body = Raw(json.dumps({"of": one.type} if result is None else result).encode())
        await store.jobs.change(one.id, partial(_acked, body) if good else _refused)
    return jobs


def _acked(result: Raw, found: Job, moment: Moment) -> Transition:
    return ack(found, result, ANYONE, moment)


def _refused(found: Job, moment: Moment) -> Transition:
    return nack(found, Failure(message="no", retryable=False), ANYONE, moment)


async def hints(store: Store, workflow_id: str) -> list[Due]:
    """The notes to a workflow as a coordinator would be given them."""
    found = []
    for subject in await store.records.subjects(store.config.note("workflow", workflow_id, ANY)):
        message = await store.records.leader_raw(subject)
        if message is None:  # somebody lets it go in this moment
            continue
        name = subject.removeprefix(store.config.notes("workflow").removesuffix(">"))
        found.append(Due(name, message[0], store.clock.now(), 1, "nobody", message[1]))
    return found


async def coordinate(store: Store, workflow_id: str) -> int:
    """Act on all hints of a workflow once; how many there were."""
    batch_ = await hints(store, workflow_id)
    if batch_:
        await StepWorker(store).handle(batch_)
    return len(batch_)


async def finish(store: Store, workflow_id: str, queue: str, *, good: bool = True) -> StoredWorkflow:
    """Do all that is to be done until the workflow has ended."""

    async def ended() -> StoredWorkflow | None:
        await end(store, queue, good=good, number=500)
        await coordinate(store, workflow_id)
        stored = await store.of(Workflows).get(workflow_id)
        return stored if stored.record.terminal else None

    found = await eventually(ended, every=0.001)
    assert found is not None
    return found


_of: Final[dict[str, str | None]] = {}
"""The workflow of each job that was read: it never changes."""


async def members(store: Store, workflow_id: str) -> list[Job]:
    """Every job that was ever created for a workflow, found by its ids in the bucket."""
    subjects = await store.records.subjects(store.config.job(ANY))
    ids = [subject[len(store.config.job("")) :] for subject in subjects]
    found = await store.records.many([job_id for job_id in ids if _of.get(job_id, workflow_id) == workflow_id])
    jobs = [stored.job for stored in found.values() if stored.job is not None]
    _of.update((one.id, None if one.workflow is None else one.workflow.id) for one in jobs)
    return [one for one in jobs if _of[one.id] == workflow_id]


@contextmanager
def crashing(store: Store, after: int) -> Iterator[list[str]]:
    """The process dies when it is about to write for the `after`-th time; what it wrote before is on its way."""
    nats = store.nats
    original = nats.request
    written: list[str] = []

    def request(subject: str, payload: bytes = b"", headers: str = "", timeout_s: float | None = None) -> Any:
        if subject.startswith(("$KV.", "ojs.", "$JS.API.STREAM.PURGE", "$JS.API.STREAM.MSG.DELETE")):
            if len(written) >= after:
                raise Crash(subject)
            written.append(subject)
        return original(subject, payload, headers, timeout_s)

    nats.request = request  # type: ignore[method-assign]
    try:
        yield written
    finally:
        nats.request = original  # type: ignore[method-assign]
