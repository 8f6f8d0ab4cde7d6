"""Jobs in memory, with the transitions that a server gives them."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Any, Final, assert_never

import msgspec
from msgspec.structs import replace

from ojs_api import words
from ojs_nats._names import job_type, queue_name
from ojs_nats._options import AS_THEY_ARE
from ojs_nats._refusals import refused
from ojs_nats.jobs import Checkpoint, Job, JobError, JobRetry
from ojs_nats.options import DEFAULT_QUEUE

_ISO: Final = re.compile(r"\+?PT(\d+(?:\.\d+)?)S")
_SPECVERSION: Final = "1.0"
_RETENTION_S: Final = 604_800
"""The seconds that a server keeps a completed job for."""
_TIMES: Final = ("total_timeout", "enqueue_ttl", "heartbeat_timeout", "grace_period")
_AS_SENT: Final = (*AS_THEY_ARE, "result_ttl", "unique", "rate_limit")
_COUNTS: Final = ("available", "active", "scheduled", "retryable", "pending")
"""The states in which a unique job is in the way of another one, unless its policy names them."""


class RetryPolicy(msgspec.Struct, frozen=True):
    max_attempts: int = 3
    initial_interval_ms: int = 1_000
    backoff_coefficient: float = 2.0
    max_interval_ms: int = 300_000
    non_retryable_errors: tuple[str, ...] = ()

    def pause(self, failures: int) -> timedelta:
        """Behind the `failures`-th failure. Without jitter, so that a test knows it."""
        grown = self.initial_interval_ms * self.backoff_coefficient ** (failures - 1)
        return timedelta(milliseconds=min(grown, self.max_interval_ms))

    def names(self, error: Failure) -> bool:
        """Whether the error is one of those that aren't tried again (ojs-retry §6.2)."""
        names = {name for name in (error.type, error.code, error.details.get("error_class")) if name}
        return any(
            name.startswith(each[:-1]) if each.endswith(".*") else name == each
            for each in self.non_retryable_errors
            for name in names
        )


class UniquePolicy(msgspec.Struct, frozen=True):
    key: tuple[str, ...] = ("type",)
    on_conflict: words.OnConflict = "reject"
    period: str | None = None
    states: tuple[str, ...] = _COUNTS


class _Options(msgspec.Struct, frozen=True):
    queue: str = DEFAULT_QUEUE
    meta: dict[str, Any] = {}
    retry: RetryPolicy = RetryPolicy()
    unique: UniquePolicy | None = None
    timeout_ms: int = 1_800_000
    delay_until: str | None = None
    expires_at: datetime | None = None
    pending: bool = False


class Envelope(msgspec.Struct, frozen=True):
    """A push."""

    type: str
    args: list[Any]
    id: str
    options: dict[str, Any] = {}

    def __post_init__(self) -> None:
        """Refuse options of another type when the push is read."""
        self.said()
        self.job()

    def said(self) -> _Options:
        """Return the options that the store acts on."""
        return msgspec.convert(self.options, _Options)

    def job(self) -> Job:
        """Return the job with the options that it shows as they were sent, and its limits in seconds."""
        shown = {name: value for name, value in self.options.items() if name in _AS_SENT}
        shown |= {name: self.options[f"{name}_ms"] / 1_000 for name in _TIMES if f"{name}_ms" in self.options}
        told = {"id": self.id, "type": self.type, "args": self.args, "state": "available", "specversion": _SPECVERSION}
        return msgspec.convert(told | shown, Job)


class Failure(msgspec.Struct, frozen=True):
    """The report of a worker about a failed attempt."""

    message: str = ""
    code: str | None = None
    type: str | None = None
    retryable: bool = True
    action: str | None = None
    details: dict[str, Any] = {}
    backtrace: list[str] = []


class Held(msgspec.Struct):
    """A job and its policies. `performed` is how often it was begun, `uncharged` how many of these don't count as attempts,
    `failed` whether one has failed, `put_off` that its handler has said when it is to run.
    """

    job: Job
    retry: RetryPolicy
    unique: UniquePolicy | None
    performed: int = 0
    failed: bool = False
    put_off: bool = False
    uncharged: int = 0
    progress: float | None = None

    @property
    def waits(self) -> str:
        """Its state; one that is put off waits as if it had been pushed for later, though its state is that of a retry."""
        return "scheduled" if self.put_off and self.job.state == "retryable" else self.job.state


class Store:
    """To be used from any thread. Raises RefusedError as the server would."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._held: dict[str, Held] = {}
        self._lock = threading.RLock()

    def all(self) -> list[Held]:
        """In the order that they were pushed in."""
        with self._lock:
            return list(self._held.values())

    def clear(self) -> None:
        with self._lock:
            self._held.clear()

    def get(self, job_id: str) -> Held:
        with self._lock:
            if job_id not in self._held:
                raise refused("not_found", f"there is no job {job_id}", status=404)
            return self._held[job_id]

    # Pushes

    def push(self, pushed: Iterable[Envelope]) -> list[Job]:
        """All of them or none; a job's place may be taken by another one, by its policy of uniqueness."""
        with self._lock:
            before = dict(self._held)
            try:
                return [self._push(envelope) for envelope in pushed]
            except Exception:
                self._held = before
                raise

    def _push(self, pushed: Envelope) -> Job:
        _check(pushed)
        said, now = pushed.said(), self._now()
        if pushed.id in self._held:
            raise _duplicate(self._held[pushed.id].job, f"a job with id {pushed.id} already exists")
        due = None if said.delay_until is None else _due(said.delay_until, now)
        if said.unique is not None and (other := self._same(pushed, said.unique, now)) is not None:
            match said.unique.on_conflict:
                case "reject":
                    raise _duplicate(other, f"job {other.id} ({other.state}) matches the uniqueness key")
                case "ignore":
                    return other
                case "replace_except_schedule" if other.state == "scheduled":
                    due = other.scheduled_at
                    self.cancel(other.id)
                case "replace" | "replace_except_schedule":
                    self.cancel(other.id)
                case unknown:
                    assert_never(unknown)
        state = "pending" if said.pending else "scheduled" if due is not None and due > now else "available"
        job = replace(
            pushed.job(), state=state, max_attempts=said.retry.max_attempts, created_at=now, scheduled_at=due,
            enqueued_at=now if state == "available" else None, expires_at=said.expires_at, timeout_ms=said.timeout_ms,
            retry=JobRetry([*said.retry.non_retryable_errors]),
        )  # fmt: skip
        self._held[job.id] = Held(job, said.retry, said.unique)
        return job

    def _same(self, pushed: Envelope, policy: UniquePolicy, now: datetime) -> Job | None:
        """The newest one that counts as the same."""
        period = None if policy.period is None else _duration(policy.period)
        said = pushed.said()
        wanted = {"type": pushed.type, "args": pushed.args, "queue": said.queue, "meta": said.meta}
        for held in reversed(self._held.values()):
            job = held.job
            if job.state not in policy.states or job.type != pushed.type:
                continue
            if period is not None and job.created_at is not None and job.created_at + period <= now:
                continue
            if all(getattr(job, name) == wanted[name] for name in policy.key if name in wanted):
                return job
        return None

    # Transitions

    def cancel(self, job_id: str) -> Job:
        with self._lock:
            held = self.get(job_id)
            if held.job.ended:
                raise refused("conflict", f"job {job_id} is {held.job.state} and can't be cancelled", status=409)
            return self._become(held, state="cancelled", cancelled_at=self._now())

    def come_due(self) -> None:
        """Make what was waiting for a time that has come available, and discard what has expired."""
        with self._lock:
            now = self._now()
            for held in self._held.values():
                job = held.job
                waits_for = job.scheduled_at if job.state == "scheduled" else job.next_attempt_at
                if (
                    job.state in {"available", "scheduled", "retryable"}
                    and job.expires_at is not None
                    and job.expires_at <= now
                ):
                    error = JobError("the job has expired", "expired", "expired", job.attempt, occurred_at=now)
                    self._become(held, state="discarded", discarded_at=now, completed_at=now, error=error)
                elif job.state in {"scheduled", "retryable"} and waits_for is not None and waits_for <= now:
                    self.make_available(job.id)

    def make_available(self, job_id: str) -> None:
        with self._lock:
            self._become(self.get(job_id), state="available", enqueued_at=self._now(), next_attempt_at=None)

    def begin(self, job_id: str, worker_id: str) -> Job:
        """The next attempt."""
        with self._lock:
            held = self.get(job_id)
            if held.job.state != "available":
                raise refused("conflict", f"job {job_id} is {held.job.state} and can't begin", status=409)
            held.performed += 1
            held.put_off = False
            attempt = held.job.attempt + 1
            return self._become(held, state="active", attempt=attempt, worker_id=worker_id, started_at=self._now())

    def complete(self, job_id: str, result: Any) -> Job:
        with self._lock:
            held, now = self._active(job_id), self._now()
            return self._become(held, state="completed", completed_at=now, error=None, **_kept(held.job, result, now))

    def fail(self, job_id: str, said: Failure, *, requeue: bool, after_ms: int | None) -> Job:
        """By the job's policy, unless the handler has said what is to come of it."""
        with self._lock:
            held, now = self._active(job_id), self._now()
            after = None if after_ms is None else timedelta(milliseconds=after_ms)
            if requeue:
                held.uncharged += 1
                held.put_off = after is not None
                due = None if after is None else now + after
                state = "available" if due is None else "retryable"
                delay_ms = held.job.retry_delay_ms if after_ms is None else after_ms
                known: dict[str, Any] = {"next_attempt_at": due, "retry_delay_ms": delay_ms, "worker_id": None}
                return self._become(held, state=state, uncounted_attempts=held.uncharged, **known)
            held.failed = True
            job = held.job
            error = JobError(
                said.message,
                said.code,
                said.type or said.code,
                job.attempt,
                said.details or None,
                said.backtrace or None,
                occurred_at=now,
                retryable=said.retryable,
            )
            known = {"error": error, "errors": [*job.errors, error], "worker_id": None}
            charged = job.attempt - held.uncharged
            final = said.action in {"DISCARD", "FAIL", "DEAD_LETTER"} or held.retry.names(said)
            if final or not said.retryable or charged >= held.retry.max_attempts:
                ended = {"discarded_at": now, "completed_at": now, "retry_delay_ms": None}
                return self._become(held, state="discarded", **ended, **known)
            pause = held.retry.pause(charged) if after is None else after
            delay_ms = pause // timedelta(milliseconds=1)
            return self._become(held, state="retryable", next_attempt_at=now + pause, retry_delay_ms=delay_ms, **known)

    def save(self, job_id: str, state: Any) -> Checkpoint:
        with self._lock:
            held = self._active(job_id)
            before = held.job.checkpoint.sequence if held.job.checkpoint else 0
            saved = Checkpoint(state, before + 1, self._now())
            self._become(held, checkpoint=saved)
            return saved

    def _active(self, job_id: str) -> Held:
        held = self.get(job_id)
        if held.job.state != "active":
            raise refused("conflict", f"job {job_id} is {held.job.state}, not active", status=409)
        return held

    @staticmethod
    def _become(held: Held, **changes: Any) -> Job:
        held.job = replace(held.job, **changes)
        return held.job


def _kept(job: Job, result: Any, now: datetime) -> dict[str, Any]:
    """Return the members of a completed job that are about its result."""
    if result is None or job.result_ttl == 0:
        return {"result": None}
    ttl_s = _RETENTION_S if job.result_ttl is None else job.result_ttl
    leaves = None if ttl_s < 0 else now + timedelta(seconds=ttl_s)
    size = len(msgspec.json.encode(result))
    return {"result": result, "result_size_bytes": size, "result_stored_at": now, "result_expires_at": leaves}


def _check(pushed: Envelope) -> None:
    for name, value, rule in (("type", pushed.type, job_type), ("options.queue", pushed.said().queue, queue_name)):
        try:
            rule(value)
        except ValueError as error:
            raise refused("invalid_request", f"{name}: {error}", status=400, details={"field": name}) from None


def _duplicate(other: Job, message: str) -> Exception:
    details = {"existing_job_id": other.id, "existing_job_state": other.state}
    return refused("duplicate", message, status=409, details=details)


def _due(said: str, now: datetime) -> datetime:
    return now + _duration(said) if _ISO.fullmatch(said) else datetime.fromisoformat(said)


def _duration(said: str) -> timedelta:
    found = _ISO.fullmatch(said)
    assert found is not None, said
    return timedelta(seconds=float(found[1]))
