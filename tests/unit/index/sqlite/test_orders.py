"""An index that makes the orders of its lists at the end of a rebuild equals one that has followed everything."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest
from msgspec import Raw

from ojs_engine.domain.job import JobError, State
from ojs_features.statistics.plug import STATISTICS
from ojs_index.asking.messages import DeadLettersAsk, JobsAsk
from ojs_index.asking.numbers import Counts
from ojs_index.reading import jobs, lists
from ojs_index.sqlite.labels import MAX_PAIRS
from ojs_index.sqlite.model import Model, Seen
from ojs_index.sqlite.orders import STEPS, Ordering
from support.waiting import eventually
from unit.index.reading.test_search import SAMPLES
from unit.index.samples import NOW, STREAM, epoch, fresh, gone, job, seen

LAST = 100
COPIED = 400
TABLES = ("jobs", "labels", "counts", "queues")
ODD = (
    {"a\0b": "c"},
    {"a": "b\0c"},
    {"": "", "\x1f": "\x1e"},
    {"a\x1fb": "c", "a": "b\x1fc"},
    {"\u00e4": "\U0001f600", 'quo"te': "back\\slash\n"},
    {"long": "x" * 1_000},
    {f"k{n}": n for n in range(2 * MAX_PAIRS)},
    {"nothing": {"plain": 1}},
)
"""Members of metadata that JSON, SQLite or the labels' own marks could make others of."""


def history() -> list[Seen]:
    """Records of one batch after another, among them changes and disappearances of jobs that were read before."""
    found = [seen(n, sample) for n, sample in enumerate(SAMPLES, 1)]
    for meta in ODD:
        found.append(
            seen(len(found) + 1, job(f"odd-{len(found)}", meta=Raw(msgspec.json.encode(meta)), tags=("t\0u", "t", "t")))
        )
    error = JobError(code="c", type="E\0", message="m", attempt=1, at=NOW)
    moved = msgspec.structs.replace(SAMPLES[3], state=State.RETRYABLE, tags=("other",), worker="w\0", error=error)
    return [*found, seen(len(found) + 1, moved), gone(len(found) + 2, SAMPLES[4].id)]


def taken_up(model: Model, records: Sequence[Seen]) -> Model:
    for start in range(0, len(records), 7):
        model.apply(records[start : start + 7])
    return model


def rebuilding(path: Path, records: Sequence[Seen], ordering: Callable[[Path], Ordering] = Ordering) -> Model:
    model = Model(path, COPIED, ordering, followed=STATISTICS.followed)
    model.attach(STREAM, LAST)
    return taken_up(model, records)


def contents(model: Model) -> dict[str, list[tuple[object, ...]]]:
    found = {table: model.db.execute(f"SELECT * FROM {table}").fetchall() for table in TABLES}
    found["orders"] = model.db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name").fetchall()
    assert model.db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    return found


def broken_off_after(steps: int) -> Callable[[Path], Ordering]:
    """As if it were killed."""
    return partial(Ordering, steps=(*STEPS[:steps], ["SELECT 1 FROM killed"]))


def test_it_equals_one_that_has_followed(tmp_path: Path) -> None:
    records = history()
    followed = taken_up(fresh(copied=COPIED), records)
    rebuilt = rebuilding(tmp_path / "index", records)
    assert (rebuilt.partial, jobs.jobs(rebuilt, JobsAsk()).jobs) == (True, [])
    rebuilt.reached_end()
    assert (rebuilt.partial, rebuilt.progress < 1) == (True, True)
    asyncio.run(rebuilt.make_orders())
    assert (rebuilt.partial, rebuilt.progress) == (False, 1.0)
    assert contents(rebuilt) == contents(followed)
    assert jobs.jobs(rebuilt, JobsAsk(meta=(("a", "b\0c"),))).total == 1
    assert jobs.jobs(rebuilt, JobsAsk(tag="t\0u")).total == len(ODD)

    # From now on it follows, too.
    more = [gone(200, SAMPLES[0].id), seen(201, msgspec.structs.replace(SAMPLES[1], tags=("new",)))]
    for model in (followed, rebuilt):
        model.apply(more)
    assert contents(rebuilt) == contents(followed)
    rebuilt.close()


def test_until_its_end_dead_letters_are_unknown_and_queues_are_counted(tmp_path: Path) -> None:
    dead = [seen(n, job(f"dead-{n}", State.DISCARDED, dead_letter=True, discarded_at=NOW)) for n in range(1, 4)]
    model = rebuilding(tmp_path / "index", [*dead, seen(4, job())])
    page, stats = lists.dead_letters(model, DeadLettersAsk()), lists.dead_letter_stats(model, None)
    assert (page.jobs, page.total, page.partial) == ([], None, True)
    assert (stats.total, stats.by_queue, stats.by_error_type, stats.partial) == (0, {}, {}, True)
    queue = lists.queue(model, "default", NOW)
    assert (queue.counts, queue.dead_letter, queue.partial) == (Counts(available=1, discarded=3), 3, True)
    model.reached_end()
    asyncio.run(model.make_orders())
    page, stats = lists.dead_letters(model, DeadLettersAsk()), lists.dead_letter_stats(model, None)
    assert ([row.id for row in page.jobs], page.total, page.partial) == (["dead-3", "dead-2", "dead-1"], 3, False)
    assert (stats.total, stats.by_queue, stats.by_type, stats.partial) == (3, {"default": 3}, {"test.job": 3}, False)
    assert lists.levels(model, "default").counts == {0: 1}
    model.close()


def test_what_a_reset_wiped_is_in_no_order(tmp_path: Path) -> None:
    records = [*history()[:20], epoch(21), seen(22, SAMPLES[30])]
    rebuilt = rebuilding(tmp_path / "index", records)
    rebuilt.reached_end()
    asyncio.run(rebuilt.make_orders())
    assert contents(rebuilt) == contents(taken_up(fresh(copied=COPIED), records))
    rebuilt.close()


@pytest.mark.parametrize("steps", range(len(STEPS) + 1))
def test_it_may_break_off_anywhere_and_go_on_later(tmp_path: Path, steps: int) -> None:
    records = history()
    first = rebuilding(tmp_path / "index", records[:-5], broken_off_after(steps))
    first.reached_end()
    with pytest.raises(sqlite3.OperationalError):
        asyncio.run(first.make_orders())
    assert first.partial
    first.close()
    again = Model(tmp_path / "index", COPIED, followed=STATISTICS.followed)
    again.attach(STREAM, LAST)
    assert again.partial is (steps < len(STEPS))
    taken_up(again, records[-5:])
    again.reached_end()
    asyncio.run(again.make_orders())
    assert contents(again) == contents(taken_up(fresh(copied=COPIED), records))
    again.close()


async def is_written(path: Path) -> bool:
    db = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        db.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return True
    finally:
        db.close()
    return False


def test_a_stop_does_not_wait_for_it(tmp_path: Path) -> None:
    """One statement of it may take seconds."""
    forever = ["WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"]
    model = rebuilding(tmp_path / "index", history(), partial(Ordering, steps=[forever]))
    model.reached_end()

    async def stopped() -> None:
        work = asyncio.create_task(model.make_orders())
        await eventually(lambda: is_written(tmp_path / "index"))
        work.cancel()
        await work

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(stopped())
    assert model.partial
    model.close()
    again = Model(tmp_path / "index", COPIED, followed=STATISTICS.followed)
    again.attach(STREAM, LAST)
    asyncio.run(again.make_orders())
    assert not again.partial
    assert contents(again) == contents(taken_up(fresh(copied=COPIED), history()))
    again.close()


def test_a_small_bucket_and_an_empty_one_need_no_orders_made(tmp_path: Path) -> None:
    model = Model(tmp_path / "index")
    model.attach(STREAM, 0)
    model.apply([seen(1, job())])
    assert not model.partial
    assert jobs.jobs(model, JobsAsk()).total == 1
    model.close()
