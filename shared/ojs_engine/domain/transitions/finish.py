"""The worker's two answers: ACK and NACK."""

from __future__ import annotations

from typing import Final

from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import too_large
from ojs_engine.domain.job import NOTHING, Blob, Job, State
from ojs_engine.domain.transitions.claim import JobHolder, require_holder
from ojs_engine.domain.transitions.effects import Apart
from ojs_engine.domain.transitions.failure import Failure, non_retryable, reported
from ojs_engine.domain.transitions.outcome import FailureVerdict, failed, requeued
from ojs_engine.domain.transitions.result import Moment, Transition
from ojs_engine.domain.transitions.retention import TOMBSTONE_S, result_kept_s, retention_s
from ojs_engine.domain.transitions.settle import conclude, entered

DEFAULT_RESULT_LIMIT: Final = 1_048_576
INLINE_BYTES: Final = 32_768
"""A larger result is a record of its own, so that not everybody who reads the job's record has to carry it."""


def ack(job: Job, result: Raw, holder: JobHolder, moment: Moment) -> Transition:
    """Complete the job; `result` is its JSON as sent (`null` is one), `NOTHING` if the request had no such member.

    Raises `conflict` if the job is not active or held by another, `result_too_large` (the job stays active).
    """
    require_holder(job, "acknowledge", holder)
    limit = job.result_size_limit if job.result_size_limit is not None else DEFAULT_RESULT_LIMIT
    if len(result) > limit:
        raise too_large("result_too_large", "result", len(result), limit)
    # Later steps of a workflow are given the result even if nobody else may see it.
    kept = result if result and (job.result_ttl_s != 0 or job.workflow is not None) else NOTHING
    new = entered(
        job,
        State.COMPLETED,
        completed_at=moment.now,
        result=kept,
        result_stored_at=moment.now if kept else None,
        error=None,
    )
    apart = _apart(new, moment.op)
    if apart is None:
        return conclude(job, new, moment, "acked", worker=job.worker)
    named = replace(new, result=NOTHING, result_blob=Blob(moment.op, len(apart.body)))
    acked = conclude(job, named, moment, "acked", worker=job.worker)
    return replace(acked, effects=(apart, *acked.effects))


def acked_before(job: Job, holder: JobHolder) -> bool:
    """Return whether an ack is the repetition of the one that completed the job, whose answer may have been lost.

    The worker has to be said and be that of the record. So has the attempt, unless the worker has held no other one: a
    late ack of that would be taken for a repetition (docs/adr/047).
    """
    if holder.worker is None or job.state is not State.COMPLETED or holder.worker != job.worker:
        return False
    return _held_once(job, holder.worker) if holder.attempt is None else holder.attempt == job.attempt


def _held_once(job: Job, worker: str) -> bool:
    """Return whether the log has all that has happened, and one attempt that the worker may have held."""
    log = job.transitions
    claims = sum(entry.event == "claimed" and entry.worker in {None, worker} for entry in log)
    return bool(log) and log[0].n == 1 and claims == 1


def _apart(job: Job, op: str) -> Apart | None:
    """The result of a completed job if it is large, or leaves before its job: then it is a record of its own."""
    if not job.result or (job.result_ttl_s is None and len(job.result) <= INLINE_BYTES):
        return None
    stays_s, kept_s = retention_s(job), result_kept_s(job)
    if stays_s is None or kept_s is None:  # what has no end stays in the record: beside it, nobody would clear it away
        return None
    if job.workflow is not None:  # the coordinator may come late to hand it on
        kept_s = max(kept_s, TOMBSTONE_S)
    if kept_s >= stays_s and len(job.result) <= INLINE_BYTES:
        return None
    return Apart(op, job.result, min(kept_s, stays_s))


def nack(job: Job, failure: Failure, holder: JobHolder, moment: Moment) -> Transition:
    """End the running attempt as failed, or give the job back unharmed if `failure.requeue`, for later if it names a delay.

    Raises `conflict` if the job is not active or held by another.
    """
    require_holder(job, "fail", holder)
    if failure.requeue:
        return requeued(job, moment, failure.delay_ms)
    error = reported(job, failure, moment.now)
    verdict: FailureVerdict
    match failure.response:
        case "DISCARD" | "FAIL":
            verdict = "discard"
        case "DEAD_LETTER":
            verdict = "dead_letter"
        case response:
            # RETRY is the handler's own word, so it outweighs the flag that a client library sets for it; the policy's
            # list holds against both.
            refused = response is None and not failure.retryable
            listed = non_retryable(job.retry.non_retryable_errors, error, failure.details)
            verdict = "end" if refused or listed else "retry"
    return failed(job, error, verdict, moment, "failed", failure.delay_ms)
