"""Lists of jobs by every combination of filters, against the plain way to find them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.domain.job import Job, JobError, State
from ojs_index.asking.messages import JobsAsk
from ojs_index.reading import jobs
from ojs_index.reading.filters import Filters
from ojs_index.reading.jobs import Bounds
from ojs_index.reading.orders import Reads
from ojs_index.sqlite import labels
from ojs_index.sqlite.model import Model
from support.examples import costly
from support.tables import each
from unit.index.samples import NOW, epoch, fresh, gone, job, seen

QUEUES, TYPES, TAGS = ("a", "b"), ("mail.send", "mail.read", "bill"), ("x", "y", "z")
STATES = (State.AVAILABLE, State.COMPLETED, State.DISCARDED)


def sample(n: int) -> Job:
    return job(
        f"job-{n:03}",
        STATES[n % 3],
        queue=QUEUES[n % 2],
        type=TYPES[n * 7 % 3],
        created_at=NOW + n // 4,
        scheduled_at=NOW + 1_000 - n // 3 if n % 3 else None,
        priority=n * 5 % 7 - 3,
        tags=tuple(tag for bit, tag in enumerate(TAGS) if n >> bit & 1),
        worker=f"w{n % 3}" if n % 2 else None,
        error=JobError(code="c", type=f"E{n % 2}", message="m", attempt=1, at=NOW) if n % 5 else None,
        meta=Raw(msgspec.json.encode({"tenant": f"t{n % 3}", "vip": n % 2 == 0, "nested": {"n": n}})),
    )


SAMPLES = [sample(n) for n in range(1, 61)]


def filled() -> Model:
    model = fresh()
    model.apply([seen(n, found) for n, found in enumerate(SAMPLES, 1)])
    return model


MODEL = filled()


def fits(ask: JobsAsk, found: Job) -> bool:
    error_type = found.error.type if found.error is not None else None
    return (
        ask.state in (None, found.state)
        and ask.queue in (None, found.queue)
        and (
            ask.type in (None, found.type)
            or (ask.type is not None and ask.type[-1] == "*" and found.type.startswith(ask.type[:-1]))
        )
        and (ask.tag is None or ask.tag in found.tags)
        and ask.error_type in (None, error_type)
        and ask.worker in (None, found.worker)
        and all(str(msgspec.json.decode(found.meta)[key]).lower() == value for key, value in ask.meta)
        and (ask.since is None or found.created_at >= ask.since)
        and (ask.until is None or found.created_at <= ask.until)
    )


def order_of(ask: JobsAsk, found: Job) -> tuple[int, int, str]:
    if ask.sort == "created_at":
        return (0, found.created_at, found.id)
    last = 1 << 62 if ask.ascending else -1
    key = found.priority if ask.sort == "priority" else found.scheduled_at
    return (last if key is None else key, found.created_at, found.id)


def bounds(counted: int, passed: int, read: int) -> Bounds:
    """Others, so that few jobs are already too many for the one way or the other to find them."""
    return Bounds(counted=counted, passed=passed, reads=Reads(first=read, largest=read))


BOUNDS = st.sampled_from(
    [
        bounds(10_000, 10_000, 16),
        bounds(0, 10_000, 3),
        bounds(0, 5, 1),
        bounds(4, 7, 2),
        bounds(20, 9, 5),
        bounds(10_000, 2, 3),
    ]
)


def maybe(values: Any) -> Any:
    return st.none() | st.sampled_from(values)


ASKS = st.builds(
    JobsAsk,
    state=maybe(STATES),
    queue=maybe(QUEUES),
    type=maybe([*TYPES, "mail.*", "*", "none.*"]),
    tag=maybe([*TAGS, "none"]),
    error_type=maybe(["E0", "E1"]),
    worker=maybe(["w0", "w1"]),
    meta=st.sampled_from([(), (), (("tenant", "t1"),), (("tenant", "t1"), ("vip", "true")), (("tenant", "none"),)]),
    since=maybe([NOW, NOW + 5]),
    until=maybe([NOW + 5, NOW + 10]),
    sort=st.sampled_from(["created_at", "scheduled_at", "priority"]),
    ascending=st.booleans(),
    limit=st.sampled_from([1, 4, 50]),
)


@costly
@given(ASKS, BOUNDS)
def test_cursors_show_every_job_that_fits_once_and_in_order(ask: JobsAsk, within: Bounds) -> None:
    pages = [jobs.jobs(MODEL, ask, within)]
    while pages[-1].next_cursor is not None:
        pages.append(jobs.jobs(MODEL, replace(ask, cursor=pages[-1].next_cursor), within))
    skipped = jobs.jobs(MODEL, replace(ask, limit=50, offset=2), within)
    expected = sorted(
        (found for found in SAMPLES if fits(ask, found)), key=lambda found: order_of(ask, found), reverse=not ask.ascending
    )
    assert [row.id for page in pages for row in page.jobs] == [found.id for found in expected]
    assert {page.total for page in pages} <= {len(expected), None}
    assert all(len(page.jobs) <= ask.limit for page in pages)
    if within.counted == 10_000:
        assert {page.total for page in pages} == {len(expected)}
        assert skipped.jobs == [row for page in pages for row in page.jobs][2:52]


@each(
    "ask",
    [
        JobsAsk(queue="a", type="mail.send", state=State.AVAILABLE, since=NOW, until=NOW + 3),
        JobsAsk(tag="x"),
        JobsAsk(worker="w1", tag="x", state=State.COMPLETED),
        JobsAsk(error_type="E1", ascending=True, since=NOW),
        JobsAsk(meta=(("tenant", "t1"),), state=State.COMPLETED),
        JobsAsk(sort="priority"),
        JobsAsk(sort="scheduled_at", state=State.COMPLETED),
        JobsAsk(queue="a", sort="priority", since=NOW),
    ],
)
def test_no_list_by_age_is_sorted_or_scanned_as_a_whole(ask: JobsAsk) -> None:
    statements: list[str] = []
    model = filled()
    model.db.set_trace_callback(statements.append)
    jobs.jobs(model, ask)
    model.db.set_trace_callback(None)
    assert statements
    for text in statements:
        plan = " ".join(row[3] for row in model.db.execute(f"EXPLAIN QUERY PLAN {text}"))
        assert "TEMP B-TREE" not in plan, plan
        assert "SCAN jobs" not in plan, plan
        assert "SCAN labels" not in plan, plan


def test_states_without_a_job_of_the_queue_and_type_are_not_looked_at() -> None:
    model = fresh()
    model.apply([seen(1, job("a", queue="q", type="x")), seen(2, job("b", State.COMPLETED, queue="q", type="y"))])
    model.apply([seen(3, job("c", State.CANCELLED, queue="other", type="x"))])
    looked_at = {}
    for name, ask in (("queue", JobsAsk(queue="q")), ("both", JobsAsk(queue="q", type="x")), ("none", JobsAsk(queue="none"))):
        filters = Filters(ask)
        filters.leave_out_empty_states(model.db)
        looked_at[name] = next(filters.ordered()).ranges
    assert looked_at == {"queue": [("q", "available"), ("q", "completed")], "both": [("q", "available")], "none": []}


def tagged(model: Model, tag: str) -> list[str]:
    return [row.id for row in jobs.jobs(model, JobsAsk(tag=tag)).jobs]


def test_tags_follow_jobs_that_change_leave_or_are_reset() -> None:
    model = fresh()
    model.apply([seen(1, job("a", tags=("x", "x"))), seen(2, job("b", tags=("x",)))])
    model.apply([seen(3, job("a", State.ACTIVE, tags=("x",)))])
    assert tagged(model, "x") == ["b", "a"]
    model.apply([seen(4, job("a", State.ACTIVE, tags=("y",))), gone(5, "b")])
    assert (tagged(model, "x"), tagged(model, "y")) == ([], ["a"])
    model.apply([epoch(6), seen(7, job("c", tags=("y",)))])
    assert tagged(model, "y") == ["c"]
    assert model.db.execute("SELECT label, at FROM labels").fetchall() == [("ty", NOW)]


def test_a_reset_keeps_the_tags_of_what_came_after_it() -> None:
    model = fresh()
    model.apply([seen(8, job("late", tags=("x",)))])
    model.apply([epoch(7)])
    assert tagged(model, "x") == ["late"]


def test_what_no_kept_number_tells_is_counted_up_to_a_limit_and_then_left_out() -> None:
    model = fresh()
    model.apply([seen(n, job(f"job-{n}", tags=("x",), meta=Raw(b'{"k":1}'))) for n in range(1, 8)])
    asked = [JobsAsk(since=NOW), JobsAsk(meta=(("k", "1"),)), JobsAsk(tag="x"), JobsAsk(tag="x", queue="default")]
    kept = [
        JobsAsk(),
        JobsAsk(queue="default"),
        JobsAsk(type="test.*", state=State.AVAILABLE),
        JobsAsk(queue="default", type="test.job"),
    ]
    for most, told in ((6, None), (7, 7)):
        within = Bounds(counted=most)
        assert {jobs.jobs(model, ask, within).total for ask in asked} == {told}
        assert {jobs.jobs(model, ask, within).total for ask in kept} == {7}


# Metadata


@each(
    ("meta", "key", "value", "found"),
    [
        (b'{"a": "b"}', "a", "b", True),
        (b'{"a": "b"}', "a", "B", False),
        (b'{"a": 5}', "a", "5", True),
        (b'{"a": "5"}', "a", "5", True),
        (b'{"a": true, "b": null}', "b", "null", True),
        (b'{"a": {"b": "c"}}', "a", '{"b": "c"}', False),
        (b'{"a.b": "c=d"}', "a.b", "c=d", True),
        (b'{"a": "\\u00e4"}', "a", "\u00e4", True),
        (b'{"a": "' + b"x" * 5_000 + b'"}', "a", "x" * 5_000, True),
        (b'{"a": "' + b"x" * 5_000 + b'"}', "a", "x" * 4_999, False),
        (msgspec.json.encode({f"k{n}": n for n in range(40)}), f"k{labels.MAX_PAIRS - 1}", str(labels.MAX_PAIRS - 1), True),
        (msgspec.json.encode({f"k{n}": n for n in range(40)}), f"k{labels.MAX_PAIRS}", str(labels.MAX_PAIRS), False),
    ],
)
def test_metadata_is_found_by_plain_values(meta: bytes, key: str, value: str, found: bool) -> None:
    model = fresh()
    model.apply([seen(1, job(meta=Raw(meta)))])
    assert jobs.jobs(model, JobsAsk(meta=((key, value),))).total == int(found)


# Bounds


def test_a_page_costs_what_it_shows_however_many_jobs_fit() -> None:
    model = fresh()
    model.apply([seen(n, job(f"job-{n:03}", queue="q", type=f"t{n:03}", created_at=NOW + n)) for n in range(1, 301)])
    statements: list[str] = []
    model.db.set_trace_callback(statements.append)
    page = jobs.jobs(model, JobsAsk(queue="q", limit=3))
    model.db.set_trace_callback(None)
    assert [row.id for row in page.jobs] == ["job-300", "job-299", "job-298"]
    assert len(statements) < 20


def test_jobs_of_one_moment_come_by_their_ids_however_many_they_are() -> None:
    model = fresh()
    ids = [f"job-{n * 37 % 100:03}" for n in range(100)]
    model.apply([seen(n, job(job_id, created_at=NOW + (n > 50))) for n, job_id in enumerate(ids, 1)])
    for ascending in (True, False):
        ask = JobsAsk(limit=7, ascending=ascending)
        shown: list[tuple[int, str]] = []
        while True:
            page = jobs.jobs(model, ask)
            shown += [(row.created_at, row.id) for row in page.jobs]
            if page.next_cursor is None:
                break
            ask = replace(ask, cursor=page.next_cursor)
        assert shown == sorted(shown, reverse=not ascending)
        assert len(set(shown)) == 100


@each("limit", [2, 7, 50])
def test_a_list_goes_on_behind_each_moment_that_more_share_than_are_read_at_once(limit: int) -> None:
    model = fresh()
    ids = [f"job-{n * 7 % 30:02}" for n in range(30)]
    model.apply([seen(n + 1, job(job_id, queue="q", created_at=NOW + n // 10)) for n, job_id in enumerate(ids)])
    for ascending in (True, False):
        ask = JobsAsk(queue="q", limit=limit, ascending=ascending)
        pages = [jobs.jobs(model, ask, bounds(0, 10_000, 3))]
        while pages[-1].next_cursor is not None:
            pages.append(jobs.jobs(model, replace(ask, cursor=pages[-1].next_cursor), bounds(0, 10_000, 3)))
        shown = [(row.created_at, row.id) for page in pages for row in page.jobs]
        assert shown == sorted(((NOW + n // 10, job_id) for n, job_id in enumerate(ids)), reverse=not ascending)


CROWD = 20_000
"""Jobs that all have one moment."""


@pytest.fixture(scope="module")
def crowded() -> Model:
    """A queue of such jobs, their ids in no order, and a few before and after."""
    model = fresh()
    made = [
        job(f"job-{n * 7_919 % CROWD:05}", queue="q", created_at=NOW, tags=("t",), priority=n % 2, type=f"t{n % 2}")
        for n in range(CROWD)
    ]
    made += [job(f"near-{n}", queue="q", created_at=NOW + (1 if n % 2 else -1), tags=("t",)) for n in range(8)]
    model.apply([seen(n, found) for n, found in enumerate(made, 1)])
    return model


@each(
    "ask",
    [
        JobsAsk(queue="q"),
        JobsAsk(queue="q", ascending=True),
        JobsAsk(queue="q", state=State.AVAILABLE),
        JobsAsk(type="t1", ascending=True),
        JobsAsk(tag="t"),
        JobsAsk(tag="t", ascending=True),
        JobsAsk(queue="q", type="t0"),
        JobsAsk(queue="q", sort="priority"),
        JobsAsk(queue="q", sort="priority", ascending=True),
        JobsAsk(queue="q", sort="scheduled_at"),
    ],
)
def test_a_page_of_a_moment_that_very_many_jobs_share_costs_what_it_shows(crowded: Model, ask: JobsAsk) -> None:
    ask = replace(ask, limit=50)
    shown: list[tuple[int, int, str]] = []
    steps = 0

    def step() -> None:
        nonlocal steps
        steps += 1

    for _ in range(12):
        steps = 0
        crowded.db.set_progress_handler(step, 1_000)
        page = jobs.jobs(crowded, ask)
        crowded.db.set_progress_handler(None, 0)
        assert steps < 300, "thousands of SQLite's instructions for a page"
        shown += [(row.priority if ask.sort == "priority" else 0, row.created_at, row.id) for row in page.jobs]
        ask = replace(ask, cursor=page.next_cursor)
    assert len(set(shown)) == len(shown) == 600
    assert shown == sorted(shown, reverse=not ask.ascending)


# While jobs move


@costly
@given(st.data())
def test_a_walk_shows_each_job_that_stays_once_whatever_moves_meanwhile(data: st.DataObject) -> None:
    model = fresh()
    alive = {n: replace(sample(n), state=State.COMPLETED if n % 2 else State.DISCARDED) for n in range(1, 25)}
    model.apply([seen(n, found) for n, found in alive.items()])
    ask = replace(data.draw(ASKS), limit=2)
    stayed = {found.id for found in alive.values() if fits(ask, found)}
    shown: list[str] = []
    sequence = 100
    within = data.draw(BOUNDS)
    while True:
        page = jobs.jobs(model, ask, within)
        shown += [row.id for row in page.jobs]
        if page.next_cursor is None:
            break
        ask = replace(ask, cursor=page.next_cursor)
        batch = []
        for n in data.draw(st.lists(st.integers(1, 40), max_size=4)):
            sequence += 1
            if n in alive and data.draw(st.booleans()):
                stayed.discard(alive.pop(n).id)
                batch.append(gone(sequence, f"job-{n:03}"))
            else:
                moved = replace(sample(n), state=data.draw(st.sampled_from(STATES)), attempt=sequence)
                if not fits(ask, moved) or n not in alive:
                    stayed.discard(moved.id)
                alive[n] = moved
                batch.append(seen(sequence, moved))
        model.apply(batch)
    assert len(shown) == len(set(shown))
    assert stayed <= set(shown)
