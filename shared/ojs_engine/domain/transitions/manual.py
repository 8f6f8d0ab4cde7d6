"""What people and programs ask for from outside the worker's loop: cancel, manual retry, deletion, a new token."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ojs_engine.base.errors import conflict, not_found
from ojs_engine.domain.job import NOTHING, TERMINAL, Job, Retry, State
from ojs_engine.domain.members import KEPT
from ojs_engine.domain.transitions.log import leading_to
from ojs_engine.domain.transitions.push import activate
from ojs_engine.domain.transitions.result import Moment, Transition
from ojs_engine.domain.transitions.settle import conclude, entered, made_available, require
from ojs_engine.domain.unique import keyed

_LIVE = tuple(state for state in State if state not in TERMINAL)


class RetryOverride(Struct, frozen=True, kw_only=True):
    """What a manual retry changes (ojs-dead-letter §6.3): `meta` adds its members to the job's, the others replace it
    as a whole, None leaves it.
    """

    queue: str | None = None
    meta: Raw = NOTHING
    retry: Retry | None = None
    args: Raw = NOTHING


def cancel(job: Job, moment: Moment, reason: str | None = None) -> Transition:
    """Cancel the job in any state that is not terminal, active included. Raises `conflict` otherwise.

    The record keeps its worker, which learns of the cancellation from its next heartbeat.
    """
    require(job, "cancel", *_LIVE)
    new = entered(job, State.CANCELLED, cancelled_at=moment.now)
    return conclude(job, new, moment, "cancelled", worker=job.worker, reason=reason)


def retry_discarded(job: Job, override: RetryOverride, moment: Moment) -> Transition:
    """Give a discarded job a new life: attempts count from 1 again, the error history stays.

    An `expires_at` that has passed is dropped, or the job would be discarded again at once. Raises `conflict` if the job
    is not discarded, `not_found` if it was deleted, `invalid_request` if the override takes away what makes it unique.
    """
    require(job, "retry", State.DISCARDED)
    return _new_life(job, override, moment)


def _new_life(job: Job, override: RetryOverride, moment: Moment) -> Transition:
    queue = override.queue or job.queue
    changes: dict[str, Any] = {
        "queue": queue,
        "transitions": leading_to(queue, job),
        "meta": _merged(job.meta, override.meta) if override.meta else job.meta,
        "retry": override.retry or job.retry,
        "args": override.args or job.args,
    }
    if job.expires_at is not None and job.expires_at <= moment.now:
        changes["expires_at"] = None
        changes["verbatim"] = {name: text for name, text in job.verbatim.items() if name != "expires_at"}
    new = made_available(
        job,
        moment,
        attempt=0,
        uncharged=0,
        generation=job.generation + 1,
        error=None,
        dead_letter=False,
        re_enqueued_at=moment.now,
        started_at=None,
        completed_at=None,
        cancelled_at=None,
        discarded_at=None,
        retry_delay_ms=None,
        **changes,
    )
    return conclude(job, keyed(new), moment, "retried", reason="dead_letter" if job.dead_letter else None)


def _merged(meta: Raw, more: Raw) -> Raw:
    members = msgspec.json.decode(meta, type=dict[str, Raw]) | msgspec.json.decode(more, type=dict[str, Raw])
    return Raw(msgspec.json.encode(members))


def delete(job: Job, moment: Moment) -> Transition:
    """Delete a dead letter: what stays is a tombstone that guards the id for an hour.

    Raises `conflict` if the job is not discarded, `not_found` if it is not a dead letter or is deleted already.
    """
    require(job, "delete", State.DISCARDED)
    if not job.dead_letter:
        raise not_found("dead letter job", job.id)
    return conclude(job, tombstone(job), moment, "deleted")


def prune(job: Job, discarded_at: int, moment: Moment) -> Transition:
    """Delete a dead letter that is one too many, if it is still the one that was discarded then (Unix ms): one that was
    retried and has died again is a new one. Raises as `delete`.
    """
    require(job, "prune", State.DISCARDED)
    if not job.dead_letter or job.discarded_at != discarded_at:
        raise not_found("dead letter job", job.id)
    return conclude(job, tombstone(job), moment, "pruned", reason="max_count")


def tombstone(job: Job) -> Job:
    """What stays of a job that is deleted."""
    kept: dict[str, Any] = {name: getattr(job, name) for name in KEPT}
    return Job(args=Raw(b"[]"), deleted=True, **kept)


def retry_now(job: Job, moment: Moment) -> Transition:
    """End the wait of a job that failed and would be tried again later. Raises `conflict` in any other state."""
    require(job, "retry", State.RETRYABLE)
    return run_now(job, moment)


def run_now(job: Job, moment: Moment) -> Transition:
    """End whatever a job waits for before it becomes available: its delay, its back-off or its activation.

    Raises `conflict` in any state but scheduled, retryable and pending.
    """
    require(job, "run", State.SCHEDULED, State.RETRYABLE, State.PENDING)
    if job.state is State.PENDING:
        return activate(job, moment)
    return conclude(job, made_available(job, moment), moment, "promoted", reason="manual")


def retry_by_hand(job: Job, moment: Moment) -> Transition:
    """Let a job that failed run again at once: in a new life if it was discarded. Raises `conflict` in any other state."""
    return retry_now(job, moment) if job.state is State.RETRYABLE else retry_discarded(job, RetryOverride(), moment)


def retry_one(job: Job, moment: Moment) -> Transition:
    """As `retry_by_hand`, and a job that was cancelled gets a new life, too: for an operator who names it (ojs-admin-api §7.4).

    Members of workflows that were cancelled are the workflow's: its own retry does them again.
    """
    if job.state is State.CANCELLED and not job.deleted:
        if job.workflow is not None:
            raise conflict(
                f"cannot retry job {job.id}: it was cancelled within workflow {job.workflow.id}; retry the workflow",
                job.id,
                job.state,
                State.DISCARDED,
                canonical="JOB_ALREADY_CANCELLED",
            )
        return _new_life(job, RetryOverride(), moment)
    return retry_by_hand(job, moment)


def reprioritise(job: Job, priority: int, moment: Moment) -> Transition:
    """Give a job another priority; an available one goes behind those that have it. Raises `conflict` once it was fetched.

    The entry's reason is `<previous> to <new>`.
    """
    require(job, "reprioritise", State.AVAILABLE, State.SCHEDULED, State.PENDING)
    token = moment.op if job.state is State.AVAILABLE else job.token
    new = replace(job, priority=priority, token=token)
    return conclude(job, new, moment, "reprioritised", reason=f"{job.priority} to {priority}")


def reissue(job: Job, moment: Moment) -> Transition:
    """Give an available job another token, for when the one it has may be lost. Raises `conflict` in any other state."""
    require(job, "reissue", State.AVAILABLE)
    return conclude(job, replace(job, token=moment.op), moment, "reissued")
