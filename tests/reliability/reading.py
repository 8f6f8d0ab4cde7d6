"""What the system shows when a run is over: through every door that it has."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import aiohttp
import msgspec
from msgspec import Struct

from ojs_engine.domain.job import TERMINAL, Job
from ojs_engine.jetstream.event_reader import StoredEvent
from ojs_engine.jetstream.subjects import StoreConfig
from ojs_engine.store.store import Store
from ojs_features.all import STORE_FEATURES
from reliability.ledger import Ledger
from reliability.web import Web
from support.truth import all_events, all_jobs
from support.waiting import eventually

_PAGE: Final = 500


class Reading(Struct, kw_only=True):
    """The end of a run."""

    jobs: Mapping[str, Job]
    """The records of the bucket, by id."""
    listed: Sequence[str]
    """The ids of `GET /jobs`, page by page."""
    queues: Mapping[str, Mapping[str, int]]
    """The counts of `GET /queues`, those that are not zero."""
    totals: Mapping[str, int]
    """The counts of `GET /admin/stats`, those that are not zero."""
    events: Sequence[StoredEvent]
    heard: Sequence[str]
    """The ids of the events that a reader of the event stream was sent, all the time, in its order."""
    flows: Mapping[str, str | None]
    """The state of each workflow; None if it isn't there."""
    finds: Sequence[str] = ()
    """What the safety net had to issue again."""
    tracebacks: Sequence[str] = ()
    processes: Sequence[str] = ()
    """Processes that ended and weren't killed."""


class Listener:
    """A reader of server-sent events, which connects again wherever it was."""

    def __init__(self, urls: Sequence[str]) -> None:
        self.heard: list[str] = []
        self._urls = urls
        self._cursor = "0"
        self._over = False

    async def run(self) -> None:
        """Read until cancelled."""
        number = 0
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None, sock_connect=2, sock_read=20)) as http:
            while True:
                number += 1
                with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
                    url = f"{self._urls[number % len(self._urls)]}/ojs/v1/events/stream"
                    async with http.get(url, headers={"Last-Event-ID": self._cursor}) as response:
                        await self._read(response)
                await asyncio.sleep(0.2)

    async def until(self, last: int, patience_s: float = 30.0) -> None:
        """Return when it has heard everything up to a cursor, or is too slow for that."""
        with contextlib.suppress(AssertionError):
            await eventually(lambda: int(self._cursor) >= last, patience_s, every=0.1)

    async def _read(self, response: aiohttp.ClientResponse) -> None:
        """Take each event that came whole: with the empty line behind it."""
        fields: dict[str, str] = {}
        async for raw in response.content:
            if line := raw.decode(errors="replace").rstrip("\r\n"):
                name, _, value = line.partition(":")
                fields[name] = value.strip()
                continue
            if fields.keys() >= {"id", "data"}:
                self.heard.append(msgspec.json.decode(fields["data"])["id"])
                self._cursor = fields["id"]
            fields = {}


async def settled(web: Web, patience_s: float, every_s: float = 0.5) -> bool:
    """Wait until every job has ended; False when none has ended for so long.

    The counts may be behind the records, and grow for a while after the last push. So one more that has ended counts as much as
    one less that hasn't.
    """
    loop = asyncio.get_running_loop()
    least, most = math.inf, -1
    since = loop.time()
    while loop.time() - since < patience_s:
        answer = await web.get("/ojs/v1/admin/stats")
        if answer.done:
            counts: dict[str, int] = answer.body["jobs"]
            ended = sum(number for state, number in counts.items() if state in TERMINAL)
            left = sum(counts.values()) - ended
            if left == 0 and await _flows_ended(web):
                return True
            if left < least or ended > most:
                least, most, since = min(left, least), max(ended, most), loop.time()
        await asyncio.sleep(every_s)
    return False


async def _flows_ended(web: Web) -> bool:
    answer = await web.get("/ojs/v1/workflows?state=running&limit=1")
    return answer.done and not answer.body["workflows"]


async def read(nats_url: str, config: StoreConfig, web: Web, ledger: Ledger, listener: Listener) -> Reading:
    """Look through every door. The system must be whole."""
    store = await Store.open(nats_url, config, role="test", features=STORE_FEATURES)
    try:
        listed = await _listed(web)
        queues = (await web.insist("GET", "/ojs/v1/queues?limit=100")).body["queues"]
        totals = (await web.insist("GET", "/ojs/v1/admin/stats")).body["jobs"]
        jobs = {job.id: job for job in await all_jobs(store)}
        events = await all_events(store)
    finally:
        await store.close()
    await listener.until(events[-1].sequence if events else 0)
    flows = {}
    for flow_id in ledger.flows:
        answer = await web.insist("GET", f"/ojs/v1/workflows/{flow_id}/progress")
        flows[flow_id] = str(answer.body["workflow"]["state"]) if answer.done else None
    return Reading(
        jobs=jobs,
        listed=listed,
        queues={queue["name"]: _counted(queue["counts"]) for queue in queues},
        totals=_counted(totals),
        events=events,
        heard=listener.heard,
        flows=flows,
    )


def _counted(counts: Mapping[str, int]) -> dict[str, int]:
    return {state: number for state, number in counts.items() if number}


async def _listed(web: Web) -> list[str]:
    found: list[str] = []
    cursor = ""
    while True:
        answer = await web.insist("GET", f"/ojs/v1/jobs?limit={_PAGE}{cursor}")
        body: dict[str, Any] = answer.body
        found += [job["id"] for job in body["jobs"]]
        if not body["pagination"]["has_more"]:
            return found
        cursor = f"&cursor={body['pagination']['next_cursor']}"
