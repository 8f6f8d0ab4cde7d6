from __future__ import annotations

from typing import Any

import msgspec

from ojs_engine.domain.job import State
from ojs_engine.domain.transitions import LIVENESS_MS
from ojs_engine.domain.worker import CompleteList, Mark
from ojs_engine.jetstream.feed import Record
from ojs_engine.store.workers.presence import STOPPED, WorkerRecord
from ojs_index.asking.messages import WorkersAsk
from ojs_index.sqlite import workers
from ojs_index.sqlite.model import Model, Seen
from unit.index.samples import NOW, epoch, fresh, job, seen


def beat(sequence: int, worker_id: str, **members: Any) -> Seen:
    record = WorkerRecord(id=worker_id, **({"seen_at": NOW} | members))
    return Seen(
        Record("worker", sequence, NOW, worker_id, msgspec.json.encode(record), 3_600),
        None,
        None,
        record,
    )


def left(sequence: int, worker_id: str) -> Seen:
    return Seen(Record("worker", sequence, NOW, worker_id, b"", None), None)


def names(model: Model, now: int = NOW, **ask: Any) -> list[str]:
    return [row.record.id for row in workers.page(model, WorkersAsk(**ask), now).workers]


def test_workers_are_listed_by_id_with_cursors() -> None:
    model = fresh()
    model.apply([beat(n, f"w{9 - n}") for n in range(1, 9)])
    first = workers.page(model, WorkersAsk(limit=3), NOW)
    assert ([row.record.id for row in first.workers], first.total) == (["w1", "w2", "w3"], 8)
    assert names(model, limit=10, cursor=first.next_cursor) == ["w4", "w5", "w6", "w7", "w8"]
    assert names(model, limit=2, offset=7) == ["w8"]
    assert names(model, id="w5") == ["w5"]


def test_the_last_heartbeat_counts_whatever_is_read_again() -> None:
    model = fresh()
    model.apply([beat(1, "w", state="running"), beat(3, "w", state="quiet", pid=7)])
    model.apply([beat(2, "w", state="terminate")])
    [row] = workers.page(model, WorkersAsk(), NOW).workers
    assert (row.record.state, row.record.pid) == ("quiet", 7)


def test_the_ids_of_a_complete_list_are_not_kept_beside_the_jobs() -> None:
    model = fresh()
    complete = CompleteList(Mark(1, NOW), Mark(2, NOW), frozenset({job("j1").id}))
    model.apply([beat(3, "w", hostname="box", complete=complete)])
    [row] = workers.page(model, WorkersAsk(), NOW).workers
    assert (row.record.hostname, row.record.complete) == ("box", None)


def test_a_worker_that_deregistered_or_left_is_not_there() -> None:
    model = fresh()
    model.apply([beat(1, "a"), beat(2, "b"), beat(3, "c")])
    model.apply([beat(4, "a", state=STOPPED), left(5, "b")])
    assert names(model) == ["c"]
    model.apply([left(2, "c")])
    assert names(model) == ["c"], "an old marker is passed over"


def test_silent_workers_are_stale_and_counted_as_nothing_else() -> None:
    model = fresh()
    later = NOW + LIVENESS_MS + 1
    model.apply(
        [
            beat(1, "gone"),
            *(beat(n, f"w{n}", state=state, seen_at=later) for n, state in enumerate(("running", "quiet", "drain"), 2)),
        ]
    )
    page = workers.page(model, WorkersAsk(), later)
    assert {row.record.id: row.stale for row in page.workers} == {"gone": True, "w2": False, "w3": False, "w4": False}
    summary = msgspec.structs.asdict(page.summary)
    assert summary == {"total": 4, "running": 1, "quiet": 2, "terminate": 0, "stale": 1, "held": 0, "held_by_stale": 0}
    assert names(model, later, state="stale") == ["gone"]
    assert names(model, later, state="running") == ["w2"]


def test_the_jobs_that_a_worker_holds_are_counted() -> None:
    model = fresh()
    model.apply(
        [
            beat(1, "w"),
            seen(2, job("a", State.ACTIVE, worker="w")),
            seen(3, job("b", State.ACTIVE, worker="w")),
            seen(4, job("c", State.ACTIVE, worker="other")),
            seen(5, job("d", State.COMPLETED, worker="w")),
        ]
    )
    page = workers.page(model, WorkersAsk(), NOW)
    assert [row.held for row in page.workers] == [2]
    assert (page.summary.held, page.summary.held_by_stale) == (2, 0)


def test_the_jobs_of_all_workers_are_counted_on_any_page_and_those_of_stale_ones_apart() -> None:
    model = fresh()
    later = NOW + LIVENESS_MS + 1
    model.apply(
        [
            beat(1, "gone"),
            beat(2, "anonymous", seen_at=later, active_jobs=7),
            beat(3, "w", seen_at=later, active_jobs=9),
            *(seen(n, job(f"gone-{n}", State.ACTIVE, worker="gone")) for n in (4, 5)),
            *(seen(n, job(f"w-{n}", State.ACTIVE, worker="w")) for n in (6, 7, 8)),
        ]
    )
    for ask in (WorkersAsk(), WorkersAsk(limit=1), WorkersAsk(state="stale")):
        summary = workers.page(model, ask, later).summary
        assert (summary.held, summary.held_by_stale) == (12, 2)


def test_records_that_left_unseen_are_forgotten_and_a_reset_forgets_all() -> None:
    model = fresh()
    model.apply([beat(1, "w")])
    model.forget(NOW + 3_600_000)
    assert names(model) == ["w"]
    model.forget(NOW + 3_700_000)
    assert names(model) == []
    model.apply([beat(2, "w")])
    model.apply([epoch(3), beat(4, "v")])
    assert names(model) == ["v"]
