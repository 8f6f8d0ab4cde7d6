"""A small model of the job server: what the requirements promise of a job, in plain dictionaries.

`ModelJob` has the rules of one job, its times included: it is held against the transitions (their test_machine.py).
`Server` has many of them: it is held over HTTP against the fake store (unit/gateway/test_model.py) and the running system
(acceptance/test_model.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

ENDED: Final = frozenset({"completed", "cancelled", "discarded"})
ABSENT: Final = object()
HALF_HOUR_MS: Final = 1_800_000
LIVENESS_MS: Final = 30_000
LATER: Final = 1
"""A time that hasn't come for who can't know the time: to a client of the system it is always 0."""
TIMES: Final = (
    "enqueued_at",
    "scheduled_at",
    "started_at",
    "completed_at",
    "cancelled_at",
    "discarded_at",
    "activated_at",
    "re_enqueued_at",
    "next_attempt_at",
    "expires_at",
)
"""The time stamps that a job shows."""
LEASE: Final = ("visible_until", "beat_at", "lease_ms")
"""What there is of a job that is active alone."""
_ACTIONS: Final = frozenset({"RETRY", "DISCARD", "DEAD_LETTER", "FAIL"})
_CAUSES: Final = ("total_timeout", "timeout", "stalled", "visibility_timeout", "expired", "enqueue_ttl_expired", "go")
"""Why something happens by itself. Of those that are due together, the first counts; `go` is the end of a wait."""


class Refusal(Exception):
    """What the server answers instead: an HTTP status and a code."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code


NOT_FOUND = (404, "not_found")
CONFLICT = (409, "conflict")


@dataclass(eq=False, kw_only=True)
class ModelJob:
    """One job. What is said of it in milliseconds is None where the server decides; methods take the time.

    A method does what is asked and returns, or raises `Refusal`.
    """

    id: str = ""
    queue: str = "default"
    priority: int = 0
    args: list[Any] = field(default_factory=list)
    max_attempts: int = 3
    on_exhaustion: str = "discard"
    final_errors: frozenset[str] = frozenset()
    """Those after which there is no retry."""
    enqueue_ttl_ms: int | None = None
    total_timeout_ms: int | None = None
    timeout_ms: int | None = None
    grace_period_ms: int | None = None
    heartbeat_timeout_ms: int | None = None
    visibility_timeout_ms: int | None = None
    state: str = "available"
    attempt: int = 0
    uncharged: int = 0
    generation: int = 0
    worker: str | None = None
    held_by: list[str | None] = field(default_factory=list)
    """Who has held it, of all attempts in turn; None held it without a name."""
    result: Any = ABSENT
    error: str | None = None
    errors: list[tuple[str, int, int]] = field(default_factory=list)
    """(name, attempt, generation), oldest first."""
    dead: bool = False
    deleted: bool = False
    times: dict[str, int] = field(default_factory=dict)
    """By the names of TIMES and LEASE."""
    created: int = 0
    entries: int = 0
    """How many its log has."""
    place: int = 0
    """Orders the available jobs of a queue."""

    def view(self) -> dict[str, Any]:
        """What the job must show, under the names that `shown` gives to the server's answer."""
        return {
            "id": self.id,
            "queue": self.queue,
            "priority": self.priority,
            "args": self.args,
            "state": self.state,
            "attempt": self.attempt,
            "max_attempts": self.max_attempts,
            "worker_id": self.worker,
            "result": None if self.result is ABSENT else (self.result,),
            "error": self.error,
            "errors": self.errors,
            "times": sorted(self.times.keys() & set(TIMES)),
        }

    @property
    def spent(self) -> int:
        """How many of its attempts are used up."""
        return self.attempt - self.uncharged

    def enter(self, state: str, **times: int | None) -> None:
        """Come into a state; times that are None are gone."""
        self.state = state
        self.entries += 1
        changed = dict.fromkeys(("next_attempt_at", *LEASE)) | times
        self.times = {name: at for name, at in (self.times | changed).items() if at is not None}
        if state in {"available", "retryable"}:
            self.worker = None

    def _require(self, *states: str) -> None:
        if self.deleted:
            raise Refusal(*NOT_FOUND)
        if self.state not in states:
            raise Refusal(*CONFLICT)

    # What is asked for

    def begin(self, now: int) -> None:
        """Be pushed, in the state that it has."""
        self.created = now
        self.enter(self.state, **({"enqueued_at": now} if self.state == "available" else {}))

    def available(self, now: int) -> None:
        self.enter("available", enqueued_at=now)

    def activate(self, now: int) -> None:
        self._require("pending")
        self.enter("available", enqueued_at=now, activated_at=now)

    def claim(self, worker: str | None, lease_ms: int | None, now: int) -> None:
        self._require("available")
        if self.outlived(now):
            raise Refusal(*CONFLICT)
        self.attempt += 1
        self.worker = worker
        self.held_by.append(worker)
        length = lease_ms or self.visibility_timeout_ms or HALF_HOUR_MS
        beat = None if worker is None else now
        self.enter("active", started_at=now, visible_until=now + length, lease_ms=length, beat_at=beat)

    def _hold(self, worker: str | None, attempt: int | None) -> None:
        """Refuse what doesn't come from the holder. A name that held it before has to say which attempt it means."""
        self._require("active")
        if attempt not in {None, self.attempt}:
            raise Refusal(*CONFLICT)
        if self.worker is not None and worker not in {None, self.worker}:
            raise Refusal(*CONFLICT)
        if self.worker is None and attempt is None and worker is not None and worker in self.held_by:
            raise Refusal(*CONFLICT)

    def ack(self, worker: str | None, attempt: int | None, result: Any, now: int) -> None:
        self._hold(worker, attempt)
        self.error, self.result = None, result
        self.enter("completed", completed_at=now)

    def nack(
        self,
        worker: str | None,
        attempt: int | None,
        name: str,
        now: int,
        *,
        action: str | None = None,
        retryable: bool = True,
        requeue: bool = False,
        delay_ms: int | None = None,
    ) -> None:
        """Fail by an error of this name; `action` is what the worker wants to follow."""
        self._hold(worker, attempt)
        if requeue:
            self.uncharged += 1
            if delay_ms is None:
                self.enter("available", enqueued_at=now, started_at=None)
            else:
                self.enter("retryable", next_attempt_at=now + delay_ms, started_at=None)
        else:
            ways = {"DISCARD": "drop", "FAIL": "drop", "DEAD_LETTER": "bury", "RETRY": "retry"}
            again = "retry" if retryable and name not in self.final_errors else "final"
            self.fail(name, again if action is None else ways[action], now, delay_ms)

    def fail(self, name: str, way: str, now: int, delay_ms: int | None = None) -> None:
        """End the run: `retry`, `now`, `final`, `drop` or `bury`."""
        self._record(name)
        if way in {"retry", "now"} and self.spent >= max(1, self.max_attempts):
            way = "final"
        if way == "now":
            self.available(now)
        elif way == "retry":
            pause = 1_000 * 2 ** (self.spent - 1) if delay_ms is None else delay_ms
            self.enter("retryable", next_attempt_at=now + pause)
        else:
            self.enter("discarded", discarded_at=now, completed_at=now)
            self.dead = way == "bury" or (way == "final" and self.on_exhaustion == "dead_letter")

    def outlive(self, name: str, now: int) -> None:
        """End without a run, by what it has outlived."""
        self._record(name)
        self.enter("discarded", discarded_at=now, completed_at=None)

    def _record(self, name: str) -> None:
        self.error = name
        self.errors.append((name, self.attempt, self.generation))

    def extend(self, worker: str | None, lease_ms: int | None, now: int) -> bool:
        """Whether a heartbeat is written down; a job that was fetched without a name is anybody's."""
        self._require("active")
        if None not in {worker, self.worker} and worker != self.worker:
            raise Refusal(*CONFLICT)
        before, end = self.times["lease_ms"], self.times["visible_until"]
        length = lease_ms or self.visibility_timeout_ms or before
        beat, most = self.times.get("beat_at"), self.heartbeat_timeout_ms
        stalls = most is not None and (beat is None or now - beat > most / 2)
        if length == before and end - now >= length / 2 and not stalls:
            return False
        self.times |= {"lease_ms": length, "visible_until": now + length, "beat_at": now}
        return True

    def cancel(self, now: int) -> None:
        self._require("pending", "scheduled", "available", "active", "retryable")
        self.enter("cancelled", cancelled_at=now)

    def retry(self, now: int) -> None:
        """Begin anew after its last attempt."""
        self._require("discarded")
        self.attempt = self.uncharged = 0
        self.generation += 1
        self.error, self.dead = None, False
        expires = self.times.get("expires_at", now)
        gone = dict.fromkeys(("started_at", "completed_at", "discarded_at"))
        self.enter("available", enqueued_at=now, re_enqueued_at=now, expires_at=expires if expires > now else None, **gone)

    def delete(self) -> None:
        self._require("discarded")
        if not self.dead:
            raise Refusal(*NOT_FOUND)
        self.deleted, self.entries = True, self.entries + 1

    # What happens by itself

    def limits(self) -> list[tuple[int, str]]:
        """When something happens by itself, and why: the next first."""
        t = self.times
        found: list[tuple[int | None, str]] = []
        if self.deleted or self.state in ENDED:
            return []
        if self.total_timeout_ms:
            found.append((t.get("re_enqueued_at", self.created) + self.total_timeout_ms, "total_timeout"))
        if self.state == "active":
            run = (self.timeout_ms or HALF_HOUR_MS) + (self.grace_period_ms or 0)
            found += [(t["started_at"] + run, "timeout"), (t["visible_until"], "visibility_timeout")]
            if self.heartbeat_timeout_ms and "beat_at" in t:
                found.append((t["beat_at"] + self.heartbeat_timeout_ms, "stalled"))
        else:
            found.append((t.get("expires_at"), "expired"))
            if self.state == "available" and self.attempt == 0 and self.enqueue_ttl_ms:
                found.append((t["enqueued_at"] + self.enqueue_ttl_ms, "enqueue_ttl_expired"))
            if self.state in {"scheduled", "retryable"}:
                found.append((t["scheduled_at" if self.state == "scheduled" else "next_attempt_at"], "go"))
        there = [(at, cause) for at, cause in found if at is not None]
        return sorted(there, key=lambda limit: (limit[0], _CAUSES.index(limit[1])))

    def outlived(self, now: int) -> str | None:
        """What a waiting job has outlived."""
        if self.state == "active":
            return None
        return next((cause for at, cause in self.limits() if at <= now and cause != "go"), None)

    def check_at(self) -> int | None:
        """When its worker is asked about."""
        beat = self.times.get("beat_at")
        return None if self.state != "active" or self.worker is None or beat is None else beat + LIVENESS_MS

    def asks(self, now: int) -> bool:
        """Whether what is due depends on its worker being alive."""
        limits, check = self.limits(), self.check_at()
        return bool(limits) and check is not None and check <= now < limits[0][0]

    def due(self, now: int, seen_at: int | None, *, covered: bool) -> int | None:
        """Do what is due, and return None; or when to look again. The worker was seen at a time, by those who see all
        workers if that is `covered`.
        """
        limits = self.limits()
        if not limits:
            return None
        at, cause = limits[0]
        if self.state == "active" and at <= now:
            self.fail(cause, {"total_timeout": "drop", "visibility_timeout": "now"}.get(cause, "retry"), now)
        elif self.asks(now):
            if seen_at is None:
                return at
            if seen_at + LIVENESS_MS > now:
                return min(at, seen_at + LIVENESS_MS)
            if not covered:
                return min(at, now + 5_000)
            self.fail("worker_death", "now", now)
        elif (reason := self.outlived(now)) is not None:
            self.outlive(reason, now)
        elif self.state != "active" and at <= now:
            self.available(now)
        else:
            return min(at, self.check_at() or at)
        return None


def shown(job: dict[str, Any]) -> dict[str, Any]:
    """A job as the server answered it, in the terms of `ModelJob.view`."""
    plain = {name: job[name] for name in ("id", "queue", "priority", "args", "state", "attempt", "max_attempts")}
    return plain | {
        "worker_id": job.get("worker_id"),
        "result": (job["result"],) if "result" in job else None,
        "error": job["error"]["code"] if "error" in job else None,
        "errors": [(e["code"], e["attempt"], e.get("retry_generation", 0)) for e in job.get("errors", [])],
        "times": sorted(name for name in TIMES if name in job),
    }


class Server:
    """All jobs of one example, at a time that clients can't know. Every method answers as the server must, or raises
    `Refusal`.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, ModelJob] = {}
        self._places = 0

    def find(self, job_id: str) -> ModelJob:
        job = self.jobs.get(job_id)
        if job is None or job.deleted:
            raise Refusal(*NOT_FOUND)
        return job

    def push(self, job: ModelJob) -> None:
        known = self.jobs.get(job.id)
        if known is not None and not known.deleted:
            raise Refusal(409, "duplicate")
        self.jobs[job.id] = job
        job.begin(0)
        self._placed(job)

    def _placed(self, job: ModelJob) -> ModelJob:
        """A job that is available joins the end of its queue."""
        if job.state == "available":
            self._places += 1
            job.place = self._places
        return job

    def available(self, job: ModelJob) -> None:
        """What the job waited for has come."""
        job.available(0)
        self._placed(job)

    def waiting(self, queues: Sequence[str]) -> list[ModelJob]:
        """Whom a fetch serves, in order: queues left to right, then priority, then first come."""
        return [
            job
            for queue in queues
            for job in sorted(self.jobs.values(), key=lambda job: (-job.priority, job.place))
            if job.queue == queue and job.state == "available" and not job.deleted
        ]

    def fetch(self, queues: Sequence[str], count: int, worker: str | None) -> list[ModelJob]:
        taken = self.waiting(queues)[:count]
        for job in taken:
            job.claim(worker, None, 0)
        return taken

    def ack(self, job_id: str, worker: str | None, attempt: int | None, result: Any) -> ModelJob:
        """Acknowledge a job. A worker that names the attempt, or has held but one, may repeat it."""
        job = self.find(job_id)
        repeated = job.state == "completed" and worker is not None and worker == job.worker
        if attempt is None:
            repeated = repeated and sum(name in {None, worker} for name in job.held_by) == 1
        if not repeated or attempt not in {None, job.attempt}:
            job.ack(worker, attempt, result, 0)
        return job

    def nack(self, job_id: str, worker: str | None, attempt: int | None, error: dict[str, Any]) -> ModelJob:
        code = error["code"]
        action = error.get("action") or (code if code in _ACTIONS else None)
        name = "handler_error" if code in _ACTIONS else code
        ways = {"retryable": error["retryable"], "requeue": error["requeue"]}
        job = self.find(job_id)
        job.nack(worker, attempt, name, 0, action=action, **ways)
        return self._placed(job)

    def lose(self, job: ModelJob) -> None:
        """The job's lease runs out."""
        job.fail("visibility_timeout", "now", 0)
        self._placed(job)

    def expire(self, job: ModelJob) -> None:
        job.outlive("expired", 0)

    def cancel(self, job_id: str) -> ModelJob:
        job = self.find(job_id)
        job.cancel(0)
        return job

    def activate(self, job_id: str) -> ModelJob:
        job = self.find(job_id)
        job.activate(0)
        return self._placed(job)

    def heartbeat(self, worker: str, job_ids: Iterable[str]) -> tuple[set[str], set[str]]:
        """(extended, cancelled) of the named jobs."""
        extended: set[str] = set()
        named = [job for job in map(self.jobs.get, job_ids) if job is not None and not job.deleted]
        for job in named:
            with suppress(Refusal):
                job.extend(worker, None, 0)
                extended.add(job.id)
        return extended, {job.id for job in named if job.state == "cancelled"}

    def _dead(self, job_id: str) -> ModelJob:
        job = self.find(job_id)
        if not job.dead:
            raise Refusal(*NOT_FOUND)
        return job

    def retry(self, job_id: str) -> ModelJob:
        job = self._dead(job_id)
        job.retry(0)
        return self._placed(job)

    def delete(self, job_id: str) -> None:
        self._dead(job_id).delete()
