"""Lists of jobs by every combination of filters, against the plain way to find them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ojs_nats.job import Job, JobError, State
from ojs_nats.queries import MAX_COUNTED, JobsAsk
from ojs_projector import jobs
from ojs_projector.model import Model
from unit.projector.samples import NOW, epoch, fresh, gone, job, seen

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
        and (ask.since is None or found.created_at >= ask.since)
        and (ask.until is None or found.created_at <= ask.until)
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
    since=maybe([NOW, NOW + 5]),
    until=maybe([NOW + 5, NOW + 10]),
    sort=st.sampled_from(["created_at", "scheduled_at", "priority"]),
    ascending=st.booleans(),
    limit=st.sampled_from([1, 4, 50]),
)


@given(ASKS)
def test_cursors_show_every_job_that_fits_once_and_in_order(ask: JobsAsk) -> None:
    pages = [jobs.jobs(MODEL, ask)]
    while pages[-1].next_cursor is not None:
        pages.append(jobs.jobs(MODEL, replace(ask, cursor=pages[-1].next_cursor)))
    expected = sorted(
        (found for found in SAMPLES if fits(ask, found)),
        key=lambda found: (getattr(found, ask.sort) or 0, found.id),
        reverse=not ask.ascending,
    )
    assert [row.id for page in pages for row in page.jobs] == [found.id for found in expected]
    assert {page.total for page in pages} == {len(expected)}
    assert jobs.jobs(MODEL, replace(ask, limit=50, offset=2)).jobs == [row for page in pages for row in page.jobs][2:52]


@pytest.mark.parametrize(
    "ask",
    [
        JobsAsk(queue="a", type="mail.send", state=State.AVAILABLE, since=NOW, until=NOW + 3),
        JobsAsk(tag="x"),
        JobsAsk(worker="w1", tag="x", state=State.COMPLETED),
        JobsAsk(error_type="E1", ascending=True, since=NOW),
    ],
)
def test_no_list_by_age_is_sorted_or_scanned_as_a_whole(ask: JobsAsk) -> None:
    statements: list[str] = []
    model = filled()
    model.db.set_trace_callback(statements.append)
    jobs.jobs(model, ask)
    model.db.set_trace_callback(None)
    reads = [text for text in statements if "FROM counts" not in text]
    assert reads
    for text in reads:
        plan = " ".join(row[3] for row in model.db.execute(f"EXPLAIN QUERY PLAN {text}"))
        assert "TEMP B-TREE" not in plan, plan
        assert "SCAN jobs" not in plan, plan
        assert "SCAN tags" not in plan, plan


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
    assert model.db.execute("SELECT * FROM tags").fetchall() == [("y", NOW, "c")]


def test_a_reset_keeps_the_tags_of_what_came_after_it() -> None:
    model = fresh()
    model.apply([seen(8, job("late", tags=("x",)))])
    model.apply([epoch(7)])
    assert tagged(model, "x") == ["late"]


def test_what_no_kept_number_tells_is_counted_up_to_a_limit() -> None:
    model = fresh()
    model.apply([seen(n, job(f"job-{n}", tags=("x",))) for n in range(1, MAX_COUNTED + 6)])
    assert jobs.jobs(model, JobsAsk(tag="x")).total == MAX_COUNTED
    assert jobs.jobs(model, JobsAsk(since=NOW)).total == MAX_COUNTED
    assert jobs.jobs(model, JobsAsk()).total == MAX_COUNTED + 5
