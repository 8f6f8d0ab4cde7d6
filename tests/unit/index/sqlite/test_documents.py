"""Copies of small jobs: what a page shows of them is the job as it is, whatever became of it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.domain.job import Job, State
from ojs_index.asking.messages import DeadLettersAsk, JobsAsk
from ojs_index.reading import jobs, lists
from ojs_index.sqlite.model import Model
from unit.index.samples import NOW, STREAM, epoch, fresh, gone, job, seen

COPIED = 400
SMALL = job("small", args=Raw(b"[1]"))
LARGE = job("large", args=Raw(b'["' + b"x" * COPIED + b'"]'), created_at=NOW + 1)
decode = msgspec.json.Decoder(Job).decode


def copies(model: Model) -> dict[str, Job | None]:
    """By id, what a page shows of all jobs; None for those without a copy."""
    page = jobs.jobs(model, JobsAsk(whole=True))
    return {row.id: decode(row.document) if len(row.document) else None for row in page.jobs}


def stored(model: Model) -> int:
    number: int = model.db.execute("SELECT count(document) FROM jobs").fetchone()[0]
    return number


def test_small_jobs_are_shown_as_they_are_stored_and_large_ones_are_left_to_their_records() -> None:
    model = fresh(copied=COPIED)
    model.apply([seen(1, SMALL), seen(2, LARGE)])
    assert copies(model) == {"large": None, "small": SMALL}
    assert stored(model) == 1


def test_only_who_asks_gets_copies() -> None:
    model = fresh(copied=COPIED)
    model.apply([seen(1, SMALL)])
    [row] = jobs.jobs(model, JobsAsk()).jobs
    assert bytes(row.document) == b""


def test_without_room_for_copies_none_are_kept() -> None:
    model = fresh()
    model.apply([seen(1, SMALL)])
    assert copies(model) == {"small": None}
    assert stored(model) == 0


def test_a_page_of_dead_letters_has_them_too() -> None:
    dead = job("dead", State.DISCARDED, dead_letter=True, discarded_at=NOW)
    model = fresh(copied=COPIED)
    model.apply([seen(1, dead)])
    [row] = lists.dead_letters(model, DeadLettersAsk(whole=True)).jobs
    assert decode(row.document) == dead
    [row] = lists.dead_letters(model, DeadLettersAsk()).jobs
    assert bytes(row.document) == b""


def test_a_change_takes_the_place_of_what_was_before() -> None:
    moved = replace(SMALL, state=State.ACTIVE, attempt=1, started_at=NOW)
    model = fresh(copied=COPIED)
    model.apply([seen(1, SMALL)])
    model.apply([seen(2, moved)])
    assert copies(model) == {"small": moved}
    model.apply([seen(1, SMALL)])  # read once more
    assert copies(model) == {"small": moved}
    assert stored(model) == 1


def test_a_job_that_grows_is_no_longer_copied_and_one_that_shrinks_is() -> None:
    model = fresh(copied=COPIED)
    model.apply([seen(1, SMALL), seen(2, LARGE)])
    model.apply([seen(3, replace(SMALL, args=LARGE.args)), seen(4, replace(LARGE, args=SMALL.args))])
    assert copies(model) == {"large": replace(LARGE, args=SMALL.args), "small": None}
    assert stored(model) == 1


@pytest.mark.parametrize("way", ["gone", "deleted", "its TTL is over", "reset"])
def test_what_leaves_leaves_no_copy(way: str) -> None:
    model = fresh(copied=COPIED)
    model.apply([seen(1, SMALL, ttl_s=60), seen(2, LARGE), seen(3, job("stays"))])
    match way:
        case "gone":
            model.apply([gone(4, "small")])
        case "deleted":
            model.apply([seen(4, replace(SMALL, deleted=True))])
        case "its TTL is over":
            assert model.forget(NOW + 3_600_000) == 1
        case _:
            model.apply([epoch(3)])
    assert "small" not in copies(model)
    assert copies(model)["stays"] == job("stays")
    assert stored(model) == 1


def test_a_row_says_until_when_its_record_stays() -> None:
    model = fresh(copied=COPIED)
    model.apply([seen(1, SMALL, ttl_s=60), seen(2, LARGE)])
    leaving = {row.id: row.leaves_at for row in jobs.jobs(model, JobsAsk()).jobs}
    assert leaving == {"small": NOW + 1 + 60_000, "large": None}


def test_a_page_of_large_copies_ends_early_and_goes_on() -> None:
    model = fresh(copied=64_000)
    large = [job(f"job-{n:03}", args=Raw(b'["' + b"x" * 60_000 + b'"]')) for n in range(100)]
    for start in range(0, 100, 10):
        model.apply([seen(n + 1, found) for n, found in enumerate(large[start : start + 10], start)])
    ids: list[str] = []
    ask = JobsAsk(limit=100, whole=True)
    pages = 0
    while True:
        page = jobs.jobs(model, ask)
        ids += [row.id for row in page.jobs]
        pages += 1
        if page.next_cursor is None:
            break
        ask = replace(ask, cursor=page.next_cursor)
    assert sorted(ids) == [found.id for found in large]
    assert pages == 2


def test_another_size_of_copies_builds_the_index_anew(tmp_path: Path) -> None:
    path = tmp_path / "index"
    applied: list[int] = []
    for copied in (COPIED, COPIED, 0):
        model = Model(path, copied=copied)
        model.attach(STREAM, 1 if applied else 0)
        applied.append(model.applied)
        if not model.applied:
            model.apply([seen(1, SMALL)])
        model.close()
    assert applied == [0, 1, 0]
