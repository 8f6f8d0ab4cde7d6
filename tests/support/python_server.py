"""What a worker talks to in the place of a server: it keeps score of jobs, and answers reports as a test wants it to."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from ojs_api.work import ACK_MANY, DEREGISTER, FETCH, HEARTBEAT, NACK, REGISTER
from ojs_nats._connect import stand_ins
from ojs_nats._operations import Request
from ojs_nats._transport import Answer, NotNow, Transport

URL: Final = "http://worker-under-test.invalid"

Reply = Callable[[], Answer]
"""What one request is answered with, whatever it asks; it may raise NotNow."""


def html(status: int, retry_after: str | None = None) -> Reply:
    return lambda: Answer(status, b"<html><body>sign in</body></html>", retry_after)


def ojs_error(status: int, code: str, *, retryable: bool = False, retry_after: str | None = None) -> Reply:
    error = {"error": {"code": code, "message": code, "retryable": retryable}}
    return lambda: Answer(status, msgspec.json.encode(error), retry_after)


def silence() -> Answer:
    raise NotNow("nobody answered", carried_out=True)


class Lost(Exception):
    """The request is carried out, and its answer doesn't arrive."""


def lost() -> Answer:
    raise Lost


class Score(msgspec.Struct):
    """What the server has come to know of one attempt."""

    state: str = "active"
    result: Any = None
    error: dict[str, Any] = {}
    decided: int = 0
    """How often its state has changed: once is right."""


class Server:
    """Jobs that wait, and what became of the attempts that were handed out. Heartbeats come from another thread."""

    def __init__(self) -> None:
        self.scores: dict[str, Score] = {}
        self.named: list[str] = []
        """The jobs that the last heartbeat named."""
        self.beats = 0
        self.registrations = 0
        self.replies: deque[Reply] = deque()
        """What the next reports are answered with, in the place of what becomes of them."""
        self.verdicts: dict[str, str] = {}
        """Codes that reports of single jobs are refused with."""
        self.fetches: deque[Reply] = deque()
        """What the next fetches are answered with."""
        self.beat_replies: deque[Reply] = deque()
        """What the next heartbeats are answered with."""
        self.directive: str | None = None
        """What heartbeats are answered that the worker should be, in the place of what it is."""
        self.dead = False
        """Whether nothing is answered any more."""
        self.deregistered = False
        self.all_named: set[str] = set()
        self.portions: list[int] = []
        self.complete_with_portions = False
        self.asked_queues: list[list[str]] = []
        self._waiting: deque[dict[str, Any]] = deque()
        self._come = asyncio.Event()
        self._lock = threading.Lock()

    def push(self, job_type: str, *args: Any, **members: Any) -> str:
        job_id = f"job-{len(self.scores)}"
        self.scores[job_id] = Score()
        job = {"id": job_id, "type": job_type, "state": "active", "queue": "default", "attempt": 1, "args": args}
        self._waiting.append({**job, "visibility_timeout_ms": 60_000, **members})
        self._come.set()
        return job_id

    async def answer(self, request: Request, said: Any) -> Answer:
        if request.operation is REGISTER:
            self.registrations += 1
        if self.dead:
            await asyncio.sleep(60)
        if request.operation is FETCH:
            return await self._fetched(said)
        if request.operation is HEARTBEAT:
            return self._beat(said)
        if request.operation is REGISTER:
            return _ok({"worker_id": said["worker_id"], "mark": "registered"})
        if request.operation is DEREGISTER:
            self.deregistered = True
            return _ok({})
        return self._reported(request, said)

    def _beat(self, said: Any) -> Answer:
        with self._lock:
            if self.beat_replies:
                return self.beat_replies.popleft()()
            ids = said["active_job_ids"]
            self.named, self.beats = ids, self.beats + 1
            self.all_named.update(ids)
            self.portions.append(len(ids))
            self.complete_with_portions |= "complete" in said and said["active_jobs"] != len(ids)
            answer = {"state": self.directive or said["state"], "jobs_extended": ids, "mark": str(self.beats)}
        return _ok(answer)

    async def _fetched(self, said: Any) -> Answer:
        self.asked_queues.append(said["queues"])
        if self.fetches:
            return self.fetches.popleft()()
        acks = said.get("acks", [])
        if acks and self.replies:
            try:
                return self.replies.popleft()()
            except Lost:
                self._all_acked(acks)
                return silence()
        answer = {"acks": {"items": self._all_acked(acks)}} if acks else {}
        if not self._waiting and said["wait_ms"]:
            self._come.clear()
            try:
                async with asyncio.timeout(said["wait_ms"] / 1_000):
                    await self._come.wait()
            except TimeoutError:
                pass
        count = min(said["count"], len(self._waiting))
        return _ok({**answer, "jobs": [self._waiting.popleft() for _ in range(count)]})

    def _reported(self, request: Request, said: Any) -> Answer:
        try:
            if self.replies:
                return self.replies.popleft()()
        except Lost:
            self._carried_out(request, said)
            return silence()
        return self._carried_out(request, said)

    def _carried_out(self, request: Request, said: Any) -> Answer:
        if request.operation is NACK:
            score = self.scores[said["job_id"]]
            if score.state != "active":
                return ojs_error(409, "conflict")()
            state = "requeued" if said.get("requeue") else "failed"
            score.state, score.error, score.decided = state, said["error"], score.decided + 1
            return _ok({"job": {"id": said["job_id"]}})
        assert request.operation is ACK_MANY
        return _ok({"items": self._all_acked(said["jobs"])})

    def _all_acked(self, acks: Any) -> list[dict[str, Any]]:
        return [self._acked(index, job) for index, job in enumerate(acks)]

    def _acked(self, index: int, job: Any) -> dict[str, Any]:
        score, code = self.scores[job["job_id"]], self.verdicts.get(job["job_id"])
        if code is None and score.state not in {"active", "completed"}:
            code = "conflict"
        if code is not None:
            return {"index": index, "error": {"code": code, "message": code, "retryable": False}}
        if score.state == "active":
            score.state, score.result, score.decided = "completed", job.get("result"), score.decided + 1
        return {"index": index}


class ServerTransport(Transport):
    """The way to such a server, without a socket; bodies are JSON as over any."""

    def __init__(self, server: Server) -> None:
        super().__init__(URL, retry_for_s=0.2)
        self._server = server

    async def once(self, request: Request, body: bytes | None) -> Answer:
        await asyncio.sleep(0)
        return await self._server.answer(request, msgspec.json.decode(body or b"{}"))

    async def close(self) -> None:
        pass


@contextmanager
def serving(server: Server) -> Iterator[str]:
    """In here the address that this gives leads to it."""
    stand_ins[URL] = lambda: ServerTransport(server)
    try:
        yield URL
    finally:
        del stand_ins[URL]


def _ok(said: Any) -> Answer:
    return Answer(200, msgspec.json.encode(said))
