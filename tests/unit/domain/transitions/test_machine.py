"""Random lives of one job, beside the model that knows the rules but none of the code (support/model.py).

`OJS_EXAMPLES` sets how many lives are tried (support/examples.py).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from itertools import count, pairwise
from typing import Any, Final

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.job import Job, Retry, State, Timer
from ojs_engine.domain.transitions import (
    Failure,
    JobHolder,
    Liveness,
    LivenessNeededError,
    Moment,
    Rearm,
    RetryOverride,
    Transition,
    ack,
    activate,
    cancel,
    claim,
    delete,
    due,
    expire,
    expired,
    extend,
    nack,
    needs_liveness,
    push,
    reissue,
    retry_discarded,
)
from ojs_engine.domain.transitions.effects import CancelTimer, Token
from support.examples import examples
from support.model import ENDED, HALF_HOUR_MS, LEASE, TIMES, ModelJob, Refusal
from support.plain_members import PLAIN, SENT, stored

T0: Final = 1_800_000_000_000
FINAL: Final = "listed.x"
"""An error after which the job's policy allows no retry."""

WORKERS = st.sampled_from(["w1", "w2", None])
LEASES = st.sampled_from([None, 2_000, 60_000, 7_200_000])
DRAFTS = st.builds(
    ModelJob,
    state=st.sampled_from(["available", "available", "available", "pending"]),
    times=st.fixed_dictionaries(
        {},
        optional={
            "scheduled_at": st.just(T0 + 2_000),
            "expires_at": st.sampled_from([T0 + 4_000, T0 + 40_000]),
        },
    ),
    enqueue_ttl_ms=st.sampled_from([None, None, 3_000]),
    total_timeout_ms=st.sampled_from([None, None, None, 6_000, 60_000]),
    timeout_ms=st.sampled_from([None, None, 2_500]),
    grace_period_ms=st.sampled_from([None, 1_000]),
    heartbeat_timeout_ms=st.sampled_from([None, None, 4_000]),
    visibility_timeout_ms=st.sampled_from([None, None, 3_000]),
    max_attempts=st.integers(0, 3),
    on_exhaustion=st.sampled_from(["discard", "dead_letter"]),
    final_errors=st.just(frozenset({FINAL})),
)
LIVENESS = st.builds(
    lambda ago, covered: (ago, covered), st.sampled_from([None, 0, 5_000, 29_999, 30_000, 90_000]), st.booleans()
)


class JobLife(RuleBasedStateMachine):
    job: Job
    model: ModelJob

    def __init__(self) -> None:
        super().__init__()
        self.now = T0
        self.ops = count(1)
        self.armed: set[str] = set()
        self.timers: dict[str, Timer] = {}
        self.rings_at: int | None = None
        """When the record rings next, if it is its job's timer."""

    # Bookkeeping

    def moment(self) -> Moment:
        return Moment(self.now, f"op{next(self.ops)}")

    def store(self, transition: Transition, moment: Moment) -> None:
        """Apply a commit as the store would, timers first."""
        before = getattr(self, "job", None)
        armed: Timer | None = None
        for effect in transition.effects:
            match effect:
                case Timer(op=op):
                    assert op == moment.op
                    assert op not in self.armed, "an op is armed once"
                    armed = self.timers[op] = effect
                    self.armed.add(op)
                case CancelTimer(op=op):
                    assert before is not None
                    assert before.timer is not None
                    assert before.timer.op == op
                    self.timers.pop(op, None)
                case _:
                    pass
        new = transition.job
        self.rings_at = None
        if new.timer is None:
            assert armed is None
        elif new.timer.every_s is not None:
            assert (armed, new.timer.op) == (None, moment.op)
            self.rings_at = self.now + new.timer.every_s * 1_000
            assert new.timer.at - self.now >= 10_000
            assert self.rings_at >= min(new.timer.at, self.now + 60_000)
        else:
            assert new.timer == (armed or (before and before.timer))
        fresh_token = new.token is not None and new.token != (before.token if before else None)
        assert (Token() in transition.effects) == fresh_token
        assert new.token in (None, moment.op) or not fresh_token
        assert (transition.ttl_s is not None) == (new.terminal or new.deleted)
        if before is not None and new.generation == before.generation:
            assert new.attempt >= before.attempt
        self.job = new

    def both(self, decide: Callable[[], object], command: Callable[[Moment], Transition], *, really: bool = True) -> None:
        """Ask both, the model and the transitions: they do the same, or refuse it alike. What isn't meant `really` is left."""
        moment, before = self.moment(), deepcopy(self.model)
        try:
            decide()
        except Refusal as refusal:
            self.refused(refusal.code, command)
            return
        transition = command(moment)
        if really:
            self.store(transition, moment)
        else:
            self.model = before

    def refused(self, code: str, command: Callable[[Moment], object]) -> None:
        with pytest.raises(OjsError) as refusal:
            command(self.moment())
        assert refusal.value.code == code

    def in_state(self, *states: str) -> bool:
        return not self.model.deleted and self.model.state in states

    # Rules

    @initialize(model=DRAFTS)
    def pushed(self, model: ModelJob) -> None:
        draft = Job(
            id="job-1",
            type="test.job",
            args=Raw(b"[]"),
            state=State(model.state),
            scheduled_at=model.times.get("scheduled_at"),
            expires_at=model.times.get("expires_at"),
            enqueue_ttl_ms=model.enqueue_ttl_ms,
            total_timeout_ms=model.total_timeout_ms,
            timeout_ms=model.timeout_ms,
            grace_period_ms=model.grace_period_ms,
            heartbeat_timeout_ms=model.heartbeat_timeout_ms,
            visibility_timeout_ms=model.visibility_timeout_ms,
            retry=Retry(
                max_attempts=model.max_attempts,
                jitter=False,
                non_retryable_errors=("listed.*",),
                on_exhaustion="dead_letter" if model.on_exhaustion == "dead_letter" else "discard",
            ),
            **stored(SENT),
        )
        if model.state == "available" and "scheduled_at" in model.times:
            model.state = "scheduled"
        self.model = model
        self.both(lambda: model.begin(self.now), lambda moment: push(draft, moment))

    @rule(ms=st.sampled_from([1, 400, 1_000, 2_000, 5_000, 31_000, HALF_HOUR_MS]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule(offset=st.sampled_from([-1, 0, 1]))
    def time_comes_to_the_next_timer(self, offset: int) -> None:
        for at in [timer.at for timer in self.timers.values()] or [self.rings_at or self.now]:
            self.now = max(self.now, at + offset)

    @precondition(lambda self: self.in_state("pending"))
    @rule()
    def activated(self) -> None:
        self.both(lambda: self.model.activate(self.now), lambda moment: activate(self.job, moment))

    @precondition(lambda self: self.in_state("available"))
    @rule(worker=WORKERS, lease=LEASES)
    def claimed(self, worker: str | None, lease: int | None) -> None:
        self.both(lambda: self.model.claim(worker, lease, self.now), lambda moment: claim(self.job, worker, lease, moment))

    def holder(self, worker: str | None, attempt_offset: int | None) -> JobHolder:
        return JobHolder(worker, None if attempt_offset is None else self.model.attempt + attempt_offset)

    @precondition(lambda self: self.in_state("active"))
    @rule(worker=WORKERS, offset=st.sampled_from([None, 0, -1]))
    def acked(self, worker: str | None, offset: int | None) -> None:
        holder = self.holder(worker, offset)
        self.both(
            lambda: self.model.ack(worker, holder.attempt, 1, self.now),
            lambda moment: ack(self.job, Raw(b"1"), holder, moment),
        )

    @precondition(lambda self: self.in_state("active"))
    @rule(
        worker=WORKERS,
        offset=st.sampled_from([None, None, 0, -1]),
        kind=st.sampled_from(["plain", "plain", "requeue", "final", "RETRY", "DISCARD", "FAIL", "DEAD_LETTER", FINAL]),
        after=st.sampled_from([None, None, 700, 90_000]),
    )
    def nacked(self, worker: str | None, offset: int | None, kind: str, after: int | None) -> None:
        holder = self.holder(worker, offset)
        action = kind if kind.isupper() else None
        retryable, requeue = kind not in ("final", "RETRY"), kind == "requeue"
        code = action or "x_code"
        failure = Failure(message="no", type=kind, code=code, retryable=retryable, requeue=requeue, delay_ms=after)
        ways: dict[str, Any] = {"action": action, "retryable": retryable, "requeue": requeue, "delay_ms": after}
        self.both(
            lambda: self.model.nack(worker, holder.attempt, kind, self.now, **ways),
            lambda moment: nack(self.job, failure, holder, moment),
        )

    @precondition(lambda self: self.in_state("active"))
    @rule(worker=WORKERS, lease=LEASES)
    def heartbeat(self, worker: str | None, lease: int | None) -> None:
        m, moment = self.model, self.moment()
        try:
            needed = m.extend(worker, lease, self.now)
        except Refusal as refusal:
            self.refused(refusal.code, lambda moment: extend(self.job, worker, lease, moment))
            return
        transition = extend(self.job, worker, lease, moment)
        assert (transition is not None) == needed
        if transition is not None:
            assert transition.job.timer is not None
            assert transition.job.timer.op == moment.op, "the store knows its write by the timer"
            self.store(transition, moment)

    @precondition(lambda self: not self.model.deleted and self.model.state not in ENDED)
    @rule(really=st.sampled_from([False, False, True]))
    def cancelled(self, *, really: bool) -> None:
        self.both(lambda: self.model.cancel(self.now), lambda moment: cancel(self.job, moment), really=really)

    @precondition(lambda self: self.in_state("discarded"))
    @rule(queue=st.sampled_from([None, "other"]))
    def retried(self, queue: str | None) -> None:
        override = RetryOverride(queue=queue)
        self.both(lambda: self.model.retry(self.now), lambda moment: retry_discarded(self.job, override, moment))

    @precondition(lambda self: self.in_state("discarded"))
    @rule(really=st.sampled_from([False, False, True]))
    def deleted(self, *, really: bool) -> None:
        self.both(self.model.delete, lambda moment: delete(self.job, moment), really=really)

    @precondition(lambda self: self.in_state("available"))
    @rule()
    def reissued(self) -> None:
        moment = self.moment()
        self.model.entries += 1
        self.store(reissue(self.job, moment), moment)

    @rule()
    def fetched_too_late(self) -> None:
        reason = None if self.model.deleted else self.model.outlived(self.now)
        assert expired(self.job, self.now) == reason
        if reason is None:
            self.refused("conflict", lambda moment: expire(self.job, moment))
            return
        self.both(lambda: self.model.outlive(reason, self.now), lambda moment: expire(self.job, moment))

    @precondition(lambda self: any(timer.at <= self.now for timer in self.timers.values()))
    @rule(liveness=LIVENESS)
    def a_timer_fires(self, liveness: tuple[int | None, bool]) -> None:
        op = next(op for op, timer in self.timers.items() if timer.at <= self.now)
        del self.timers[op]
        decision = self.judged(liveness)
        if isinstance(decision, Rearm):
            assert decision.timer.op == op
            self.timers[op] = decision.timer

    @precondition(lambda self: self.rings_at is not None and self.rings_at <= self.now)
    @rule(liveness=LIVENESS)
    def the_record_rings(self, liveness: tuple[int | None, bool]) -> None:
        timer = self.job.timer
        assert timer is not None
        assert timer.every_s is not None
        rings_again = self.rings_at = self.now + timer.every_s * 1_000
        decision = self.judged(liveness)
        if isinstance(decision, Rearm):
            assert decision.timer.op == timer.op
            assert decision.timer.at <= rings_again
            self.timers.setdefault(timer.op, decision.timer)

    @rule(liveness=LIVENESS)
    def a_stale_hint_arrives(self, liveness: tuple[int | None, bool]) -> None:
        decision = self.judged(liveness)
        if isinstance(decision, Rearm):
            self.timers.setdefault(decision.timer.op, decision.timer)

    def judged(self, worker: tuple[int | None, bool]) -> Transition | Rearm | None:
        """Let `due` decide and check that it does what the model expects."""
        moment, m = self.moment(), self.model
        seen_at = None if worker[0] is None else self.now - worker[0]
        asks = m.asks(self.now)
        assert needs_liveness(self.job, self.now) == (m.worker if asks else None)
        if asks:
            with pytest.raises(LivenessNeededError):
                due(self.job, moment)
        decision = due(self.job, moment, Liveness(seen_at, worker[1]) if asks else None)
        written = m.entries
        again = m.due(self.now, seen_at, covered=worker[1])
        if m.entries > written:
            assert isinstance(decision, Transition)
            self.store(decision, moment)
        elif again is None:
            assert decision is None
        elif decision is None:  # the record rings before that
            assert self.job.timer is not None
            assert self.job.timer.every_s is not None
            assert self.rings_at is not None
            assert self.rings_at < again + 2_000
        else:
            assert again > self.now
            assert isinstance(decision, Rearm)
            assert decision.timer.at == again
        return decision

    @rule()
    def whatever_the_state_forbids_is_refused(self) -> None:
        m, now = self.model, self.now
        anyone, override = JobHolder(), RetryOverride()
        asked: dict[str, tuple[Callable[[], object], Callable[[Moment], Transition]]] = {
            "pending": (lambda: m.activate(now), lambda moment: activate(self.job, moment)),
            "available": (lambda: m.claim("w1", None, now), lambda moment: claim(self.job, "w1", None, moment)),
            "active": (lambda: m.ack(None, None, 1, now), lambda moment: ack(self.job, Raw(b"1"), anyone, moment)),
            "discarded": (lambda: m.retry(now), lambda moment: retry_discarded(self.job, override, moment)),
        }
        for state, both in asked.items():
            if not self.in_state(state):
                self.both(*both)
        if not self.in_state("active"):
            failure = Failure(message="no")
            self.both(lambda: m.nack(None, None, "x", now), lambda moment: nack(self.job, failure, anyone, moment))
        if m.deleted or m.state in ENDED:
            self.both(lambda: m.cancel(now), lambda moment: cancel(self.job, moment))
        if not self.in_state("available"):
            self.refused("not_found" if m.deleted else "conflict", lambda moment: reissue(self.job, moment))

    # Invariants

    @invariant()
    def the_record_agrees_with_the_model(self) -> None:
        job, m = self.job, self.model
        assert job.deleted == m.deleted
        if job.deleted:
            return
        assert job.state == m.state
        assert (job.attempt, job.uncharged, job.generation) == (m.attempt, m.uncharged, m.generation)
        assert job.dead_letter == m.dead
        assert (job.error.type if job.error else None) == m.error
        assert [(error.type, error.attempt, error.generation) for error in job.errors] == m.errors[-25:]
        assert job.worker == m.worker
        assert {name: getattr(job, name) for name in PLAIN} == stored(SENT)
        kept = {name: getattr(job, name) for name in (*TIMES, *LEASE)}
        assert {name: at for name, at in kept.items() if at is not None} == m.times

    @invariant()
    def one_timer_lives_while_there_is_a_deadline(self) -> None:
        limits = self.model.limits()
        if not limits:
            assert self.timers == {}
            assert self.job.timer is None
            assert self.rings_at is None
            return
        assert self.job.timer is not None
        if self.rings_at is not None:
            assert self.timers.keys() <= {self.job.timer.op}
            return
        (timer,) = self.timers.values()
        assert timer.at <= limits[0][0]
        assert self.job.timer.op == timer.op
        if self.model.check_at() is None:
            assert timer.at == limits[0][0]
            service = "scheduler" if limits[0][1] == "go" else "reaper"
            assert timer.service == service or len(limits) > 1

    @invariant()
    def only_an_available_job_has_a_token(self) -> None:
        assert (self.job.token is not None) == (self.job.state is State.AVAILABLE)

    @invariant()
    def the_log_is_numbered_without_gaps(self) -> None:
        entries = self.job.transitions
        assert [entry.n for entry in entries] == list(range(max(1, self.model.entries - 63), self.model.entries + 1))
        for earlier, later in pairwise(entries):
            assert earlier.after == later.before
        assert entries[-1].after == (None if self.job.deleted else self.job.state)

    @invariant()
    def the_record_survives_its_json(self) -> None:
        encoded = msgspec.json.encode(self.job)
        assert msgspec.json.encode(msgspec.json.decode(encoded, type=Job)) == encoded


TestJobLife = pytest.mark.timeout(600)(JobLife.TestCase)
TestJobLife.settings = settings(
    max_examples=examples(1_600, costly=True), stateful_step_count=20, deadline=None, print_blob=True
)
