"""What every transition ends with: the log entry, its effects and the retention."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec.structs import replace

from ojs_engine.base.errors import OjsError, conflict, not_found
from ojs_engine.domain.job import Job, State, Timer
from ojs_engine.domain.transitions.deadlines import next_deadline
from ojs_engine.domain.transitions.effects import CancelTimer, Drop, Effect, Note, StaleToken, Token
from ojs_engine.domain.transitions.log import TransitionName, logged
from ojs_engine.domain.transitions.result import Moment, Transition
from ojs_engine.domain.transitions.retention import left_s, retention_s
from ojs_engine.domain.transitions.rings import every_s, may_have_message

_TOKEN: Final = Token()


def settle(old: Job | None, new: Job, moment: Moment, *, fresh: bool = False) -> Transition:
    """Decide what the commit brings about that replaces `old` with `new`.

    A live timer that is due at the right time for the right service is kept, unless `fresh` asks for a new one; otherwise
    the next deadline gets a timer under this transition's op and the old one is cancelled. An op is never armed twice. A
    timer that is the record itself ends with every write. A checkpoint ends with its job, but for a dead letter, which may be
    retried.
    """
    live = old.timer if old is not None else None
    deadline = next_deadline(new, moment.workers)
    if deadline is None:
        timer = None
    elif not fresh and live is not None and live == Timer(live.op, *deadline) and live.at > moment.now:
        timer = live
    else:
        timer = Timer(moment.op, *deadline, every_s(new, deadline[0] - moment.now))
    effects: list[Effect] = []
    if timer is not live:
        if timer is not None and timer.every_s is None:
            effects.append(timer)
        if live is not None and may_have_message(live, moment.now):
            effects.append(CancelTimer(live.op))
    if new.workflow is not None and (step := _step(new)) is not None:
        effects.append(Note("workflow", new.workflow.id, f"{new.workflow.node} {new.workflow.run} {step}"))
    if old is not None and new.state is not State.ACTIVE:  # a claim has the token in hand
        if old.permits:
            claim = claim_of(old) or ""
            effects += [Note("limit", scope, claim) for scope in old.permits]
        if old.token is not None and new.token != old.token:
            effects.append(StaleToken(old))
        if old.result_blob is not None and new.result_blob is None:
            effects.append(Drop("result", old.result_blob.op))
    if new.token == moment.op:
        effects.append(_TOKEN)
    ttl_s = retention_s(new) if new.terminal or new.deleted else None
    if ttl_s is not None and new.unique_key is not None:
        effects.append(Drop("lock"))
    noted = new.checkpoint or (old is not None and old.checkpoint)
    ended = noted and (new.deleted or (new.terminal and not new.dead_letter))
    if ended:
        effects.append(Drop("checkpoint"))
    return Transition(replace(new, timer=timer, checkpoint=new.checkpoint and not ended), tuple(effects), ttl_s)


def _step(job: Job) -> Literal["started", "ended"] | None:
    if job.terminal:
        return "ended"
    opening = job.state is State.ACTIVE and job.workflow is not None and job.workflow.opens
    return "started" if opening and job.attempt == 1 and job.generation == 0 else None


def claim_of(job: Job) -> str | None:
    """The `op` of the transition by which its holder has an active job: what tells a claim from any other, also of the same
    attempt by the same worker, if the first was never stored.
    """
    return next((entry.op for entry in reversed(job.transitions) if entry.event == "claimed"), None)


def conclude(
    old: Job | None, new: Job, moment: Moment, event: TransitionName, *, worker: str | None = None, reason: str | None = None
) -> Transition:
    """Log the transition from `old` to `new` and settle its effects. `worker` is the one it concerns, if any."""
    return settle(old, logged(old, new, moment, event, worker=worker, reason=reason), moment)


def amended(old: Job, new: Job, moment: Moment) -> Transition:
    """Change `old` into `new` without a transition: nothing is logged, and nobody is told.

    The job keeps its token, its timer as long as that is right, and what is left of its retention. The op is recorded, so that
    a commit whose answer was lost is found.
    """
    noted = replace(new, amended=moment.op)
    if noted.terminal or noted.deleted:
        return Transition(noted, ttl_s=left_s(noted, moment.now))
    settled = settle(old, noted, moment)
    return replace(settled, effects=tuple(effect for effect in settled.effects if isinstance(effect, Timer | CancelTimer)))


def entered(job: Job, state: State, **changes: Any) -> Job:
    """The job in another state, without what belonged to the state it leaves; the worker stays for the caller to judge."""
    left: dict[str, Any] = {"token": None, "next_attempt_at": None, "lease_ms": None, "visible_until": None, "beat_at": None}
    if job.permits:
        left["permits"] = ()
    return replace(job, **(left | changes), state=state)


def made_available(job: Job, moment: Moment, **changes: Any) -> Job:
    """The job ready to be fetched: nobody holds it, and its token carries this transition's op."""
    return entered(job, State.AVAILABLE, **({"worker": None, "token": moment.op, "enqueued_at": moment.now} | changes))


def waiting(job: Job, delay_ms: int, moment: Moment, **changes: Any) -> Job:
    """The job before its next attempt: nobody holds it."""
    at = moment.now + delay_ms
    return entered(job, State.RETRYABLE, **({"worker": None, "next_attempt_at": at, "retry_delay_ms": delay_ms} | changes))


def require(job: Job, action: str, *states: State) -> None:
    """Refuse `action` with 409 unless the job is in one of `states`; a tombstone is 404."""
    if job.deleted:
        raise not_found("job", job.id)
    if job.state not in states:
        raise refuse(job, action, *states)


def refuse(job: Job, action: str, *states: State) -> OjsError:
    """409 for `action` on a job whose state is not one of `states`."""
    expected = " or ".join(states)
    return conflict(
        f"cannot {action} job {job.id}: it is {job.state}, not {expected}",
        job.id,
        job.state,
        expected,
        canonical=_CANONICAL.get(job.state, "INVALID_STATE_TRANSITION"),
    )


_CANONICAL = {State.COMPLETED: "JOB_ALREADY_COMPLETED", State.CANCELLED: "JOB_ALREADY_CANCELLED"}
