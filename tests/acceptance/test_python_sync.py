"""The Python client for code without an event loop."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

import pytest

from ojs_nats import Unique, chain, group
from ojs_nats.errors import DuplicateError, NotFoundError, RefusedError, WaitTimeoutError
from ojs_nats.jobs import JobRequest
from ojs_nats.sync import SyncClient, SyncJobHandle
from support.system import System


@pytest.fixture
def client(system: System) -> Iterator[SyncClient]:
    with SyncClient(system.url) as client:
        yield client


def new(*args: Any) -> JobRequest[Any]:
    return JobRequest("t.one", args, {"queue": "q"})


def test_it_has_what_the_other_one_has(client: SyncClient) -> None:
    handle = client.push(new(1))
    assert handle.job().state == "available"
    others = client.push_all([new(n) for n in range(300)])
    assert sum(1 for _ in client.jobs.list(queue="q")) == 301
    assert {job.id for job in client.jobs.list(limit=5, order="asc")} <= {handle.id, *(one.id for one in others)}
    pushed, refused = client.push_each([new(2), JobRequest("t.one", id="none")])
    assert isinstance(pushed, SyncJobHandle)
    assert isinstance(refused, RefusedError)
    assert client.queues.pause("q").paused
    assert client.queues.get("q").paused
    assert client.system.health().status == "ok"
    with pytest.raises(WaitTimeoutError):
        handle.result("100ms")
    assert handle.cancel().state == "cancelled"
    with pytest.raises(NotFoundError):
        client.jobs.get("019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f")
    only = JobRequest[Any]("t.only", (), {"queue": "q", "unique": Unique()})
    client.push(only)
    with pytest.raises(DuplicateError):
        client.push(JobRequest("t.only", (), {"queue": "q", "unique": Unique()}))


def test_workflows_and_events(system: System, client: SyncClient) -> None:
    after = client.events.cursor()
    handle = client.workflows.start(chain(new(1), group(new(2), new(3))))
    for result in range(3):
        [job] = system.fetch("q", worker_id="w", wait_ms=10_000)
        system.call("POST", "/workers/ack", {"job_id": job["id"], "result": result})
    assert handle.result("30s") == [1, 2]
    assert [job.result for job in handle.jobs()] == [0, 1, 2]
    told = client.events(workflow_id=handle.id, types=["workflow.created", "workflow.started"], after=after)
    assert [event.subject for event in islice(told, 1)] == [handle.id]


def test_threads_share_its_connections(client: SyncClient) -> None:
    with ThreadPoolExecutor(8) as threads:
        handles = list(threads.map(lambda n: client.push(new(n)), range(100)))
    assert len({handle.id for handle in handles}) == 100


def test_it_works_after_a_fork(client: SyncClient) -> None:
    client.push(new())
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if client.push(new()).job().state == "available" else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert client.push(new()).job().state == "available"


def test_ctrl_c_ends_a_wait(client: SyncClient) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
    handle = client.push(new())
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        handle.result("1m")
    signal.signal(signal.SIGINT, before)
    assert handle.job().state == "available"
