"""The drill at size: many stored jobs are backed up, their nats-server is destroyed, and a restore has them run again.

`OJS_DRILL_JOBS` is their number, of which a fifth waits; `-s` shows how long each step took.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.base.ids import new_job_id
from ojs_engine.domain import transitions
from ojs_engine.domain.job import NOTHING, Job, State
from ojs_engine.domain.transitions import JobHolder, Moment
from ojs_engine.jetstream.api import parse_ack
from ojs_engine.jetstream.connection import Failed, ReplyOrFailure
from ojs_engine.jetstream.contents import stream_info, subjects_of
from ojs_engine.jetstream.event_log import EventLog, Outgoing
from ojs_engine.jetstream.lease import Lease
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.records.commit import encode_job
from ojs_engine.store.store import Store
from ojs_features.all import STORE_FEATURES
from support.events import all_events_of
from support.figures import tell
from support.nats import NatsServer
from support.operator_commands import measured
from support.processes import family
from support.system import Processes, send
from support.waiting import answered, until

pytestmark = [pytest.mark.faults, pytest.mark.timeout(7_200)]

V1: Final = "/ojs/v1"
QUEUE: Final = "drill"
JOBS: Final = int(os.environ.get("OJS_DRILL_JOBS", "1000"))
WAITING: Final = JOBS // 5
ROOM: Final = "16GB"
LISTED_S: Final = 1_800.0
EVENTS: Final = next(int(one["max_msgs"]) for one in StoreConfig().streams() if one["name"] == StoreConfig().events_stream)
"""As many of them are kept."""
_IN_FLIGHT: Final = 1_000
_APPENDED: Final = 500
_ANSWER_S: Final = 120.0


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = await Store.open(url, StoreConfig(), role="drill", features=STORE_FEATURES)
    try:
        yield store
    finally:
        await store.close()


def jobs() -> Iterator[Job]:
    """A fifth that waits among those that have completed, the oldest first, each with the log of its life."""
    now = time.time_ns() // 1_000_000
    moment = Moment(now, new_job_id(now))
    draft = Job(id=new_job_id(now), type="drill.job", queue=QUEUE, args=Raw(b'["%s"]' % (b"x" * 300)), state=State.AVAILABLE)
    waits = transitions.push(draft, moment).job
    done = transitions.ack(transitions.claim(waits, "w", None, moment).job, NOTHING, JobHolder(), moment).job
    for place in range(JOBS):
        yield replace(done if place % 5 else waits, id=new_job_id(now + place), created_at=now + place)


def told(config: StoreConfig, job: Job, sequence: int) -> Iterator[Outgoing]:
    """The events of a job's life."""
    for entry in job.transitions:
        for event in all_events_of(job, entry):
            subject = config.event(event.type, job.queue, job.id)
            yield Outgoing(subject, msgspec.json.encode(event), job.created_at, entry.n, sequence)


async def append(log: EventLog, events: list[Outgoing], after: int) -> int:
    """Append, again and again if NATS is too slow to answer: all of them are there then, or none."""
    while True:
        try:
            return await log.append(events, after)
        except OjsError:
            if (last := await answered(log.last_sequence)) > after:
                return last


async def fill(store: Store) -> int:
    """Store the jobs, and the events that tell of their lives, as services would have; returns the number of events."""
    answers: deque[asyncio.Future[ReplyOrFailure]] = deque()
    log, waiting, appended, last = EventLog(store.bulk, store.config), list[Outgoing](), 0, 0

    async def stored() -> int:
        answer = await answers.popleft()
        assert not isinstance(answer, Failed)
        return parse_ack(answer.data).seq

    for number, job in enumerate(jobs(), 1):
        headers = "Nats-TTL: 86400s\r\n" if job.terminal else ""
        answers.append(store.nats.request(store.config.job(job.id), encode_job(job), headers, _ANSWER_S))
        if number > JOBS - EVENTS // 3:  # of those before them no event would be left
            waiting += told(store.config, job, number)
        if len(answers) >= _IN_FLIGHT:
            await stored()
        if len(waiting) >= _APPENDED or (waiting and number == JOBS):
            appended = await append(log, waiting, appended)
            waiting.clear()
    while answers:
        last = await stored()
    assert await Lease(store.nats, store.config, "events").write(0, "", last) is not None
    return appended


def fetch(url: str, count: int) -> list[str]:
    found = send("POST", f"{url}{V1}/workers/fetch", {"queues": [QUEUE], "worker_id": "w", "count": count})
    return [job["id"] for job in found.body["jobs"]] if found.status == 200 else []


def listed(url: str) -> dict[str, Any]:
    return dict(send("GET", f"{url}{V1}/jobs?queue={QUEUE}&limit=1").body)


async def test_of_many_jobs_the_first_runs_soon_and_all_that_wait_can(tmp_path: Path) -> None:
    first, kept = NatsServer(tmp_path / "first", max_file_store=ROOM), tmp_path / "kept"
    with first:
        began = time.monotonic()
        async with opened(first.url) as store:
            events = await fill(store)
        tell(f"{JOBS:,} jobs and {events:,} events stored in {time.monotonic() - began:.0f} s")
        taken = await asyncio.to_thread(measured, "backup", str(kept), "--nats", first.url)
        tell(f"backed up in {taken.said['seconds']:.0f} s, {taken.cpu_s:.0f} s of CPU: {taken.said['bytes'] / 1e6:.0f} MB")
        assert (taken.said["records"], taken.said["events"]) == (JOBS, events)
        first.kill()
    shutil.rmtree(first.folder)
    with NatsServer(tmp_path / "second", max_file_store=ROOM) as second:
        began = time.monotonic()
        restored = await asyncio.to_thread(measured, "restore", str(kept), "--nats", second.url)
        tell(
            f"restored in {restored.said['seconds']:.0f} s, {restored.cpu_s:.0f} s of CPU, and "
            f"{family(second.pid)[second.pid]:.0f} s of nats-server's"
        )
        assert (restored.said["jobs"], restored.said["waiting"], restored.said["events"]) == (JOBS, WAITING, events)
        processes = Processes(tmp_path / "services", second.url)
        try:
            url = await asyncio.to_thread(started, processes)
            got = await asyncio.to_thread(until, lambda: fetch(url, 1))
            tell(f"the first job ran after {time.monotonic() - began:.0f} s")
            async with opened(second.url) as store:
                ready = await subjects_of(store.nats, store.config.ready_stream, store.config.ready_of_queue(QUEUE))
                assert sum(ready.values()) == WAITING - 1
                assert (await stream_info(store.nats, store.config.events_stream)).state.messages >= events
            tell(f"and so could all {WAITING:,} that wait")
            got += await asyncio.to_thread(fetch, url, 100)
            assert len(got) == len(set(got)) > 1
            await asyncio.to_thread(until, lambda: whole(url), LISTED_S)
            tell(f"lists were whole after {time.monotonic() - began:.0f} s")
            assert [line for one in processes.commands for line in one.events("a lost hint was issued again")] == []
        finally:
            await asyncio.to_thread(processes.stop)
    for folder in (kept, second.folder):  # gigabytes, of which nothing is to be learnt now
        shutil.rmtree(folder)


def started(processes: Processes) -> str:
    """Start what a system needs; returns the gateway's address once that is ready."""
    gateway = processes.start("gateway")
    processes.start("services")
    return str(gateway.ready()["url"])


def whole(url: str) -> bool:
    """Whether lists have every job."""
    found = listed(url)
    return "partial" not in found and found.get("pagination", {}).get("total") == JOBS
