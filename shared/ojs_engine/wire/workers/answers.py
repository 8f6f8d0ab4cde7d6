"""What workers are answered: fetch, ack, nack, heartbeat, registration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

from ojs_api.work import AckAnswer, AckedItem, AcksAnswer, FetchedJobs, HeartbeatAnswer, NackAnswer, RegisteredWorker
from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import DEFAULT_LEASE_MS, LIVENESS_MS
from ojs_engine.domain.worker import Mark
from ojs_engine.wire.errors import error_view
from ojs_engine.wire.jobs.job import job_members, job_view, shown_job
from ojs_engine.wire.members import AnswerWarning, moment
from ojs_engine.wire.workers.marks import mark_text
from ojs_engine.wire.workers.requests import Ack

_HEARTBEAT_INTERVAL_S: Final = 5


class Along(Protocol):
    """Something that goes along with a fetched job."""

    @property
    def size(self) -> int:
        """About how many bytes it adds."""

    def put(self, answer: dict[str, Any], *, brief: bool) -> None:
        """Add it to the members of the job, without what it says twice if that has to be `brief`."""


def fetched_jobs(
    jobs: Iterable[Job],
    along: Mapping[str, Sequence[Along]] = {},
    acks: AcksAnswer | None = None,
    *,
    brief: bool = False,
) -> FetchedJobs:
    """Make the answer with fetched jobs, and what goes `along` with each by its id.

    `acks` is what became of those that came with the fetch.
    """
    return FetchedJobs([_fetched(job, along.get(job.id, ()), brief=brief) for job in jobs], acks)


def _fetched(job: Job, along: Sequence[Along], *, brief: bool) -> Any:
    if not along:
        return job_view(job)
    answer = job_members(job)
    for one in along:
        one.put(answer, brief=brief)
    return shown_job(answer, job)


def acknowledged(job: Job) -> AckAnswer:
    """The answer to an ack."""
    return AckAnswer(acknowledged=True, **_outcome(job))


def acks_answer(asked: Sequence[Ack | OjsError], refused: Mapping[int, OjsError]) -> AcksAnswer:
    """The answer to many acks; `refused` says by its index why one was."""
    items = [
        AckedItem(
            index=index,
            status="failed" if index in refused else "acknowledged",
            job_id=None if isinstance(ask, OjsError) else ask.job_id,
            error=error_view(refused[index]) if index in refused else None,
        )
        for index, ask in enumerate(asked)
    ]
    return AcksAnswer(len(items), len(items) - len(refused), len(refused), items)


def nacked(job: Job, closed_until: int | None = None, warnings: Sequence[AnswerWarning] = ()) -> NackAnswer:
    """The answer to a nack; until `closed_until` (Unix ms) the job's limit lets nothing start."""
    delay_ms = job.retry_delay_ms if job.state is State.RETRYABLE else None
    return NackAnswer(
        **_outcome(job),
        retry_delay_ms=delay_ms,
        rate_limit_until=moment(closed_until),
        warnings=list(warnings) or None,
    )


def _outcome(job: Job) -> dict[str, Any]:
    """The members of a `JobOutcome`."""
    return {
        "id": job.id,
        "state": job.state,
        "attempt": job.attempt,
        "max_attempts": job.retry.max_attempts,
        "job": job_view(job),
        "completed_at": moment(job.completed_at),
        "discarded_at": moment(job.discarded_at),
        "next_attempt_at": moment(job.next_attempt_at),
    }


def heartbeat_answer(
    state: str, extended: Sequence[str], cancelled: Sequence[str], mark: Mark, warnings: Sequence[AnswerWarning] = ()
) -> HeartbeatAnswer:
    """The answer to a heartbeat; `cancelled` are jobs that the worker should stop, `mark` is when it was stored."""
    return HeartbeatAnswer(
        acknowledged=True,
        state=state,
        jobs_extended=list(extended),
        server_time=moment(mark.at),
        mark=mark_text(mark),
        cancelled_jobs=list(cancelled) or None,
        warnings=list(warnings) or None,
    )


def registered(worker_id: str, mark: Mark) -> RegisteredWorker:
    """Return the answer to a registration, which was stored at `mark`."""
    return RegisteredWorker(
        ok=True,
        worker_id=worker_id,
        server_time=moment(mark.at),
        mark=mark_text(mark),
        heartbeat_interval=_HEARTBEAT_INTERVAL_S,
        heartbeat_timeout=LIVENESS_MS // 1_000,
        visibility_timeout_default=DEFAULT_LEASE_MS // 1_000,
    )
