"""A client that writes down every call it makes and tries again as a real one does."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Any, Final

import aiohttp
from msgspec import Struct

from ojs_engine.base.ids import new_job_id
from ojs_engine.domain.job import State
from support.history import FOREVER, Call, History, Outcome, Plan, Seen

_UNSURE: Final = frozenset({408, 500, 502, 503, 504})
_PAUSE_S: Final = 0.1
_TIMEOUT_S: Final = 8.0

Body = dict[str, Any]


class Reply(Struct, frozen=True):
    """What came back: `status` None and an empty body if nothing did. What was not even sent has no effect."""

    outcome: Outcome
    status: int | None
    body: Body
    sent: bool = True


def session(url: str) -> aiohttp.ClientSession:
    """A session that sends each request at most once: aiohttp would repeat some by itself, and one call would be two."""
    made = aiohttp.ClientSession(url)
    made._retry_connection = False
    return made


class Recorder:
    """One client. Its calls go to `history` under `name`, which is also its worker id."""

    def __init__(self, http: aiohttp.ClientSession, history: History, name: str, chance: random.Random) -> None:
        self._http = http
        self._history = history
        self.name = name
        self._chance = chance

    async def push(self, plan: Plan, *, careless: bool = False) -> str | None:
        """Push a job until the outcome is known (the id makes that safe), or just once; returns its id if it is there."""
        job_id = new_job_id(int(time.time() * 1000))
        options: Body = {
            "queue": plan.queue,
            "retry": {
                "max_attempts": plan.max_attempts,
                "initial_interval_ms": round(plan.retry_s * 1000),
                "max_interval_ms": round(plan.retry_s * 1000),
                "backoff_strategy": "constant",
                "jitter": False,
            },
        }
        if plan.pending:
            options["pending"] = True
        if plan.delay_s:
            options["delay_until"] = f"+PT{plan.delay_s:g}S"
        if plan.expires_s is not None:
            options["expires_at"] = f"+PT{plan.expires_s:g}S"
        body = {"id": job_id, "type": "load", "args": [], "options": options}
        while True:
            reply = await self._call("push", "POST", "/ojs/v1/jobs", body, job_id=job_id, plan=plan)
            if reply.outcome is not Outcome.UNKNOWN:
                return job_id if reply.outcome is Outcome.DONE or reply.status == 409 else None
            await self.pause()
            if careless:
                return None

    async def fetch(
        self, queues: Sequence[str], count: int, lease_s: float, wait_s: float = 0.0, patience_s: float = _TIMEOUT_S
    ) -> list[Seen]:
        """One fetch; what was handed out, nothing if no answer came within `patience_s`, after which the client hangs up."""
        body = {
            "queues": list(queues),
            "count": count,
            "worker_id": self.name,
            "visibility_timeout_ms": round(lease_s * 1000),
            "wait_ms": round(wait_s * 1000),
        }
        known = {"queues": tuple(queues), "lease_s": lease_s, "worker": self.name}
        reply = await self._call("fetch", "POST", "/ojs/v1/workers/fetch", body, patience_s, **known)
        if reply.outcome is Outcome.UNKNOWN:
            await self.pause()
        return _jobs(reply.body)

    async def finish(self, job: Seen, op: str, *, code: str = "boom", tries: int = 4) -> Reply:
        """ack, nack or requeue a job that is held; an unknown outcome is tried again a few times."""
        body: Body = {"job_id": job.job_id, "worker_id": self.name, "attempt": job.attempt}
        if op != "ack":
            body["error"] = {"code": code, "message": "as the test wants it"}
            body["requeue"] = op == "requeue"
        path = f"/ojs/v1/workers/{'ack' if op == 'ack' else 'nack'}"
        known = {"job_id": job.job_id, "worker": self.name, "attempt": job.attempt, "code": code if op == "nack" else None}
        return await self._insist(tries, op, "POST", path, body, **known)

    async def heartbeat(self, jobs: Sequence[Seen], lease_s: float) -> set[str]:
        """One heartbeat for the held jobs; returns the ids that were extended."""
        ids = [job.job_id for job in jobs]
        body = {"worker_id": self.name, "active_jobs": ids, "visibility_timeout_ms": round(lease_s * 1000)}
        call = self._begin("heartbeat", lease_s=lease_s, worker=self.name)
        reply = await self._send("POST", "/ojs/v1/workers/heartbeat", body)
        extended = set(reply.body.get("jobs_extended", ()))
        seen = tuple(Seen(job.job_id, State.ACTIVE, job.attempt) for job in jobs if job.job_id in extended)
        self._end(call, reply, seen)
        return extended

    async def cancel(self, job_id: str) -> Reply:
        return await self._insist(4, "cancel", "DELETE", f"/ojs/v1/jobs/{job_id}", None, job_id=job_id)

    async def activate(self, job_id: str) -> Reply:
        return await self._insist(8, "activate", "POST", f"/ojs/v1/jobs/{job_id}/activate", None, job_id=job_id)

    async def get(self, job_id: str) -> Body | None:
        """The job as it stands, None if it isn't there; asked until there is an answer."""
        while True:
            reply = await self._call("get", "GET", f"/ojs/v1/jobs/{job_id}", None, job_id=job_id)
            if reply.outcome is not Outcome.UNKNOWN:
                job: Body | None = reply.body.get("job")
                return job
            await self.pause()

    async def pause(self) -> None:
        """What a client waits before it tries again, so that clients don't come all at once."""
        await asyncio.sleep(_PAUSE_S * (0.5 + self._chance.random()))

    async def _insist(self, tries: int, op: str, method: str, path: str, body: Body | None, **known: Any) -> Reply:
        for _ in range(tries - 1):
            reply = await self._call(op, method, path, body, **known)
            if reply.outcome is not Outcome.UNKNOWN:
                return reply
            await self.pause()
        return await self._call(op, method, path, body, **known)

    async def _call(
        self, op: str, method: str, path: str, body: Body | None, patience_s: float = _TIMEOUT_S, **known: Any
    ) -> Reply:
        call = self._begin(op, **known)
        reply = await self._send(method, path, body, patience_s)
        self._end(call, reply, tuple(_jobs(reply.body)))
        return reply

    def _begin(self, op: str, **known: Any) -> Body:
        return {"op": op, "client": self.name, "started": time.time()} | known

    def _end(self, call: Body, reply: Reply, seen: tuple[Seen, ...]) -> None:
        if not reply.sent:
            return
        ended = FOREVER if reply.outcome is Outcome.UNKNOWN else time.time()
        self._history.add(Call(**call, ended=ended, outcome=reply.outcome, status=reply.status, seen=seen))

    async def _send(self, method: str, path: str, body: Body | None, patience_s: float = _TIMEOUT_S) -> Reply:
        try:
            timeout = aiohttp.ClientTimeout(total=patience_s)
            async with self._http.request(method, path, json=body, timeout=timeout) as response:
                answer = await response.json(content_type=None)
        except aiohttp.ClientConnectorError:
            return Reply(Outcome.UNKNOWN, None, {}, sent=False)
        except (aiohttp.ClientError, TimeoutError):
            return Reply(Outcome.UNKNOWN, None, {})
        if response.status in _UNSURE:
            return Reply(Outcome.UNKNOWN, response.status, {})
        outcome = Outcome.DONE if response.status < 400 else Outcome.REFUSED
        return Reply(outcome, response.status, answer)


def _jobs(body: Body) -> list[Seen]:
    """The jobs that an answer shows; a refusal shows none."""
    found = body.get("jobs") or ([body["job"]] if body.get("job") else [])
    return [Seen(job["id"], State(job["state"]), job.get("attempt")) for job in found]
