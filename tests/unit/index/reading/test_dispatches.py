from __future__ import annotations

from typing import Any

from ojs_engine.domain.job import Entry, Job, State
from ojs_index.asking.messages import Dispatches, DispatchesAsk
from ojs_index.reading.dispatches import dispatches
from ojs_index.reading.lists import levels
from ojs_index.sqlite.model import Model
from unit.index.samples import NOW, epoch, fresh, gone, job, seen

READY, RUNS = State.AVAILABLE, State.ACTIVE


def lived(*steps: tuple[str, State, int], **members: Any) -> Job:
    """A job with these (event, state after it, ms after NOW) in its log, and the times that follow from them."""
    log = []
    before: State | None = None
    for n, (event, after, at) in enumerate(steps, 1):
        log.append(Entry(n=n, op=f"op{n}", event=event, at=NOW + at, before=before, after=after))
        before = after
    assert before is not None
    available = [at for event, after, at in steps if after is READY]
    started = [at for event, _, at in steps if event == "claimed"]
    return job(
        state=before,
        transitions=tuple(log),
        attempt=len(started),
        enqueued_at=NOW + available[-1],
        started_at=NOW + started[-1] if started and before is not READY else None,
        **members,
    )


PUSHED = ("pushed", READY, 0)
CLAIMED = ("claimed", RUNS, 1_500)
REQUEUED = ("requeued", READY, 2_000)
AGAIN = ("claimed", RUNS, 2_600)


def asked(model: Model, at: int = 10_000, **ask: Any) -> Dispatches:
    return dispatches(model, DispatchesAsk(**ask), NOW + at)


def test_every_start_counts_once_with_its_wait_however_many_revisions_are_seen() -> None:
    every, last = fresh(), fresh()
    lives = [lived(PUSHED), lived(PUSHED, CLAIMED), lived(PUSHED, CLAIMED, REQUEUED), lived(PUSHED, CLAIMED, REQUEUED, AGAIN)]
    for sequence, one in enumerate(lives, 1):
        every.apply([seen(sequence, one)])
    last.apply([seen(4, lives[-1])])
    last.apply([seen(4, lives[-1])])
    for model in (every, last):
        [queue] = asked(model).queues
        assert (queue.number, queue.wait_ms, queue.active, queue.available) == (2, 2_100, 1, 0)
        assert queue.last_at == NOW + 2_000


def test_only_the_last_minute_counts_but_the_last_start_is_known() -> None:
    model = fresh()
    model.apply([seen(1, lived(PUSHED, CLAIMED)), seen(2, lived(PUSHED, id="b", queue="other"))])
    assert [queue.number for queue in asked(model, at=61_000 - 1).queues] == [1, 0]
    model.forget(NOW + 3_600_000)
    late = asked(model, at=61_000)
    assert [(queue.name, queue.number, queue.last_at) for queue in late.queues] == [
        ("default", 0, NOW + 1_000),
        ("other", 0, None),
    ]
    assert late.total == 0


def test_a_queue_is_listed_for_what_it_has_gave_or_is_asked_about() -> None:
    model = fresh()
    assert asked(model).queues == []
    model.apply([seen(1, lived(PUSHED, CLAIMED, ("completed", State.COMPLETED, 1_600)))])
    found = asked(model, also=("never",))
    assert [(queue.name, queue.number) for queue in found.queues] == [("default", 1), ("never", 0)]
    assert asked(model, at=120_000).queues == []


def test_the_oldest_of_all_priorities_is_the_one_that_waits() -> None:
    model = fresh()
    model.apply([seen(n, job(f"j{n}", priority=n, enqueued_at=NOW + at)) for n, at in enumerate((300, 100, 200), 1)])
    [queue] = asked(model).queues
    assert (queue.available, queue.oldest_at) == (3, NOW + 100)


def test_a_job_that_does_not_say_since_when_it_waits_hides_no_other() -> None:
    model = fresh()
    model.apply(
        [
            seen(1, job("a", enqueued_at=None)),
            seen(2, job("b", enqueued_at=NOW + 5)),
            seen(3, job("c", queue="z", enqueued_at=None)),
        ]
    )
    assert [(queue.name, queue.available, queue.oldest_at) for queue in asked(model).queues] == [
        ("default", 2, NOW + 5),
        ("z", 1, None),
    ]


def test_available_jobs_are_counted_by_their_present_priority() -> None:
    model = fresh()
    model.apply([seen(n, job(f"j{n}", priority=priority)) for n, priority in enumerate((0, 0, 0, -3), 1)])
    model.apply([seen(5, job("j1", priority=7)), seen(6, job("j2", State.ACTIVE))])
    assert list(levels(model, "default").counts.items()) == [(7, 1), (0, 1), (-3, 1)]
    model.apply([seen(7, job("j3", queue="other")), gone(8, "j4")])
    assert levels(model, "default").counts == {7: 1}
    model.apply([epoch(7)])
    assert (levels(model, "default").counts, levels(model, "other").counts) == ({}, {0: 1})
