"""Random lives of one job, beside a model that knows the rules but none of the code.

`OJS_EXAMPLES` sets how many lives are tried (support/examples.py).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise
from typing import Any, Final

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from msgspec import Raw

from ojs_core.base.errors import OjsError
from ojs_core.domain.job import Job, Retry, State, Timer
from ojs_core.domain.transitions import (
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
from support.examples import examples

T0: Final = 1_800_000_000_000
HALF_HOUR: Final = 1_800_000
ENDED: Final = ("completed", "cancelled", "discarded")
RANK: Final = ("total_timeout", "timeout", "stalled", "visibility_timeout", "expired", "enqueue_ttl_expired", "go")

WORKERS = st.sampled_from(["w1", "w2", None])
LEASES = st.sampled_from([None, 2_000, 60_000, 7_200_000])
OPTIONS = st.fixed_dictionaries(
    {
        "pending": st.sampled_from([False, False, False, True]),
        "delay": st.sampled_from([None, None, 2_000]),
        "expires": st.sampled_from([None, None, None, 4_000, 40_000]),
        "enqueue_ttl": st.sampled_from([None, None, 3_000]),
        "total": st.sampled_from([None, None, None, 6_000, 60_000]),
        "timeout": st.sampled_from([None, None, 2_500]),
        "grace": st.sampled_from([None, 1_000]),
        "heartbeat": st.sampled_from([None, None, 4_000]),
        "lease": st.sampled_from([None, None, 3_000]),
        "max_attempts": st.integers(0, 3),
        "dead_letter": st.booleans(),
    }
)
LIVENESS = st.builds(
    lambda ago, covered: (ago, covered), st.sampled_from([None, 0, 5_000, 29_999, 30_000, 90_000]), st.booleans()
)


class Model:
    """The rules as a reader of the specification would write them down."""

    def __init__(self, options: dict[str, Any], now: int) -> None:
        self.options = options
        self.now = now
        self.state = "available"
        self.attempt = self.spent = self.generation = self.errors = self.entries = 0
        self.error: str | None = None
        self.worker: str | None = None
        self.life = now
        self.dead = self.deleted = False
        self.expires = None if options["expires"] is None else now + options["expires"]
        self.scheduled = None if options["delay"] is None else now + options["delay"]
        self.times: dict[str, int | None] = dict.fromkeys(
            ("enqueued", "started", "completed", "cancelled", "discarded", "next", "lease_end", "beat", "lease")
        )
        if options["pending"]:
            self.enter("pending")
        elif self.scheduled is not None:
            self.enter("scheduled")
        else:
            self.enter("available", enqueued=now)

    def enter(self, state: str, **times: int | None) -> None:
        self.state = state
        self.entries += 1
        self.times |= {"next": None, "lease_end": None, "beat": None, "lease": None} | times
        if state in ("available", "retryable"):
            self.worker = None

    def limits(self) -> list[tuple[int, str]]:
        o, t = self.options, self.times
        found: list[tuple[int | None, str]] = []
        if self.state in ENDED:
            return []
        if o["total"]:
            found.append((self.life + o["total"], "total_timeout"))
        if self.state == "active":
            started = t["started"]
            assert started is not None
            found.append((started + (o["timeout"] or HALF_HOUR) + (o["grace"] or 0), "timeout"))
            found.append((t["lease_end"], "visibility_timeout"))
            if o["heartbeat"] and t["beat"] is not None:
                found.append((t["beat"] + o["heartbeat"], "stalled"))
        else:
            found.append((self.expires, "expired"))
            if self.state == "available" and self.attempt == 0 and o["enqueue_ttl"] and t["enqueued"] is not None:
                found.append((t["enqueued"] + o["enqueue_ttl"], "enqueue_ttl_expired"))
            if self.state == "scheduled":
                found.append((self.scheduled, "go"))
            if self.state == "retryable":
                found.append((t["next"], "go"))
        return sorted(((at, name) for at, name in found if at is not None), key=lambda limit: (limit[0], RANK.index(limit[1])))

    def outlived(self) -> str | None:
        if self.state == "active":
            return None
        return next((name for at, name in self.limits() if at <= self.now and name != "go"), None)

    def check_at(self) -> int | None:
        beat = self.times["beat"]
        return None if self.state != "active" or self.worker is None or beat is None else beat + 30_000

    def fail(self, error: str, way: str, after: int | None = None) -> None:
        """End the run: `retry`, `now`, `final`, `drop` or `bury`."""
        self.error, self.errors = error, self.errors + 1
        if way in ("retry", "now") and self.spent >= max(1, self.options["max_attempts"]):
            way = "final"
        if way == "now":
            self.enter("available", enqueued=self.now)
        elif way == "retry":
            pause = 1_000 * 2 ** (self.spent - 1) if after is None else after
            self.enter("retryable", next=self.now + pause)
        else:
            self.enter("discarded", discarded=self.now, completed=self.now)
            self.dead = way == "bury" or (way == "final" and self.options["dead_letter"])

    def discard_waiting(self, error: str) -> None:
        self.error, self.errors = error, self.errors + 1
        self.enter("discarded", discarded=self.now, completed=None)


class JobLife(RuleBasedStateMachine):
    job: Job
    model: Model

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
        self.model.now = self.now
        return Moment(self.now, f"op{next(self.ops)}")

    def store(self, transition: Transition, moment: Moment) -> None:
        """Apply a commit as the store would, timers first."""
        before = getattr(self, "job", None)
        if transition.arm is not None:
            assert transition.arm.op == moment.op
            assert transition.arm.op not in self.armed, "an op is armed once"
            self.armed.add(transition.arm.op)
            self.timers[transition.arm.op] = transition.arm
        if transition.cancel is not None:
            assert before is not None
            assert before.timer is not None
            assert before.timer.op == transition.cancel
            self.timers.pop(transition.cancel, None)
        new = transition.job
        self.rings_at = None
        if new.timer is None:
            assert transition.arm is None
        elif new.timer.every_s is not None:
            assert (transition.arm, new.timer.op) == (None, moment.op)
            self.rings_at = self.now + new.timer.every_s * 1_000
            assert new.timer.at - self.now >= 10_000
            assert self.rings_at >= min(new.timer.at, self.now + 60_000)
        else:
            assert new.timer == (transition.arm or (before and before.timer))
        fresh_token = new.token is not None and new.token != (before.token if before else None)
        assert transition.token == fresh_token
        assert new.token in (None, moment.op) or not fresh_token
        assert (transition.ttl_s is not None) == (new.terminal or new.deleted)
        if before is not None and new.generation == before.generation:
            assert new.attempt >= before.attempt
        self.job = new

    def refused(self, code: str, command: Callable[[Moment], object]) -> None:
        with pytest.raises(OjsError) as refusal:
            command(self.moment())
        assert refusal.value.code == code

    def in_state(self, *states: str) -> bool:
        return not self.model.deleted and self.model.state in states

    # Rules

    @initialize(options=OPTIONS)
    def pushed(self, options: dict[str, Any]) -> None:
        self.model = Model(options, self.now)
        draft = Job(
            id="job-1",
            type="test.job",
            args=Raw(b"[]"),
            state=State.PENDING if options["pending"] else State.AVAILABLE,
            scheduled_at=self.model.scheduled,
            expires_at=self.model.expires,
            enqueue_ttl_ms=options["enqueue_ttl"],
            total_timeout_ms=options["total"],
            timeout_ms=options["timeout"],
            grace_period_ms=options["grace"],
            heartbeat_timeout_ms=options["heartbeat"],
            visibility_timeout_ms=options["lease"],
            retry=Retry(
                max_attempts=options["max_attempts"],
                jitter=False,
                non_retryable_errors=("listed.*",),
                on_exhaustion="dead_letter" if options["dead_letter"] else "discard",
            ),
        )
        moment = self.moment()
        self.store(push(draft, moment), moment)

    @rule(ms=st.sampled_from([1, 400, 1_000, 2_000, 5_000, 31_000, HALF_HOUR]))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule(offset=st.sampled_from([-1, 0, 1]))
    def time_comes_to_the_next_timer(self, offset: int) -> None:
        for at in [timer.at for timer in self.timers.values()] or [self.rings_at or self.now]:
            self.now = max(self.now, at + offset)

    @precondition(lambda self: self.in_state("pending"))
    @rule()
    def activated(self) -> None:
        moment = self.moment()
        self.model.enter("available", enqueued=self.now)
        self.store(activate(self.job, moment), moment)

    @precondition(lambda self: self.in_state("available"))
    @rule(worker=WORKERS, lease=LEASES)
    def claimed(self, worker: str | None, lease: int | None) -> None:
        moment, m = self.moment(), self.model
        if m.outlived():
            self.refused("conflict", lambda moment: claim(self.job, worker, lease, moment))
            return
        m.attempt, m.spent, m.worker = m.attempt + 1, m.spent + 1, worker
        length = lease or m.options["lease"] or HALF_HOUR
        beat = self.now if worker else None
        m.enter("active", started=self.now, lease=length, lease_end=self.now + length, beat=beat)
        self.store(claim(self.job, worker, lease, moment), moment)

    def holds(self, holder: JobHolder) -> bool:
        m = self.model
        named = holder.worker in (None, m.worker)
        if m.worker is None:  # a name that held it before has to say which attempt it means
            named = named or holder.attempt is not None or all(entry.worker != holder.worker for entry in self.job.transitions)
        return named and holder.attempt in (None, m.attempt)

    def holder(self, worker: str | None, attempt_offset: int | None) -> JobHolder:
        return JobHolder(worker, None if attempt_offset is None else self.model.attempt + attempt_offset)

    @precondition(lambda self: self.in_state("active"))
    @rule(worker=WORKERS, offset=st.sampled_from([None, 0, -1]))
    def acked(self, worker: str | None, offset: int | None) -> None:
        holder = self.holder(worker, offset)
        if not self.holds(holder):
            self.refused("conflict", lambda moment: ack(self.job, Raw(b"1"), holder, moment))
            return
        moment = self.moment()
        self.model.error = None
        self.model.enter("completed", completed=self.now)
        self.store(ack(self.job, Raw(b"1"), holder, moment), moment)

    @precondition(lambda self: self.in_state("active"))
    @rule(
        worker=WORKERS,
        offset=st.sampled_from([None, None, 0, -1]),
        kind=st.sampled_from(["plain", "plain", "requeue", "final", "RETRY", "DISCARD", "FAIL", "DEAD_LETTER", "listed.x"]),
        after=st.sampled_from([None, None, 700, 90_000]),
    )
    def nacked(self, worker: str | None, offset: int | None, kind: str, after: int | None) -> None:
        failure = Failure(
            message="no",
            type=kind,
            code=kind if kind.isupper() else "x_code",
            retryable=kind not in ("final", "RETRY"),
            requeue=kind == "requeue",
            delay_ms=after,
        )
        holder = self.holder(worker, offset)
        if not self.holds(holder):
            self.refused("conflict", lambda moment: nack(self.job, failure, holder, moment))
            return
        moment, m = self.moment(), self.model
        if kind == "requeue":
            m.spent -= 1
            if after is None:
                m.enter("available", enqueued=self.now, started=None)
            else:
                m.enter("retryable", next=self.now + after, started=None)
        else:
            ways = {"final": "final", "listed.x": "final", "DISCARD": "drop", "FAIL": "drop", "DEAD_LETTER": "bury"}
            m.fail(kind, ways.get(kind, "retry"), after)
        self.store(nack(self.job, failure, holder, moment), moment)

    @precondition(lambda self: self.in_state("active"))
    @rule(worker=WORKERS, lease=LEASES)
    def heartbeat(self, worker: str | None, lease: int | None) -> None:
        m, t = self.model, self.model.times
        if None not in (worker, m.worker) and worker != m.worker:
            self.refused("conflict", lambda moment: extend(self.job, worker, lease, moment))
            return
        moment = self.moment()
        assert t["lease"] is not None
        assert t["lease_end"] is not None
        length = lease or m.options["lease"] or t["lease"]
        silent = self.now - t["beat"] if t["beat"] is not None else 10**12
        needed = (
            length != t["lease"]
            or t["lease_end"] - self.now < length / 2
            or (m.options["heartbeat"] is not None and silent > m.options["heartbeat"] / 2)
        )
        transition = extend(self.job, worker, lease, moment)
        assert (transition is not None) == needed
        if transition is not None:
            assert transition.job.timer is not None
            assert transition.job.timer.op == moment.op, "the store knows its write by the timer"
            t |= {"lease": length, "lease_end": self.now + length, "beat": self.now}
            self.store(transition, moment)

    @precondition(lambda self: not self.model.deleted and self.model.state not in ENDED)
    @rule(really=st.sampled_from([False, False, True]))
    def cancelled(self, *, really: bool) -> None:
        moment = self.moment()
        transition = cancel(self.job, moment)
        if really:
            self.model.enter("cancelled", cancelled=self.now)
            self.store(transition, moment)

    @precondition(lambda self: self.in_state("discarded"))
    @rule(queue=st.sampled_from([None, "other"]))
    def retried(self, queue: str | None) -> None:
        moment, m = self.moment(), self.model
        m.attempt = m.spent = 0
        m.generation += 1
        m.error, m.dead, m.life = None, False, self.now
        if m.expires is not None and m.expires <= self.now:
            m.expires = None
        m.enter("available", enqueued=self.now, started=None, completed=None, discarded=None)
        self.store(retry_discarded(self.job, RetryOverride(queue=queue), moment), moment)

    @precondition(lambda self: self.in_state("discarded"))
    @rule(really=st.sampled_from([False, False, True]))
    def deleted(self, *, really: bool) -> None:
        if not self.model.dead:
            self.refused("not_found", lambda moment: delete(self.job, moment))
        elif really:
            moment = self.moment()
            self.model.deleted, self.model.entries = True, self.model.entries + 1
            self.store(delete(self.job, moment), moment)

    @precondition(lambda self: self.in_state("available"))
    @rule()
    def reissued(self) -> None:
        moment = self.moment()
        self.model.entries += 1
        self.store(reissue(self.job, moment), moment)

    @rule()
    def fetched_too_late(self) -> None:
        self.model.now = self.now
        reason = None if self.model.deleted else self.model.outlived()
        assert expired(self.job, self.now) == reason
        if reason is None:
            self.refused("conflict", lambda moment: expire(self.job, moment))
            return
        moment = self.moment()
        self.model.discard_waiting(reason)
        self.store(expire(self.job, moment), moment)

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
        real = m.limits()
        check = m.check_at()
        asks = bool(real) and check is not None and check <= self.now < real[0][0]
        assert needs_liveness(self.job, self.now) == (m.worker if asks else None)
        if asks:
            with pytest.raises(LivenessNeededError):
                due(self.job, moment)
        decision = due(self.job, moment, Liveness(seen_at, worker[1]) if asks else None)
        again: int | None = None
        if not real:
            assert decision is None
        elif m.state == "active" and real[0][0] <= self.now:
            name = real[0][1]
            m.fail(name, {"total_timeout": "drop", "visibility_timeout": "now"}.get(name, "retry"))
        elif asks:
            if seen_at is None:
                again = real[0][0]
            elif seen_at + 30_000 > self.now:
                again = min(real[0][0], seen_at + 30_000)
            elif worker[1]:
                m.fail("worker_death", "now")
            else:
                again = min(real[0][0], self.now + 5_000)
        elif (reason := m.outlived()) is not None:
            m.discard_waiting(reason)
        elif m.state != "active" and real[0][0] <= self.now:
            m.enter("available", enqueued=self.now)
        else:
            again = min(real[0][0], check or real[0][0])
        if again is not None:
            assert again > self.now
            if decision is None:  # the record rings before that
                assert self.job.timer is not None
                assert self.job.timer.every_s is not None
                assert self.rings_at is not None
                assert self.rings_at < again + 2_000
            else:
                assert isinstance(decision, Rearm)
                assert decision.timer.at == again
        elif decision is not None:
            assert isinstance(decision, Transition)
            self.store(decision, moment)
        return decision

    @rule()
    def whatever_the_state_forbids_is_refused(self) -> None:
        m, job, anyone = self.model, self.job, JobHolder()
        commands: dict[str, Callable[[Moment], object]] = {
            "pending": lambda moment: activate(job, moment),
            "available": lambda moment: (reissue if m.attempt % 2 else _claim)(job, moment),
            "active": lambda moment: (_ack if m.attempt % 2 else _nack)(job, anyone, moment),
            "discarded": lambda moment: retry_discarded(job, RetryOverride(), moment),
        }
        for state, command in commands.items():
            if m.deleted or m.state != state:
                self.refused("not_found" if m.deleted else "conflict", command)
        if m.deleted or m.state in ENDED:
            self.refused("not_found" if m.deleted else "conflict", lambda moment: cancel(job, moment))

    # Invariants

    @invariant()
    def the_record_agrees_with_the_model(self) -> None:
        job, m = self.job, self.model
        assert job.state == m.state
        assert job.deleted == m.deleted
        if job.deleted:
            return
        assert (job.attempt, job.attempt - job.uncharged, job.generation) == (m.attempt, m.spent, m.generation)
        assert (job.dead_letter, job.expires_at) == (m.dead, m.expires)
        assert (job.error.type if job.error else None) == m.error
        assert len(job.errors) == min(25, m.errors)
        assert job.worker == (m.worker if m.state in ("active", "completed", "cancelled", "discarded") else None)
        assert {
            "enqueued": job.enqueued_at,
            "started": job.started_at,
            "completed": job.completed_at,
            "cancelled": job.cancelled_at,
            "discarded": job.discarded_at,
            "next": job.next_attempt_at,
            "lease_end": job.visible_until,
            "beat": job.beat_at,
            "lease": job.lease_ms,
        } == m.times

    @invariant()
    def one_timer_lives_while_there_is_a_deadline(self) -> None:
        limits = [] if self.model.deleted else self.model.limits()
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


def _claim(job: Job, moment: Moment) -> Transition:
    return claim(job, "w1", None, moment)


def _ack(job: Job, holder: JobHolder, moment: Moment) -> Transition:
    return ack(job, Raw(b"1"), holder, moment)


def _nack(job: Job, holder: JobHolder, moment: Moment) -> Transition:
    return nack(job, Failure(message="no"), holder, moment)


TestJobLife = pytest.mark.timeout(600)(JobLife.TestCase)
TestJobLife.settings = settings(max_examples=examples(1_600), stateful_step_count=20, deadline=None, print_blob=True)
