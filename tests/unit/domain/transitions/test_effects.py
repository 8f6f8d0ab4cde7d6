"""What each transition brings about beside its record: from the job before, to the effects in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.base.errors import OjsError
from ojs_engine.domain import transitions
from ojs_engine.domain.job import NOTHING, Job, Membership, State, Timer
from ojs_engine.domain.transitions import Failure, Moment, RetryOverride, Transition
from ojs_engine.domain.transitions.effects import Apart, CancelTimer, Drop, Effect, Note, StaleToken, Token
from ojs_engine.domain.transitions.finish import INLINE_BYTES
from ojs_engine.domain.transitions.push import push_discarded
from support.tables import each
from unit.domain.transitions.samples import (
    ANYONE,
    SECOND,
    T0,
    active,
    available,
    completed,
    dead_letter,
    discarded,
    draft,
    pending,
    retryable,
    scheduled,
)

NOW: Final = Moment(T0 + SECOND, "now")
LARGE: Final = Raw(b"1" * (INLINE_BYTES + 1))
WEEK_S: Final = 7 * 86_400
LATER: Final[dict[str, Any]] = {"expires_at": T0 + 9 * SECOND}
UNIQUE: Final[dict[str, Any]] = {"unique_key": "k", "unique": Raw(b'{"keys":["type"]}')}
OPENS: Final[dict[str, Any]] = {"workflow": Membership(id="wf", node=1, kind="chain", step="s", index=0, size=2, opens=True)}
FOLLOWS: Final[dict[str, Any]] = {"workflow": Membership(id="wf", node=1, kind="chain", step="s", index=1, size=2)}
STARTED: Final = Note("workflow", "wf", "1 0 started")
ENDED: Final = Note("workflow", "wf", "1 0 ended")
GIVEN_BACK: Final = Failure(message="", requeue=True)
FAILED: Final = Failure(message="no")

Command = Callable[[Job], Transition | transitions.Rearm | None]
Expected = Callable[[Job], tuple[Effect, ...]]


def ack(job: Job, result: Raw = NOTHING) -> Transition:
    return transitions.ack(job, result, ANYONE, NOW)


def nack(failure: Failure) -> Command:
    return lambda job: transitions.nack(job, failure, ANYONE, NOW)


def claim(job: Job, lease_ms: int | None = None) -> Transition:
    return transitions.claim(job, "w1", lease_ms, NOW)


def of(command: Callable[[Job, Moment], Transition]) -> Command:
    return lambda job: command(job, NOW)


def running(**members: Any) -> Job:
    """A job whose claim holds two permits."""
    return replace(active(**members), permits=("queue.a", "key.b"))


def noted(job: Job) -> Job:
    return replace(job, checkpoint=True)


def timer(at: int, service: Any = "reaper") -> Timer:
    return Timer("now", at, service)


def gone(job: Job) -> CancelTimer:
    assert job.timer is not None
    return CancelTimer(job.timer.op)


def permits(job: Job) -> tuple[Note, ...]:
    claimed = job.transitions[-1].op
    return Note("limit", "queue.a", claimed), Note("limit", "key.b", claimed)


def again(job: Job) -> Transition:
    return claim(transitions.nack(claim(job).job, GIVEN_BACK, ANYONE, NOW).job)


def push(job: Job) -> Transition:
    return transitions.push(job, Moment(T0, "now"))


NEVER_PUSHED: Final = OjsError("queue_full", "the queue is full")

ROWS: Final[dict[str, tuple[Job, Command, Expected]]] = {
    "push": (draft(), push, lambda _: (Token(),)),
    "push, unique": (draft(**UNIQUE), push, lambda _: (Token(),)),
    "push, later": (draft(scheduled_at=T0 + SECOND), push, lambda _: (timer(T0 + SECOND, "scheduler"),)),
    "push, pending": (draft(state=State.PENDING, scheduled_at=T0 + SECOND), push, lambda _: ()),
    "push, with a limit": (draft(enqueue_ttl_ms=SECOND), push, lambda _: (timer(T0 + SECOND), Token())),
    "push, refused": (draft(**FOLLOWS), lambda job: push_discarded(job, NEVER_PUSHED, NOW), lambda _: (ENDED,)),
    "activate": (pending(), of(transitions.activate), lambda _: (Token(),)),
    "activate, its timer stays": (pending(**LATER), of(transitions.activate), lambda _: (Token(),)),
    "activate, its timer is another service's": (
        replace(pending(**LATER), timer=Timer("old", T0 + 9 * SECOND, "scheduler")),
        of(transitions.activate),
        lambda _: (timer(T0 + 9 * SECOND), CancelTimer("old"), Token()),
    ),
    "due": (scheduled(scheduled_at=T0 + SECOND), lambda job: transitions.due(job, NOW), lambda job: (gone(job), Token())),
    "run now": (scheduled(), of(transitions.run_now), lambda job: (gone(job), Token())),
    "retry now": (retryable(), of(transitions.retry_now), lambda job: (gone(job), Token())),
    "expire": (pending(expires_at=T0 + 1), of(transitions.expire), lambda job: (gone(job),)),
    "claim": (available(), claim, lambda _: ()),
    "claim, the deadline is near": (available(), lambda job: claim(job, 8 * SECOND), lambda _: (timer(T0 + 9 * SECOND),)),
    "claim, its timer ends": (available(enqueue_ttl_ms=2 * SECOND), claim, lambda job: (gone(job),)),
    "claim, it opens a workflow": (available(**OPENS), claim, lambda _: (STARTED,)),
    "claim, a workflow is under way": (available(**FOLLOWS), claim, lambda _: ()),
    "claim, the second attempt": (available(**OPENS), again, lambda _: ()),
    "extend, ahead of the ring": (
        active(lease_ms=2 * SECOND),
        lambda job: transitions.extend(job, "w1", 60 * SECOND, NOW),
        lambda job: (gone(job),),
    ),
    "extend, permits stay": (
        running(lease_ms=60 * SECOND),
        lambda job: transitions.extend(job, "w1", 30 * SECOND, NOW),
        lambda _: (),
    ),
    "ack": (active(), ack, lambda _: ()),
    "ack, near its deadline": (active(lease_ms=6 * SECOND), ack, lambda job: (gone(job),)),
    "ack, a step": (active(**FOLLOWS), ack, lambda _: (ENDED,)),
    "ack, with permits": (running(), ack, permits),
    "ack, unique": (active(**UNIQUE), ack, lambda _: (Drop("lock"),)),
    "ack, unique, kept for ever": (active(**UNIQUE, result_ttl_s=-1), ack, lambda _: ()),
    "ack, with a checkpoint": (noted(active()), ack, lambda _: (Drop("checkpoint"),)),
    "ack, with a large result": (active(), lambda job: ack(job, LARGE), lambda _: (Apart("now", LARGE, WEEK_S),)),
    "ack, with all of it": (
        noted(running(**FOLLOWS, **UNIQUE, lease_ms=6 * SECOND)),
        lambda job: ack(job, LARGE),
        lambda job: (
            Apart("now", LARGE, WEEK_S),
            gone(job),
            ENDED,
            *permits(job),
            Drop("lock"),
            Drop("checkpoint"),
        ),
    ),
    "fail": (active(), nack(FAILED), lambda _: (timer(T0 + 2 * SECOND, "scheduler"),)),
    "fail, with all of it": (
        noted(running(**FOLLOWS, **UNIQUE, lease_ms=6 * SECOND)),
        nack(FAILED),
        lambda job: (timer(T0 + 2 * SECOND, "scheduler"), gone(job), *permits(job)),
    ),
    "fail, a dead letter keeps its checkpoint": (
        noted(active(**UNIQUE)),
        nack(Failure(message="no", action="DEAD_LETTER")),
        lambda _: (Drop("lock"),),
    ),
    "give back": (running(), nack(GIVEN_BACK), lambda job: (*permits(job), Token())),
    "the lease runs out": (
        active(lease_ms=SECOND),
        lambda job: transitions.due(job, NOW),
        lambda job: (gone(job), Token()),
    ),
    "cancel": (available(), of(transitions.cancel), lambda job: (StaleToken(job),)),
    "cancel, with a limit": (available(**LATER), of(transitions.cancel), lambda job: (gone(job), StaleToken(job))),
    "cancel, a run": (running(**FOLLOWS), of(transitions.cancel), lambda job: (ENDED, *permits(job))),
    "cancel, with a checkpoint": (
        noted(available()),
        of(transitions.cancel),
        lambda job: (StaleToken(job), Drop("checkpoint")),
    ),
    "reissue": (available(**LATER), of(transitions.reissue), lambda job: (StaleToken(job), Token())),
    "reissue, its time has come": (
        available(expires_at=T0 + SECOND),
        of(transitions.reissue),
        lambda job: (timer(T0 + SECOND), gone(job), StaleToken(job), Token()),
    ),
    "reprioritise": (
        available(),
        lambda job: transitions.reprioritise(job, 7, NOW),
        lambda job: (StaleToken(job), Token()),
    ),
    "reprioritise, scheduled": (scheduled(), lambda job: transitions.reprioritise(job, 7, NOW), lambda _: ()),
    "move": (available(), lambda job: transitions.move(job, "post", NOW), lambda job: (StaleToken(job), Token())),
    "move, scheduled": (scheduled(), lambda job: transitions.move(job, "post", NOW), lambda _: ()),
    "drop": (available(), lambda job: transitions.drop(job, "queue_deleted", NOW), lambda job: (StaleToken(job),)),
    "drop, scheduled": (scheduled(), lambda job: transitions.drop(job, "overflow", NOW), lambda job: (gone(job),)),
    "postpone": (
        available(),
        lambda job: transitions.postpone(job, T0 + 9 * SECOND, NOW),
        lambda job: (timer(T0 + 9 * SECOND, "scheduler"), StaleToken(job)),
    ),
    "retry": (
        discarded(total_timeout_ms=2 * SECOND),
        lambda job: transitions.retry_discarded(job, RetryOverride(), NOW),
        lambda _: (timer(T0 + 3 * SECOND), Token()),
    ),
    "delete": (dead_letter(), of(transitions.delete), lambda _: ()),
    "delete, with all of it": (
        noted(dead_letter(**UNIQUE, **FOLLOWS)),
        of(transitions.delete),
        lambda _: (ENDED, Drop("lock"), Drop("checkpoint")),
    ),
    "remove": (completed(), of(transitions.remove), lambda _: ()),
    "remove, with a large result": (
        ack(active(), LARGE).job,
        of(transitions.remove),
        lambda _: (Drop("result", "now"),),
    ),
}


@each("name", ROWS)
def test_a_transition_brings_about(name: str) -> None:
    before, command, expected = ROWS[name]
    transition = command(before)
    assert isinstance(transition, Transition)
    assert transition.effects == expected(before)


@each("name", ROWS)
def test_the_record_says_what_its_effects_do(name: str) -> None:
    """A process that dies in between leaves messages, which are judged by the record."""
    before, command, _ = ROWS[name]
    transition = command(before)
    assert isinstance(transition, Transition)
    job, effects = transition.job, transition.effects
    armed = [effect for effect in effects if isinstance(effect, Timer)]
    assert armed in ([], [job.timer])
    assert (Token() in effects) == (job.token == "now")
    assert not job.checkpoint or Drop("checkpoint") not in effects
    assert all(job.result_blob is None for effect in effects if effect == Drop("result", "now"))
    assert all(job.permits == () for effect in effects if isinstance(effect, Note) and effect.topic == "limit")
