"""Can a job have lived as its clients saw it? A search for one lawful life that explains every call about it.

Each call took effect at one moment between its start and its end (an unknown one later, or never), and between calls the
job moves by itself as `BY_ITSELF` allows. If no order of all these explains every answer, the job's history is unlawful
(linearizability after Wing and Gong, with time: a lease or a delay can't end before it can have ended).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ojs_engine.domain.job import TERMINAL, State
from support.history import Call, Outcome, Plan

SLACK_S: Final = 0.15
"""How far a service's idea of the server's time may be off."""

_LOST: Final = frozenset({"visibility_timeout", "worker_death"})
_WAITING: Final = frozenset({State.PENDING, State.SCHEDULED, State.AVAILABLE, State.RETRYABLE})

BY_ITSELF: Final = {
    (State.SCHEDULED, State.AVAILABLE): "its delay is over",
    (State.RETRYABLE, State.AVAILABLE): "its back-off is over",
    (State.AVAILABLE, State.ACTIVE): "a fetch claimed it whose answer was lost",
    (State.ACTIVE, State.AVAILABLE): "its lease is over, or its worker is dead, and attempts are left; or a claim that "
    "nobody heard of was given back",
    (State.ACTIVE, State.DISCARDED): "its lease is over, or its worker is dead, and that was the last attempt",
    (State.PENDING, State.DISCARDED): "it expired",
    (State.SCHEDULED, State.DISCARDED): "it expired",
    (State.AVAILABLE, State.DISCARDED): "it expired",
    (State.RETRYABLE, State.DISCARDED): "it expired",
}
"""Every move that a job may make without a call that says so. `_by_itself` yields nothing that isn't here."""


class _Life(NamedTuple):
    """Where a job may stand. `since`: the earliest moment it can be so; `until`: before which time may not move it on."""

    state: State | None
    attempt: int = 0
    uncharged: int = 0
    holder: str | None = None
    unheard: bool = False
    """The running attempt was claimed by a fetch that nobody heard of."""
    since: float = 0.0
    until: float = 0.0
    expires: float | None = None


class Evidence(NamedTuple):
    """All that is known of one job. `errors`: attempt -> codes recorded; `lost_fetches`: (start, end) of fetches that may
    have claimed it unheard; `attempts`: how many there were in the end.
    """

    plan: Plan
    calls: Sequence[Call]
    errors: Mapping[int, frozenset[str]]
    lost_fetches: Sequence[tuple[float, float]]
    attempts: int

    @classmethod
    def of(
        cls, plan: Plan, calls: Sequence[Call], final: Mapping[str, Any] | None, lost: Sequence[tuple[float, float]]
    ) -> Evidence:
        errors: dict[int, frozenset[str]] = {}
        for error in (final or {}).get("errors", ()):
            errors[error["attempt"]] = errors.get(error["attempt"], frozenset()) | {error["code"]}
        return cls(plan, calls, errors, lost, (final or {}).get("attempt", 0))


def explained(evidence: Evidence) -> bool:
    """Whether some lawful life explains every call."""
    calls = [call for call in evidence.calls if not (call.op == "heartbeat" and call.outcome is Outcome.UNKNOWN)]
    certain = sum(1 << n for n, call in enumerate(calls) if call.outcome is not Outcome.UNKNOWN)
    # A call can't have taken effect before one that had ended when it began.
    before = [sum(1 << m for m, other in enumerate(calls) if certain >> m & 1 and other.ended < call.started) for call in calls]
    start = (0, _Life(None))
    stack, visited = [start], {start}
    while stack:
        done, life = stack.pop()
        if done & certain == certain:
            return True
        pending = [n for n in range(len(calls)) if not done >> n & 1]
        latest = min(calls[n].ended for n in pending if certain >> n & 1) + SLACK_S
        if life.since > latest:
            continue
        following = [(done, moved) for moved in _by_itself(life, evidence)]
        for n in pending:
            if before[n] & ~done:
                continue
            call = calls[n]
            moved = _after(life._replace(since=max(life.since, call.started)), call, evidence)
            if moved is not None and moved.since <= call.ended + SLACK_S:
                following.append((done | 1 << n, moved))
        for position in following:
            if position not in visited:
                visited.add(position)
                stack.append(position)
    return False


def _by_itself(life: _Life, evidence: Evidence) -> Iterator[_Life]:
    for moved in _moves(life, evidence):
        assert life.state is not None
        assert moved.state is not None
        assert (life.state, moved.state) in BY_ITSELF
        yield moved


def _moves(life: _Life, evidence: Evidence) -> Iterator[_Life]:
    over = max(life.since, life.until)
    match life.state:
        case State.SCHEDULED | State.RETRYABLE:
            yield life._replace(state=State.AVAILABLE, since=over, until=0.0)
        case State.AVAILABLE if life.attempt < evidence.attempts:
            # Any lost fetch will do, so the one that allows the earliest moment stands for all.
            moments = [max(life.since, start) for start, end in evidence.lost_fetches if end >= life.since]
            if moments:
                yield life._replace(
                    state=State.ACTIVE, attempt=life.attempt + 1, unheard=True, since=min(moments), until=min(moments)
                )
        case State.ACTIVE:
            if evidence.errors.get(life.attempt, frozenset()) & _LOST:
                if _exhausted(life, evidence.plan):
                    yield _idle(life, State.DISCARDED, since=over)
                else:
                    yield _idle(life, State.AVAILABLE, since=over)
            if life.unheard and _clean(life, evidence):
                yield _idle(life, State.AVAILABLE, uncharged=life.uncharged + 1)
        case _:
            pass
    if life.expires is not None and life.state in _WAITING and "expired" in evidence.errors.get(life.attempt, ()):
        yield _idle(life, State.DISCARDED, since=max(life.since, life.expires))


def _after(life: _Life, call: Call, evidence: Evidence) -> _Life | None:
    """The job after a call that took effect at `life.since`, or None if the call can't have gone so then."""
    if call.outcome is Outcome.REFUSED:
        return life if _refusable(life, call) else None
    told = next((seen for seen in call.seen if seen.job_id == call.job_id), None)
    moved = _done(life, call, evidence)
    if moved is None or told is None:
        return moved
    if call.op == "push" and moved.state is State.SCHEDULED and told.state is State.AVAILABLE:
        moved = moved._replace(state=State.AVAILABLE, since=moved.until, until=0.0)  # stored when its delay was over
    fits = told.state is moved.state and told.attempt in {None, moved.attempt}
    return moved if fits else None


def _done(life: _Life, call: Call, evidence: Evidence) -> _Life | None:
    plan = evidence.plan
    held = life.state is State.ACTIVE and not life.unheard and life.holder == call.worker
    if call.attempt is not None:
        held = held and life.attempt == call.attempt
    match call.op:
        case "push":
            return _pushed(life, plan) if life.state is None else None
        case "activate" if life.state is State.PENDING:
            return life._replace(state=State.AVAILABLE)
        case "fetch" if life.state is State.AVAILABLE:
            lease_end = life.since + call.lease_s
            return life._replace(
                state=State.ACTIVE, attempt=life.attempt + 1, holder=call.worker, unheard=False, until=lease_end
            )
        case "heartbeat" if held:
            # The server renews a lease once half of it is gone, so half of it is left in any case.
            return life._replace(until=max(life.until, life.since + call.lease_s / 2))
        case "heartbeat" if life.state is State.CANCELLED:
            return life  # a gateway may hear of a cancellation late; the lease bounds how late
        case "ack" if held and _clean(life, evidence):
            return _idle(life, State.COMPLETED)
        case "requeue" if held and _clean(life, evidence):
            return _idle(life, State.AVAILABLE, uncharged=life.uncharged + 1)
        case "nack" if held and call.code in evidence.errors.get(life.attempt, ()):
            if _exhausted(life, plan):
                return _idle(life, State.DISCARDED)
            return _idle(life, State.RETRYABLE)._replace(until=life.since + plan.retry_s)
        case "cancel" if life.state is not None and life.state not in TERMINAL:
            return _idle(life, State.CANCELLED) if life.state is not State.ACTIVE or _clean(life, evidence) else None
        case "get":
            return life
        case _:
            return None


def _refusable(life: _Life, call: Call) -> bool:
    if call.status == 404:
        return life.state is None
    match call.op:
        case "push":
            return life.state is not None
        case "ack" | "nack" | "requeue":
            named = call.attempt is None or call.attempt == life.attempt
            return not (life.state is State.ACTIVE and life.holder == call.worker and named and not life.unheard)
        case "cancel":
            return life.state in TERMINAL
        case "activate":
            return life.state is not State.PENDING
        case _:
            return False


def _pushed(life: _Life, plan: Plan) -> _Life:
    expires = None if plan.expires_s is None else life.since + plan.expires_s
    if plan.pending:
        return life._replace(state=State.PENDING, expires=expires)
    if plan.delay_s:
        return life._replace(state=State.SCHEDULED, until=life.since + plan.delay_s, expires=expires)
    return life._replace(state=State.AVAILABLE, expires=expires)


def _idle(life: _Life, state: State, *, since: float | None = None, uncharged: int | None = None) -> _Life:
    return life._replace(
        state=state,
        holder=None,
        unheard=False,
        since=life.since if since is None else since,
        until=0.0,
        uncharged=life.uncharged if uncharged is None else uncharged,
    )


def _exhausted(life: _Life, plan: Plan) -> bool:
    return life.attempt - life.uncharged >= max(1, plan.max_attempts)


def _clean(life: _Life, evidence: Evidence) -> bool:
    """Whether nothing went wrong in the running attempt, by the record (a later expiry is entered under its number)."""
    return not evidence.errors.get(life.attempt, frozenset()) - {"expired"}
