"""A steady load of whole lives at a given rate, over several gateways, and what of it was acknowledged.

It is built on the benchmark's raw connections: a generator must leave the machine to what is tested. `support.load` has the
richer clients, which record every call.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import Struct

from bench.client import Connection, Target
from bench.messages import Requests
from ojs_engine.base.ids import new_job_id
from support.waiting import eventually

QUEUES: Final = ("flood-a", "flood-b", "flood.c")
LEASE_MS: Final = 3_000
_WAIT_MS: Final = 500
_COUNT: Final = 10
_RETRY_S: Final = 0.1
_RETRY: Final = {"initial_interval_ms": 200, "max_interval_ms": 200, "backoff_strategy": "constant", "jitter": False}
_FATES: Final = ("ack", "delay", "fail", "dead", "cancel")
_WEIGHTS: Final = (70, 8, 12, 5, 5)


class _Job(Struct, frozen=True):
    id: str
    args: tuple[str, ...]
    attempt: int = 0


class _Jobs(Struct):
    jobs: list[_Job] = []


_decode_jobs: Final = msgspec.json.Decoder(_Jobs).decode


class Flood:
    """`rate` jobs a second; `seed` decides how each of them is to end. `batches`: how many at a time pushers push, by turns."""

    def __init__(
        self, urls: Sequence[str], seed: int, rate: float, *, batches: Sequence[int] = (1,), pushers: int = 8, workers: int = 16
    ) -> None:
        self.rate = rate
        self.created: set[str] = set()
        """Jobs whose push was acknowledged."""
        self.completed: set[str] = set()
        """Jobs whose ack was."""
        self.unsure: set[str] = set()
        """Jobs of which some answer never came."""
        self.in_batches: set[str] = set()
        """Jobs that were pushed with others."""
        self.answers = 0
        self.began = 0.0
        self.ended = 0.0
        self._chance = random.Random(seed)
        targets = [Target.from_url(url) for url in urls]
        self._pushers = [
            _Pusher(targets[n % len(targets)], self, n, step=pushers, batch=batches[n // len(targets) % len(batches)])
            for n in range(pushers)
        ]
        self._workers = [_Worker(targets[n % len(targets)], self, n) for n in range(workers)]

    async def begin(self) -> None:
        self.began = time.monotonic()
        for client in (*self._pushers, *self._workers):
            await client.open()
            client.step()

    async def stop_pushing(self) -> None:
        """No more jobs; returns when every push that was begun is answered. The workers go on."""
        for pusher in self._pushers:
            pusher.over = True
        await eventually(lambda: all(pusher.idle for pusher in self._pushers), 60.0)
        self.ended = time.monotonic()

    def close(self) -> None:
        for client in (*self._pushers, *self._workers):
            client.close()

    @property
    def reached(self) -> float:
        """Jobs acknowledged a second, while it lasted."""
        return len(self.created) / (self.ended - self.began)

    def fate(self) -> str:
        """How the next job is to end."""
        return self._chance.choices(_FATES, _WEIGHTS)[0]

    def queue(self) -> str:
        return self._chance.choice(QUEUES)


class _Client(Connection):
    """Sends request after request; what got no answer that settles it is sent again."""

    def __init__(self, target: Target, flood: Flood) -> None:
        super().__init__(target)
        self.flood = flood
        self.over = False
        self._requests = Requests(target)
        self._timer: asyncio.TimerHandle | None = None

    def next_request(self) -> bytes | float | None:
        """The request to send now, or the seconds until there is one; None for ever."""
        raise NotImplementedError

    def told(self, status: int, body: bytes) -> None:
        """The answer, which settles the request."""
        raise NotImplementedError

    def doubted(self) -> None:
        """No answer, or one that leaves open what has happened."""
        raise NotImplementedError

    def step(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.busy or not self.connected:
            return
        request = self.next_request()
        if isinstance(request, bytes):
            self.send(request)
        elif request is not None:
            self._timer = self.loop.call_later(request, self.step)

    def answered(self, status: int, body: bytes) -> None:
        self.flood.answers += 1
        if status >= 500:
            self.doubted()
            self._timer = self.loop.call_later(_RETRY_S, self.step)
        else:
            self.told(status, body)
            self.step()

    def failed(self, reason: str) -> None:  # noqa: ARG002 - whatever the reason
        self.doubted()

    def reconnected(self) -> None:
        self.step()

    def close(self) -> None:
        super().close()
        if self._timer is not None:
            self._timer.cancel()


class _Pusher(_Client):
    """Every `step`-th of the schedule's batches of its size. One that is late catches up."""

    def __init__(self, target: Target, flood: Flood, number: int, *, step: int, batch: int) -> None:
        super().__init__(target, flood)
        self._number = number
        self._step = step
        self._batch = batch
        self._ids: list[str] = []
        self._request: bytes | None = None
        self._to_cancel: deque[str] = deque()

    @property
    def idle(self) -> bool:
        return self._request is None

    def next_request(self) -> bytes | float | None:
        if self._request is not None:
            return self._request
        if self._to_cancel:
            self._ids = [self._to_cancel.popleft()]
            self._request = self._requests.delete(f"/ojs/v1/jobs/{self._ids[0]}")
            return self._request
        if self.over:
            return None
        wait = self.flood.began + self._number * self._batch / self.flood.rate - time.monotonic()
        if wait > 0:
            return wait
        self._number += self._step
        jobs = [self._job() for _ in range(self._batch)]
        self._ids = [str(job["id"]) for job in jobs]
        single = len(jobs) == 1
        if not single:
            self.flood.in_batches.update(self._ids)
        path = "/ojs/v1/jobs" if single else "/ojs/v1/jobs/batch"
        self._request = self._requests.post(path, jobs[0] if single else {"jobs": jobs})
        return self._request

    def _job(self) -> dict[str, object]:
        fate = self.flood.fate()
        job_id = new_job_id(int(time.time() * 1000))
        options: dict[str, object] = {"queue": self.flood.queue(), "retry": {"max_attempts": 10, **_RETRY}}
        if fate == "delay":
            options["delay_until"] = "+PT0.5S"
        elif fate == "dead":
            options["retry"] = {"max_attempts": 1, "on_exhaustion": "dead_letter"}
        elif fate == "cancel":
            self._to_cancel.append(job_id)
        return {"id": job_id, "type": "flood", "args": [fate], "options": options}

    def told(self, status: int, body: bytes) -> None:
        self._request = None
        if self._ids[0] in self.flood.created:
            return  # it was a cancellation: done, or too late
        # 409: an earlier try was stored, the whole batch of it, and nobody else uses these ids.
        assert status in {201, 409}, body
        self.flood.created.update(self._ids)

    def doubted(self) -> None:
        self.flood.unsure.update(self._ids)


class _Worker(_Client):
    """Fetches some jobs and ends them one after the other, as each of them says."""

    def __init__(self, target: Target, flood: Flood, number: int) -> None:
        super().__init__(target, flood)
        self._name = f"flood-{number}"
        self._held: deque[_Job] = deque()
        order = QUEUES[number % len(QUEUES) :] + QUEUES[: number % len(QUEUES)]
        more = {"worker_id": self._name, "visibility_timeout_ms": LEASE_MS}
        self._fetch = self._requests.post(
            "/ojs/v1/workers/fetch", {"queues": order, "count": _COUNT, "wait_ms": _WAIT_MS, **more}
        )

    def next_request(self) -> bytes:
        if not self._held:
            return self._fetch
        job = self._held[0]
        body: dict[str, object] = {"job_id": job.id, "worker_id": self._name, "attempt": job.attempt}
        if _fails(job):
            return self._requests.post("/ojs/v1/workers/nack", body | {"error": {"code": "boom", "message": "as it was told"}})
        return self._requests.post("/ojs/v1/workers/ack", body)

    def told(self, status: int, body: bytes) -> None:
        if not self._held:
            assert status == 200, body
            self._held.extend(_decode_jobs(body).jobs)
            return
        job = self._held.popleft()
        # 409: cancelled, its lease was lost, or an earlier try was stored.
        assert status in {200, 409}, body
        if status == 200 and not _fails(job):
            self.flood.completed.add(job.id)

    def doubted(self) -> None:
        if self._held:
            self.flood.unsure.add(self._held[0].id)


def _fails(job: _Job) -> bool:
    return job.args[0] == "dead" or (job.args[0] == "fail" and job.attempt == 1)
