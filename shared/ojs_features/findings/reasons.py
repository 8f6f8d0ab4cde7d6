"""Why a job is where it is: sentences made of facts; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ojs_engine.base.times import format_ms
from ojs_engine.base.wording import counted, duration
from ojs_engine.domain.handlers import Handled
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.queues.record import RestoreMark
from ojs_engine.domain.transitions import LIVENESS_MS
from ojs_engine.domain.transitions.deadlines import real_deadline
from ojs_engine.operations.finding import Reason
from ojs_engine.store.workers.presence import STOPPED, WorkerRecord


class JobFacts(Struct, frozen=True, kw_only=True):
    """What is known around a job when it is asked about; times in Unix ms."""

    now: int
    hides: bool = False
    """Whether the caller may not see the words of who cancelled it."""
    maintenance: bool = False
    restored: RestoreMark | None = None
    """The mark of a restored system that waits for its release."""
    paused: bool = False
    blocked: Sequence[Reason] = ()
    """The reasons that features have to keep it back."""
    higher: int = 0
    """Available jobs of its queue with a higher priority."""
    beside: int = 0
    """Other available jobs of its priority."""
    workers: Sequence[WorkerRecord] | None = None
    """Running workers that fetch from its queue; None if nobody knows."""
    holder: WorkerRecord | None = None


def reasons(job: Job, facts: JobFacts) -> list[Reason]:
    """Return why the job is in its state, what matters most first."""
    match job.state:
        case State.AVAILABLE:
            return list(_available(job, facts))
        case State.SCHEDULED | State.RETRYABLE | State.PENDING:
            return list(_delayed(job, facts))
        case State.ACTIVE:
            return list(_active(job, facts))
        case _:
            return list(_over(job, facts))


def _maintenance(facts: JobFacts) -> Iterator[Reason]:
    if facts.restored is not None:
        message = f"No job is handed out, and nothing comes due or expires: {facts.restored.said}."
        remedy = "Release the system, once it may act: 'ojs-nats release'."
        yield Reason(code="maintenance", message=message, remedy=remedy)
    elif facts.maintenance:
        message = "There is maintenance: no job is handed out, and nothing comes due."
        yield Reason(code="maintenance", message=message, remedy="End the maintenance, if it is over.")


def _available(job: Job, facts: JobFacts) -> Iterator[Reason]:
    yield from _maintenance(facts)
    if facts.paused:
        remedy = f"Resume it: 'ojs-nats queues resume {job.queue}'."
        yield Reason(code="queue_paused", message=f"Queue {job.queue} is paused.", remedy=remedy)
    yield from facts.blocked
    workers = facts.workers
    if workers is not None and not workers:
        remedy = f"Start one: 'ojs-nats worker MODULE --queues {job.queue}'."
        yield Reason(code="no_worker", message=f"No worker that is heard of fetches from queue {job.queue}.", remedy=remedy)
    elif workers and not any(worker.handlers is None or Handled(worker.handlers).runs_job(job) for worker in workers):
        version = "" if job.version is None else f" in version {job.version}"
        yield Reason(
            code="no_handler",
            message=f"None of the {counted(len(workers), 'worker')} of queue {job.queue} handles {job.type}{version}.",
            remedy="Deploy a worker with a handler for it.",
        )
    if facts.higher:
        message = f"{counted(facts.higher, 'job')} of higher priority {'comes' if facts.higher == 1 else 'come'} first."
        yield Reason(code="higher_priority", message=message, remedy="Raise its priority, or start more workers.")
    if facts.beside:
        message = f"{counted(facts.beside, 'other job')} of its priority {'waits' if facts.beside == 1 else 'wait'} beside it."
        yield Reason(code="in_line", message=message, remedy="Start more workers, if they take too long.")
    since = "" if job.enqueued_at is None else f", since {format_ms(job.enqueued_at)}"
    yield Reason(code="available", message=f"It waits for a worker to fetch it{since}.")


def _delayed(job: Job, facts: JobFacts) -> Iterator[Reason]:
    yield from _maintenance(facts)
    run = "Run it now, if it shall not wait."
    if job.state is State.PENDING:
        yield Reason(code="pending", message="It is pending until somebody activates it.", remedy="Activate it, or run it now.")
    elif job.state is State.SCHEDULED and job.scheduled_at is not None:
        yield Reason(code="delayed", message=f"It is delayed until {format_ms(job.scheduled_at)}.", remedy=run)
    elif job.next_attempt_at is not None:
        after = "" if job.error is None else f", after {job.error.type}"
        message = f"Attempt {job.attempt + 1} of {job.retry.max_attempts} comes at {format_ms(job.next_attempt_at)}{after}."
        yield Reason(code="retrying", message=message, remedy=run)


def _active(job: Job, facts: JobFacts) -> Iterator[Reason]:
    worker = "a worker without a name" if job.worker is None else f"worker {job.worker}"
    since = "" if job.started_at is None else f" since {format_ms(job.started_at)}"
    heard = max((at for at in (job.beat_at, facts.holder and facts.holder.seen_at) if at), default=None)
    told = "" if heard is None else f", last heard {duration((facts.now - heard) / 1_000)} ago"
    yield Reason(code="active", message=f"It runs on {worker}{since}{told}.")
    if facts.holder is not None and (facts.holder.state == STOPPED or facts.now - facts.holder.seen_at > LIVENESS_MS):
        back = format_ms(max(facts.holder.seen_at + LIVENESS_MS, facts.now))
        yield Reason(
            code="worker_stale",
            message=f"Its worker has fallen silent; the job will be taken back at {back}.",
            remedy="See the worker's log; the job goes to another by itself.",
        )
    ends = real_deadline(job)
    yield Reason(code="lease", message=f"Unless it ends or its worker extends it, {ends.cause} comes at {format_ms(ends.at)}.")


def _over(job: Job, facts: JobFacts) -> Iterator[Reason]:
    last = job.transitions[-1] if job.transitions else None
    event, reason = (None, None) if last is None else (last.event, last.reason)
    if job.state is State.COMPLETED:
        yield Reason(code="completed", message=f"It was completed in attempt {job.attempt}.")
    elif job.state is State.CANCELLED:
        why = f": {reason}" if event == "cancelled" and reason and not facts.hides else ""
        remedy = _of_workflow(job) or "Retry it, if it shall run after all."
        yield Reason(code="cancelled", message=f"It was cancelled{why}.", remedy=remedy)
    elif event in {"expired", "ttl_expired"}:
        yield Reason(
            code="expired",
            message="It had expired before a worker took it.",
            remedy=_of_workflow(job) or "Push it again with more time, or start more workers.",
        )
    else:
        error = job.error
        after = "" if error is None else f"; the last error was {error.type}"
        charged = job.attempt - job.uncharged
        if error is not None and charged >= job.retry.max_attempts:
            are = "is" if job.retry.max_attempts == 1 else "are"
            code, message = "attempts_used_up", f"Its {counted(job.retry.max_attempts, 'attempt')} {are} used up{after}."
        elif event == "total_timed_out":
            code, message = "total_timeout", f"It took longer than its total timeout{after}."
        else:
            code, message = "not_retryable", f"It failed in a way that isn't tried again{after}."
        yield Reason(code=code, message=message, remedy=_of_workflow(job) or "Mend what failed, and retry it.")


def _of_workflow(job: Job) -> str | None:
    """Return what brings back the workflow of a job that failed it: a retry of the job alone doesn't."""
    if job.workflow is None:
        return None
    retry = f"'ojs-nats workflows retry {job.workflow.id}'"
    again = f"Mend what failed, then retry its workflow from where it failed: {retry}."
    return f"{again} A retry of the job alone leaves it failed."
