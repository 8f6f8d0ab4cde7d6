"""What workers are answered: fetch, ack, nack, heartbeat, registration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal, Protocol

from msgspec import UNSET, Meta, Struct, UnsetType

from ojs_api.jobs import Job as JobAnswer
from ojs_api.members import ItemError
from ojs_engine.base.errors import OjsError
from ojs_engine.base.times import format_ms
from ojs_engine.domain.job import Job, State
from ojs_engine.domain.transitions import DEFAULT_LEASE_MS, LIVENESS_MS
from ojs_engine.domain.worker import Mark
from ojs_engine.wire.errors import error_view
from ojs_engine.wire.jobs.job import job_members, job_view, shown_job
from ojs_engine.wire.members import AnswerWarning, Count, Timestamp, Uuid, Warnings, given, timestamp
from ojs_engine.wire.workers.marks import mark_text
from ojs_engine.wire.workers.requests import Ack

_HEARTBEAT_INTERVAL_S: Final = 5

_Interval = Annotated[int, Meta(ge=1, description="Seconds.")]
_Mark = Annotated[str, Meta(description="When this was, for the `complete` of later heartbeats.")]


class Along(Protocol):
    """Something that goes along with a fetched job."""

    @property
    def size(self) -> int:
        """About how many bytes it adds."""

    def put(self, answer: dict[str, Any], *, brief: bool) -> None:
        """Add it to the members of the job, without what it says twice if that has to be `brief`."""


class JobOutcome(Struct, kw_only=True, omit_defaults=True):
    """What has become of a job whose attempt has ended, and when it goes on."""

    id: Uuid
    state: State
    attempt: Count
    max_attempts: Count
    job: JobAnswer
    completed_at: Timestamp | UnsetType = UNSET
    discarded_at: Timestamp | UnsetType = UNSET
    next_attempt_at: Timestamp | UnsetType = UNSET


class AckAnswer(JobOutcome, kw_only=True, omit_defaults=True):
    """The job is done."""

    acknowledged: bool


class AckedItem(Struct, kw_only=True, omit_defaults=True):
    """What became of one job of the request."""

    index: Count
    status: Literal["acknowledged", "failed"]
    job_id: Uuid | UnsetType = UNSET
    error: ItemError | UnsetType = UNSET


class AcksAnswer(Struct):
    """What became of each job."""

    total: Count
    succeeded: Count
    failed: Count
    items: list[AckedItem]


class FetchedJobs(Struct, omit_defaults=True):
    """Jobs to work on; those of workflows with what earlier steps hand on.

    `acks`: what became of those that came with the fetch. `fetch_error`: why such a fetch brings no jobs, if it failed.
    """

    jobs: list[JobAnswer]
    acks: AcksAnswer | UnsetType = UNSET
    fetch_error: ItemError | UnsetType = UNSET


class NackAnswer(JobOutcome, kw_only=True, omit_defaults=True):
    """The attempt has failed. `rate_limit_until`: until when the job's limit lets nothing start."""

    retry_delay_ms: Count | UnsetType = UNSET
    rate_limit_until: Timestamp | UnsetType = UNSET
    warnings: Warnings | UnsetType = UNSET


class HeartbeatAnswer(Struct, kw_only=True, omit_defaults=True):
    """What the worker should be, and which of its jobs are still its own."""

    acknowledged: bool
    state: Annotated[str, Meta(description="What the worker should be: running, quiet or terminate.")]
    jobs_extended: Sequence[str]
    server_time: Timestamp
    mark: _Mark
    cancelled_jobs: Annotated[Sequence[str], Meta(description="Jobs that the worker should stop.")] | UnsetType = UNSET
    warnings: Warnings | UnsetType = UNSET


class RegisteredWorker(Struct):
    """The intervals that a worker should keep to (ojs-worker-protocol §3)."""

    ok: bool
    worker_id: str
    server_time: Timestamp
    mark: _Mark
    heartbeat_interval: _Interval = _HEARTBEAT_INTERVAL_S
    heartbeat_timeout: _Interval = LIVENESS_MS // 1_000
    visibility_timeout_default: _Interval = DEFAULT_LEASE_MS // 1_000


class DeregisteredWorker(Struct):
    """The worker is gone."""

    ok: bool
    worker_id: str


def fetched_jobs(
    jobs: Iterable[Job],
    along: Mapping[str, Sequence[Along]] = {},
    acks: AcksAnswer | UnsetType = UNSET,
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
            job_id=UNSET if isinstance(ask, OjsError) else ask.job_id,
            error=error_view(refused[index]) if index in refused else UNSET,
        )
        for index, ask in enumerate(asked)
    ]
    return AcksAnswer(len(items), len(items) - len(refused), len(refused), items)


def nacked(job: Job, closed_until: int | None = None, warnings: Sequence[AnswerWarning] = ()) -> NackAnswer:
    """The answer to a nack; until `closed_until` (Unix ms) the job's limit lets nothing start."""
    delay_ms = job.retry_delay_ms if job.state is State.RETRYABLE else None
    return NackAnswer(
        **_outcome(job),
        retry_delay_ms=given(delay_ms),
        rate_limit_until=timestamp(closed_until),
        warnings=list(warnings) or UNSET,
    )


def _outcome(job: Job) -> dict[str, Any]:
    """The members of a `JobOutcome`."""
    return {
        "id": job.id,
        "state": job.state,
        "attempt": job.attempt,
        "max_attempts": job.retry.max_attempts,
        "job": job_view(job),
        "completed_at": timestamp(job.completed_at),
        "discarded_at": timestamp(job.discarded_at),
        "next_attempt_at": timestamp(job.next_attempt_at),
    }


def heartbeat_answer(
    state: str, extended: Sequence[str], cancelled: Sequence[str], mark: Mark, warnings: Sequence[AnswerWarning] = ()
) -> HeartbeatAnswer:
    """The answer to a heartbeat; `cancelled` are jobs that the worker should stop, `mark` is when it was stored."""
    return HeartbeatAnswer(
        acknowledged=True,
        state=state,
        jobs_extended=extended,
        server_time=format_ms(mark.at),
        mark=mark_text(mark),
        cancelled_jobs=cancelled or UNSET,
        warnings=list(warnings) or UNSET,
    )
