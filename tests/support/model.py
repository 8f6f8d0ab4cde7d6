"""A small model of the job server: what the requirements promise to one client at a time, in plain dictionaries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

ENDED: Final = frozenset({"completed", "cancelled", "discarded"})
ABSENT: Final = object()
_ACTIONS: Final = frozenset({"RETRY", "DISCARD", "DEAD_LETTER", "FAIL"})


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
    """One job. `place` orders the jobs of a queue that are available; `times` are the time stamps that it shows."""

    id: str
    queue: str
    priority: int = 0
    max_attempts: int = 3
    on_exhaustion: str = "discard"
    args: list[Any] = field(default_factory=list)
    state: str = "available"
    attempt: int = 0
    uncharged: int = 0
    generation: int = 0
    worker: str | None = None
    held_by: set[str] = field(default_factory=set)
    """Whoever has held it by name, in any attempt."""
    result: Any = ABSENT
    error: str | None = None
    errors: list[tuple[str, int, int]] = field(default_factory=list)
    """(code, attempt, generation), oldest first."""
    dead: bool = False
    deleted: bool = False
    times: set[str] = field(default_factory=set)
    place: int = 0

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
            "times": sorted(self.times),
        }


_TIMES: Final = (
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


def shown(job: dict[str, Any]) -> dict[str, Any]:
    """A job as the server answered it, in the terms of `ModelJob.view`."""
    plain = {name: job[name] for name in ("id", "queue", "priority", "args", "state", "attempt", "max_attempts")}
    return plain | {
        "worker_id": job.get("worker_id"),
        "result": (job["result"],) if "result" in job else None,
        "error": job["error"]["code"] if "error" in job else None,
        "errors": [(e["code"], e["attempt"], e.get("retry_generation", 0)) for e in job.get("errors", [])],
        "times": sorted(name for name in _TIMES if name in job),
    }


class Server:
    """All jobs of one example. Every method answers as the server must, or raises `Refusal`."""

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
        if job.state == "available":
            self.available(job)

    def available(self, job: ModelJob) -> None:
        """The job joins the end of its queue."""
        self._places += 1
        job.place = self._places
        job.state, job.worker = "available", None
        job.times = (job.times - {"next_attempt_at"}) | {"enqueued_at"}

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
            job.state, job.worker = "active", worker
            job.held_by |= {worker} if worker is not None else set()
            job.attempt += 1
            job.times |= {"started_at"}
        return taken

    def _held(self, job_id: str, worker: str | None, attempt: int | None) -> ModelJob:
        job = self.find(job_id)
        if job.state != "active" or attempt not in {None, job.attempt}:
            raise Refusal(*CONFLICT)
        if job.worker is not None and worker not in {None, job.worker}:
            raise Refusal(*CONFLICT)
        if job.worker is None and attempt is None and worker in job.held_by:
            raise Refusal(*CONFLICT)
        return job

    def ack(self, job_id: str, worker: str | None, attempt: int | None, result: Any) -> ModelJob:
        job = self.find(job_id)
        if job.state == "completed" and None not in {worker, attempt} and (worker, attempt) == (job.worker, job.attempt):
            return job
        self._held(job_id, worker, attempt)
        job.state, job.error, job.result = "completed", None, result
        job.times |= {"completed_at"}
        return job

    def nack(self, job_id: str, worker: str | None, attempt: int | None, error: dict[str, Any]) -> ModelJob:
        job = self._held(job_id, worker, attempt)
        if error["requeue"]:
            job.uncharged += 1
            job.times -= {"started_at"}
            self.available(job)
            return job
        action = error.get("action") or (error["code"] if error["code"] in _ACTIONS else None)
        code = "handler_error" if error["code"] in _ACTIONS else error["code"]
        if action in {"DISCARD", "FAIL"}:
            self._fail(job, code, None, dead=False)
        elif action == "DEAD_LETTER":
            self._fail(job, code, None, dead=True)
        elif action is None and not error["retryable"]:
            self._fail(job, code, None)
        else:
            self._fail(job, code, "retryable")
        return job

    def lose(self, job: ModelJob) -> None:
        """The job's lease runs out."""
        self._fail(job, "visibility_timeout", "available")

    def expire(self, job: ModelJob) -> None:
        self._record(job, "expired")
        job.state = "discarded"
        job.times |= {"discarded_at"}

    def _record(self, job: ModelJob, code: str) -> None:
        job.error = code
        job.errors.append((code, job.attempt, job.generation))

    def _fail(self, job: ModelJob, code: str, after: str | None, *, dead: bool | None = None) -> None:
        self._record(job, code)
        if after is None or job.attempt - job.uncharged >= max(1, job.max_attempts):
            job.state = "discarded"
            job.dead = job.on_exhaustion == "dead_letter" if dead is None else dead
            job.times |= {"discarded_at", "completed_at"}
        elif after == "available":
            self.available(job)
        else:
            job.state, job.worker = "retryable", None
            job.times |= {"next_attempt_at"}

    def cancel(self, job_id: str) -> ModelJob:
        job = self.find(job_id)
        if job.state in ENDED:
            raise Refusal(*CONFLICT)
        job.state = "cancelled"
        job.times = (job.times - {"next_attempt_at"}) | {"cancelled_at"}
        return job

    def activate(self, job_id: str) -> ModelJob:
        job = self.find(job_id)
        if job.state != "pending":
            raise Refusal(*CONFLICT)
        job.times |= {"activated_at"}
        self.available(job)
        return job

    def heartbeat(self, worker: str, job_ids: Iterable[str]) -> tuple[set[str], set[str]]:
        """(extended, cancelled) of the named jobs; a job that was fetched without a name is anybody's."""
        named = [job for job in map(self.jobs.get, job_ids) if job is not None and not job.deleted]
        extended = {job.id for job in named if job.state == "active" and job.worker in {None, worker}}
        return extended, {job.id for job in named if job.state == "cancelled"}

    def _dead(self, job_id: str) -> ModelJob:
        job = self.find(job_id)
        if not job.dead:
            raise Refusal(*NOT_FOUND)
        return job

    def retry(self, job_id: str) -> ModelJob:
        job = self._dead(job_id)
        job.generation += 1
        job.attempt = job.uncharged = 0
        job.error, job.dead = None, False
        job.times = (job.times - {"started_at", "completed_at", "discarded_at"}) | {"re_enqueued_at"}
        self.available(job)
        return job

    def delete(self, job_id: str) -> None:
        self._dead(job_id).deleted = True
