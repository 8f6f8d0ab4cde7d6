from __future__ import annotations

import pytest
from msgspec.structs import replace

from ojs_engine.domain.job import JobError, State
from ojs_index.asking.messages import MAX_ANSWER_BYTES, MAX_PAGE, DeadLettersAsk, JobPage, JobsAsk, QueuesAsk
from ojs_index.reading import jobs, lists
from ojs_index.sqlite.model import Model
from support.tables import each
from unit.index.reading.test_dispatches import PUSHED, lived
from unit.index.samples import NOW, fresh, job, seen


def filled(number: int) -> Model:
    """Jobs over three queues, two types and two states, in that order of age; every third created in the same moment."""
    model = fresh()
    batch = [
        seen(
            n,
            job(
                f"job-{n:03}",
                (State.AVAILABLE, State.ACTIVE)[n % 2],
                queue=f"q{n % 3}",
                type="ab"[n % 2 == 0],
                created_at=NOW + n // 3,
            ),
        )
        for n in range(1, number + 1)
    ]
    model.apply(batch)
    return model


def walk(model: Model, ask: JobsAsk) -> tuple[list[str], list[JobPage]]:
    """All pages by their cursors."""
    pages = [jobs.jobs(model, ask)]
    while pages[-1].next_cursor is not None:
        pages.append(jobs.jobs(model, replace(ask, cursor=pages[-1].next_cursor)))
    return [row.id for page in pages for row in page.jobs], pages


@each("limit", [1, 7, 50])
@each(
    "wanted",
    [
        JobsAsk(),
        JobsAsk(queue="q1"),
        JobsAsk(state=State.ACTIVE),
        JobsAsk(type="a"),
        JobsAsk(queue="q2", state=State.AVAILABLE, type="b"),
    ],
    ids=["all", "queue", "state", "type", "all three"],
)
def test_cursors_show_every_job_once_the_newest_first(wanted: JobsAsk, limit: int) -> None:
    model = filled(100)
    shown, pages = walk(model, replace(wanted, limit=limit))
    expected = [
        f"job-{n:03}"
        for n in sorted(range(1, 101), key=lambda n: (n // 3, n), reverse=True)
        if wanted.queue in (None, f"q{n % 3}")
        and wanted.state in (None, (State.AVAILABLE, State.ACTIVE)[n % 2])
        and wanted.type in (None, "ab"[n % 2 == 0])
    ]
    assert shown == expected
    assert {page.total for page in pages} == {len(expected)}
    assert all(len(page.jobs) <= limit for page in pages)


def test_an_offset_skips() -> None:
    model = filled(20)
    everything = [row.id for row in jobs.jobs(model, JobsAsk()).jobs]
    assert [row.id for row in jobs.jobs(model, JobsAsk(offset=5, limit=3)).jobs] == everything[5:8]
    assert jobs.jobs(model, JobsAsk(offset=50)).jobs == []


def test_a_page_is_never_longer_than_allowed() -> None:
    model = filled(MAX_PAGE + 50)
    assert len(jobs.jobs(model, JobsAsk(limit=10_000)).jobs) == MAX_PAGE
    assert len(jobs.jobs(model, JobsAsk(limit=0)).jobs) == 1


@pytest.mark.parametrize("cursor", ["", "nonsense", ".", "²³.x", "9" * 40])
def test_a_cursor_of_another_making_begins_at_the_newest(cursor: str) -> None:
    model = filled(5)
    assert jobs.jobs(model, JobsAsk(cursor=cursor)) == jobs.jobs(model, JobsAsk())


def test_an_answer_ends_before_it_grows_too_large() -> None:
    model = fresh()
    tags = ("x" * (MAX_ANSWER_BYTES // 3),)
    model.apply([seen(n, job(f"job-{n}", tags=tags)) for n in range(1, 6)])
    page = jobs.jobs(model, JobsAsk())
    assert (len(page.jobs), page.total) == (2, 5)
    shown, _ = walk(model, JobsAsk())
    assert len(shown) == 5


# Dead letters


def dead(model: Model) -> None:
    errors = [JobError(code=kind, type=kind, message="", attempt=1, at=NOW) for kind in ("Boom", "Bang")]
    model.apply(
        [
            seen(
                n,
                job(
                    f"job-{n}",
                    State.DISCARDED,
                    queue=f"q{n % 2}",
                    type="ab"[n > 3],
                    dead_letter=n != 6,
                    discarded_at=NOW + n,
                    error=errors[n % 2] if n != 5 else None,
                ),
            )
            for n in range(1, 7)
        ]
    )


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (DeadLettersAsk(), [5, 4, 3, 2, 1]),
        (DeadLettersAsk(queue="q1"), [5, 3, 1]),
        (DeadLettersAsk(type="b"), [5, 4]),
        (DeadLettersAsk(error_type="Boom"), [4, 2]),
        (DeadLettersAsk(since=NOW + 2, until=NOW + 4), [4, 3, 2]),
        (DeadLettersAsk(limit=2, offset=1), [4, 3]),
    ],
)
def test_dead_letters_are_found_by_what_is_asked(wanted: DeadLettersAsk, expected: list[int]) -> None:
    model = fresh()
    dead(model)
    assert [row.id for row in lists.dead_letters(model, wanted).jobs] == [f"job-{n}" for n in expected]


def test_dead_letters_by_cursor() -> None:
    model = fresh()
    dead(model)
    first = lists.dead_letters(model, DeadLettersAsk(limit=3))
    rest = lists.dead_letters(model, DeadLettersAsk(limit=3, cursor=first.next_cursor))
    assert [row.id for row in first.jobs + rest.jobs] == [f"job-{n}" for n in (5, 4, 3, 2, 1)]
    assert (first.total, rest.total, rest.next_cursor) == (5, 5, None)


def test_dead_letter_statistics() -> None:
    model = fresh()
    dead(model)
    stats = lists.dead_letter_stats(model, None)
    assert (stats.total, stats.oldest_at, stats.newest_at) == (5, NOW + 1, NOW + 5)
    assert (stats.by_queue, stats.by_type) == ({"q0": 2, "q1": 3}, {"a": 3, "b": 2})
    assert stats.by_error_type == {"Bang": 2, "Boom": 2, "unknown": 1}
    assert lists.dead_letter_stats(model, "q0").total == 2
    assert lists.dead_letter_stats(fresh(), None).oldest_at is None


# Queues


def test_queues_by_name_in_pages() -> None:
    model = filled(9)
    first = lists.queues(model, QueuesAsk(limit=2), NOW)
    rest = lists.queues(model, QueuesAsk(limit=2, cursor=first.next_cursor), NOW)
    assert [queue.name for queue in first.queues + rest.queues] == ["q0", "q1", "q2"]
    assert (first.total, rest.next_cursor) == (3, None)
    assert [queue.created_at for queue in first.queues] == [NOW + 1, NOW]


def test_a_queue_nobody_knows_is_empty() -> None:
    queue = lists.queue(fresh(), "nowhere", NOW)
    assert (queue.created_at, queue.counts.total, queue.avg_duration_ms) == (None, 0, None)


def test_a_listed_queue_tells_how_many_jobs_had_not_ended_in_the_last_hour_where_that_is_asked() -> None:
    model = fresh()
    minute = 60_000
    lives = [
        lived(PUSHED),
        lived(PUSHED, ("claimed", State.ACTIVE, 20), ("completed", State.COMPLETED, 20 * minute), id="b"),
        lived(("pushed", State.AVAILABLE, 9 * minute), ("cancelled", State.CANCELLED, 40 * minute), id="c"),
        lived(PUSHED, id="d", queue="other"),
    ]
    model.apply([seen(n, one) for n, one in enumerate(lives, 1)])
    [queue, _] = lists.queues(model, QueuesAsk(backlog=True), NOW + 45 * minute).queues
    assert queue.backlog == (*[0] * 5, *[2] * 3, *[3] * 4, *[2] * 7, *[1] * 2), "steps of three minutes, now at last"
    assert lists.queues(model, QueuesAsk(), NOW + 45 * minute).queues[0].backlog == ()


# What the safety net looks for


def test_every_queue_and_priority_with_available_jobs_is_visited_once() -> None:
    model = fresh()
    kinds = [("q1", -100), ("q1", 0), ("q1", 0), ("q1", 100), ("q2", -3)]
    model.apply([seen(n, job(f"job-{n}", queue=queue, priority=priority)) for n, (queue, priority) in enumerate(kinds, 1)])
    model.apply([seen(9, job("job-9", State.ACTIVE, queue="q3"))])
    assert list(lists.waiting_kinds(model)) == sorted(set(kinds))


def test_the_longest_waiting_come_first() -> None:
    model = fresh()
    model.apply([seen(n, job(f"job-{n}", enqueued_at=NOW - n)) for n in range(1, 6)])
    waiting = lists.WaitingJob("default", 0)
    assert lists.waiting_before(model, waiting, NOW - 2, 2) == [(NOW - 5, "job-5"), (NOW - 4, "job-4")]
    assert lists.waiting_before(model, waiting, NOW - 2, 9, (NOW - 4, "job-4")) == [(NOW - 3, "job-3")]
    assert lists.waiting_before(model, waiting, NOW - 5, 9) == []


def test_dead_letters_are_counted_without_a_look_at_each_or_at_kinds_that_have_none() -> None:
    model = fresh()
    dead(model)
    statements: list[str] = []
    model.db.set_trace_callback(statements.append)
    lists.dead_letter_stats(model, None)
    lists.dead_letter_stats(model, "q0")
    model.db.set_trace_callback(None)
    plans = [row[3] for text in statements for row in model.db.execute(f"EXPLAIN QUERY PLAN {text}")]
    of_jobs, of_kinds = [plan for plan in plans if "jobs" in plan], [plan for plan in plans if "counts" in plan]
    assert (len(of_jobs), len(of_kinds)) == (6, 3)
    assert all("COVERING INDEX dead" in plan for plan in of_jobs), of_jobs
    assert all("counts_of_dead" in plan for plan in of_kinds), of_kinds
