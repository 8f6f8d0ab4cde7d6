from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_engine.domain.job import JobError, State, Timer
from ojs_engine.jetstream.feed import Record
from ojs_features.all import FOLLOWED
from ojs_index.asking.messages import DeadLettersAsk, JobsAsk, QueuesAsk, UnreadableAsk
from ojs_index.asking.numbers import Counts
from ojs_index.followed import Followed
from ojs_index.reading import jobs, lists
from ojs_index.sqlite.model import Model, Seen
from ojs_index.sqlite.unreadable import unreadable
from support.examples import costly
from unit.index.samples import NOW, STREAM, barrier, epoch, fresh, gone, job, seen

# A batch of versions: (job, queue, type, state, dead letter) or a disappearance, of few jobs so that they meet again.
QUEUES, TYPES, JOBS = ("q1", "q2"), ("a", "b"), tuple(f"job-{n}" for n in range(4))
versions = st.tuples(
    st.sampled_from(JOBS),
    st.sampled_from(QUEUES),
    st.sampled_from(TYPES),
    st.sampled_from(State),
    st.booleans(),
)
steps = st.one_of(versions, st.sampled_from(JOBS), st.just("epoch"))


def record(sequence: int, step: tuple[str, str, str, State, bool] | str) -> Seen:
    if step == "epoch":
        return epoch(sequence)
    if isinstance(step, str):
        return gone(sequence, step)
    job_id, queue, kind, state, dead = step
    ended = {"discarded_at": NOW} if state is State.DISCARDED else {}
    dead_letter = dead and state is State.DISCARDED
    return seen(sequence, job(job_id, state, queue=queue, type=kind, dead_letter=dead_letter, **ended))


def recount(history: list[Seen]) -> dict[str, Seen]:
    """What there is after a history, the plain way."""
    there: dict[str, Seen] = {}
    for found in history:
        if found.record.kind == "epoch":
            there.clear()
        elif found.job is None:
            there.pop(found.record.job_id, None)
        else:
            there[found.job.id] = found
    return there


def assert_equal_to_recount(model: Model, history: list[Seen]) -> None:
    there = [found.job for found in recount(history).values() if found.job is not None]
    for queue in QUEUES:
        numbers = lists.queue(model, queue, NOW)
        states = Counter(found.state for found in there if found.queue == queue)
        assert numbers.counts == Counts(**{state.value: states[state] for state in State})
        assert numbers.dead_letter == sum(found.dead_letter for found in there if found.queue == queue)
    by_kind = Counter((found.queue, found.type, found.state) for found in there)
    counted = model.db.execute("SELECT queue, type, state, n FROM counts WHERE queue <> '' AND type <> '' AND state <> 'dead'")
    assert {tuple(row[:3]): row[3] for row in counted} == dict(by_kind)
    assert {row[0] for row in model.db.execute("SELECT id FROM jobs")} == {found.id for found in there}


@costly
@given(batches=st.lists(st.lists(steps, max_size=6), max_size=6))
def test_numbers_equal_a_plain_recount_after_every_batch(batches: list[list[tuple[str, str, str, State, bool] | str]]) -> None:
    model = fresh()
    history: list[Seen] = []
    for steps_of_batch in batches:
        batch = [record(len(history) + n, step) for n, step in enumerate(steps_of_batch, 1)]
        history += batch
        model.apply(batch)
        assert_equal_to_recount(model, history)
        assert model.applied == len(history)


@costly
@given(versions_of_jobs=st.lists(steps, min_size=1, max_size=12), data=st.data())
def test_reading_a_part_again_changes_nothing(
    versions_of_jobs: list[tuple[str, str, str, State, bool] | str], data: st.DataObject
) -> None:
    history = [record(n, step) for n, step in enumerate(versions_of_jobs, 1)]
    model = fresh()
    model.apply(history)
    # Only the last message of each subject is still there to be read again.
    last = {found.record.job_id if found.record.kind != "epoch" else "": found for found in history}
    start = data.draw(st.integers(1, len(history)))
    model.apply(sorted((found for found in last.values() if found.record.sequence >= start), key=lambda f: f.record.sequence))
    assert_equal_to_recount(model, history)
    assert model.applied == len(history)


def test_an_older_revision_than_the_known_one_is_passed_over() -> None:
    """A server of a cluster that lags may still show one after a new reader has begun at an earlier place."""
    model = fresh()
    model.apply([seen(9, job(state=State.ACTIVE))])
    model.apply([seen(3, job(state=State.AVAILABLE)), gone(4, "job-1")])
    assert lists.queue(model, "default", NOW).counts == Counts(active=1)
    assert model.applied == 9


def test_a_tombstone_is_gone() -> None:
    model = fresh()
    model.apply([seen(1, job(state=State.DISCARDED, dead_letter=True))])
    model.apply([seen(2, job(state=State.DISCARDED, deleted=True))])
    assert lists.queue(model, "default", NOW).counts.total == 0
    assert lists.dead_letters(model, DeadLettersAsk()).total == 0


def test_a_job_that_changes_its_queue_leaves_the_old_one() -> None:
    model = fresh()
    model.apply([seen(1, job(queue="old"))])
    model.apply([seen(2, job(queue="new"))])
    assert lists.queue(model, "old", NOW).counts.available == 0
    assert lists.queue(model, "new", NOW).counts.available == 1
    assert [queue.name for queue in lists.queues(model, QueuesAsk(), NOW).queues] == ["new", "old"]


# Leaving by TTL


def test_a_record_whose_ttl_is_over_is_forgotten_even_if_nobody_saw_it_leave() -> None:
    model = fresh()
    model.apply([seen(1, job("stays")), seen(2, job("leaves", State.COMPLETED, completed_at=NOW), ttl_s=3_600)])
    assert model.forget(NOW + 3_600_000) == 0
    assert model.forget(NOW + 3_600_000 + 6_000) == 1
    assert lists.queue(model, "default", NOW).counts == Counts(available=1)


def test_a_record_that_was_revived_is_not_forgotten() -> None:
    model = fresh()
    model.apply([seen(1, job(state=State.DISCARDED), ttl_s=3_600)])
    model.apply([seen(2, job(state=State.AVAILABLE))])
    assert model.forget(NOW + 10**9) == 0


# The file


def test_a_model_goes_on_where_it_was(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    first = Model(file)
    first.attach(STREAM, 0)
    first.apply([seen(1, job()), barrier(2)])
    first.close()
    second = Model(file)
    second.attach(STREAM, 5)
    assert (second.applied, second.partial) == (2, False)
    assert lists.queue(second, "default", NOW).counts.available == 1
    second.close()


@pytest.mark.parametrize(
    ("stream", "last_sequence"),
    [("KV_ojs 2027-02-01T00:00:00Z", 9), (STREAM, 1)],
    ids=["another stream", "a stream that lost its end"],
)
def test_a_model_of_another_history_is_built_anew(tmp_path: Path, stream: str, last_sequence: int) -> None:
    file = tmp_path / "index.sqlite"
    first = Model(file)
    first.attach(STREAM, 2)
    first.apply([seen(1, job()), seen(2, job("job-2"))])
    first.close()
    second = Model(file)
    second.attach(stream, last_sequence)
    assert (second.applied, second.partial) == (0, True)
    assert lists.queue(second, "default", NOW).counts.total == 0
    second.close()


def attached(file: Path, followed: Sequence[Followed]) -> Model:
    model = Model(file, followed=followed)
    model.attach(STREAM, 9)
    return model


def test_a_file_that_was_kept_without_a_feature_is_built_anew_with_it(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    for followed, at_hand in ((FOLLOWED, 0), (FOLLOWED, 9), ((), 0), ((), 9), (FOLLOWED, 0), (FOLLOWED, 9)):
        model = attached(file, followed)
        assert model.applied == at_hand
        model.apply([seen(9, job())])
        model.close()


def test_a_file_of_a_version_that_named_no_features_goes_on_if_it_has_their_tables(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    for followed, at_hand in ((FOLLOWED, 9), ((), 0)):
        model = attached(file, followed)
        model.apply([seen(9, job())])
        model.db.execute("DELETE FROM meta WHERE key = 'features'")
        model.close()
        model = attached(file, FOLLOWED)
        assert model.applied == at_hand
        model.close()


def test_a_file_that_is_none_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    file.write_bytes(b"this is not a database, it only looks like a file" * 100)
    model = Model(file)
    model.attach(STREAM, 0)
    model.apply([seen(1, job())])
    assert lists.queue(model, "default", NOW).counts.available == 1
    model.close()


def test_a_file_of_another_version_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "index.sqlite"
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE jobs (id)")
        db.execute("PRAGMA user_version = 99")
    db.close()
    model = Model(file)
    model.attach(STREAM, 0)
    assert lists.queue(model, "default", NOW).counts.total == 0
    model.close()


def test_a_batch_that_fails_leaves_no_trace() -> None:
    model = fresh()
    model.apply([seen(1, job())])
    model.db.execute("CREATE TRIGGER stop BEFORE INSERT ON counts BEGIN SELECT raise(ABORT, 'full'); END")
    with pytest.raises(sqlite3.DatabaseError, match="full"):
        model.apply([seen(2, job(state=State.ACTIVE)), seen(3, job("job-2"))])
    model.db.execute("DROP TRIGGER stop")
    assert model.applied == 1
    assert lists.queue(model, "default", NOW).counts == Counts(available=1)


def test_a_rebuild_is_partial_until_it_has_reached_where_the_stream_was() -> None:
    model = fresh(last_sequence=10)
    model.apply([seen(4, job())])
    assert (model.partial, model.progress) == (True, 0.4)
    model.reached_end()
    assert (model.partial, model.progress) == (False, 1.0)
    assert model.applied == 4
    model.attach(STREAM, 12)
    assert not model.partial


# What rows say


def test_a_row_says_what_lists_show() -> None:
    model = fresh()
    error = JobError(code="c", type="Boom", message="m", attempt=2, at=NOW)
    full = job(
        state=State.DISCARDED,
        priority=5,
        attempt=2,
        tags=("x", "y"),
        error=error,
        worker="w1",
        dead_letter=True,
        discarded_at=NOW + 9,
        timer=Timer("op", NOW + 50, "reaper"),
    )
    model.apply([seen(1, full)])
    [row] = lists.dead_letters(model, DeadLettersAsk()).jobs
    assert (row.priority, row.attempt, row.tags, row.error_type, row.worker) == (5, 2, ("x", "y"), "Boom", "w1")
    assert (row.finished_at, row.dead_letter, row.state) == (NOW + 9, True, State.DISCARDED)
    assert lists.long_due(model, NOW + 51, 9) == [(NOW + 50, "job-1")]
    assert lists.long_due(model, NOW + 51, 9, (NOW + 50, "job-1")) == []
    assert lists.long_due(model, NOW + 50, 9) == []


def test_only_the_owner_may_read_the_file(tmp_path: Path) -> None:
    model = Model(tmp_path / "index.sqlite")
    model.attach(STREAM, 0)
    model.apply([seen(1, job())])
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    model.close()
    assert modes
    assert set(modes.values()) == {0o600}


def test_a_rebuild_writes_many_batches_at_once_and_loses_none_that_were_whole(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    model = Model(path)
    model.attach(STREAM, 100)
    for n in range(1, 31):
        model.apply([seen(n, job(f"job-{n}"))])
    assert lists.queue(model, "default", NOW).counts == Counts(available=30)
    model.db.close()  # as if killed: what was not saved is read again
    again = Model(path)
    again.attach(STREAM, 100)
    assert (again.partial, again.applied) == (True, 20)
    assert lists.queue(again, "default", NOW).counts == Counts(available=20)
    again.apply([seen(n, job(f"job-{n}")) for n in range(21, 31)])
    again.reached_end()
    asyncio.run(again.make_orders())
    again.close()
    once_more = Model(path)
    once_more.attach(STREAM, 100)
    assert (once_more.partial, once_more.applied) == (False, 30)
    once_more.close()


def test_what_a_crash_takes_from_one_that_follows_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    model = Model(path)
    model.attach(STREAM, 0)
    model.apply([seen(1, job("job-1"))])
    model.save()
    model.apply([seen(2, job("job-2"))])
    model.db.close()
    again = Model(path)
    again.attach(STREAM, 2)
    assert (again.partial, again.applied) == (False, 1)
    again.apply([seen(2, job("job-2"))])
    assert lists.queue(again, "default", NOW).counts == Counts(available=2)
    again.close()


def test_a_batch_that_fails_during_a_rebuild_takes_nothing_else_back(tmp_path: Path) -> None:
    model = Model(tmp_path / "index.sqlite")
    model.attach(STREAM, 100)
    model.apply([seen(1, job("job-1"))])
    model.db.execute("ALTER TABLE queues RENAME TO hidden")
    with pytest.raises(sqlite3.OperationalError, match="queues"):
        model.apply([seen(2, job("job-2"))])
    model.db.execute("ALTER TABLE hidden RENAME TO queues")
    model.apply([seen(3, job("job-3"))])
    assert lists.queue(model, "default", NOW).counts == Counts(available=2)
    model.close()


def test_another_setting_of_the_search_builds_the_index_anew(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    model = Model(path, 100)
    model.attach(STREAM, 0)
    model.apply([seen(1, job())])
    model.close()
    same = Model(path, 100)
    same.attach(STREAM, 1)
    assert same.applied == 1
    same.close()
    other = Model(path, 200)
    other.attach(STREAM, 1)
    assert other.applied == 0
    other.close()


def take_up(model: Model, records: list[Seen]) -> None:
    for start in range(0, len(records), 10):
        model.apply(records[start : start + 10])


@contextmanager
def full(model: Model) -> Iterator[None]:
    """Its disk has no more room."""
    [pages] = model.db.execute("PRAGMA page_count").fetchone()
    model.db.execute(f"PRAGMA max_page_count = {pages}")
    yield
    model.db.execute("PRAGMA max_page_count = 1000000")


@pytest.mark.parametrize("last_sequence", [0, 1_000], ids=["following", "rebuilding"])
def test_where_the_disk_is_full_it_goes_on_from_what_is_saved(tmp_path: Path, last_sequence: int) -> None:
    records = [seen(n, job(f"job-{n}", tags=("t" * 40,))) for n in range(1, 1_001)]
    model = Model(tmp_path / "index.sqlite")
    model.attach(STREAM, last_sequence)
    model.apply(records[:10])
    with full(model), pytest.raises(sqlite3.OperationalError, match="full"):
        take_up(model, records[10:])
    kept = model.applied
    assert 0 <= kept < 1_000
    assert lists.queue(model, "default", NOW).counts == Counts(available=kept)
    model.apply(records[kept:])
    model.reached_end()
    asyncio.run(model.make_orders())
    assert lists.queue(model, "default", NOW).counts == Counts(available=1_000)
    assert jobs.jobs(model, JobsAsk(tag="t" * 40)).total == 1_000
    assert model.db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    model.close()


def test_a_record_that_the_index_can_not_take_takes_no_other_along() -> None:
    model = Model(None)
    model.attach(STREAM, 0)
    # As no guard lets them through: an integer that SQLite has no room for, a text that is none, a member of another type.
    broken = [job("job-2", attempt=2**70), job("job-3", worker="\ud800"), job("job-4", tags=7)]
    torn = [Seen(Record("job", at, NOW, one.id, b"{}", None), one) for at, one in enumerate(broken, 2)]
    model.apply([seen(1, job("job-1")), *torn, seen(5, job("job-5"))])
    assert lists.queue(model, "default", NOW).counts == Counts(available=2)
    found = unreadable(model, UnreadableAsk())
    assert [(row.kind, row.key) for row in found.records] == [("job", "job-2"), ("job", "job-3"), ("job", "job-4")]
    model.apply([seen(6, job("job-3"))])
    assert unreadable(model, UnreadableAsk()).total == 2
    assert lists.queue(model, "default", NOW).counts == Counts(available=3)


def test_unreadable_records_come_by_pages() -> None:
    model = Model(None)
    model.attach(STREAM, 0)
    names = [f"job-{n:02d}" for n in range(7)]
    model.apply([Seen(Record("job", at, NOW, name, b"{", None), None, problem="torn") for at, name in enumerate(names, 1)])
    first = unreadable(model, UnreadableAsk(limit=5))
    rest = unreadable(model, UnreadableAsk(limit=5, cursor=first.next_cursor))
    assert ([row.key for row in (*first.records, *rest.records)], first.total, rest.next_cursor) == (names, 7, None)
    model.apply([Seen(Record("gone", 9, NOW, names[0], b"", None), None)])
    assert unreadable(model, UnreadableAsk()).total == 6
