from __future__ import annotations

from ojs_engine.jetstream.feed import Record
from ojs_features.unique.index import Suspect, settle, suspects
from ojs_features.unique.locks import Lock
from ojs_features.unique.plug import UNIQUE
from ojs_index.sqlite.model import Model, Seen
from unit.index.samples import NOW, STREAM, epoch

MINUTE = 60_000


def fresh() -> Model:
    model = Model(None, followed=UNIQUE.followed)
    model.attach(STREAM, 0)
    return model


def lock(sequence: int, key: str, owner: str | None, ttl_s: int | None = None) -> Seen:
    held = None if owner is None else Lock(owner, "o", 1)
    return Seen(Record("unique", sequence, NOW + sequence, key, b"" if held is None else b"{}", ttl_s), None, held)


def keys(model: Model, at: int) -> list[str]:
    return [suspect.key for suspect in suspects(model.db, at, 9)]


def test_a_lock_is_looked_at_a_minute_after_it_was_written_unless_it_leaves_by_itself() -> None:
    model = fresh()
    model.apply([lock(1, "a", "x"), lock(2, "b", "y", 60), lock(3, "c", "z")])
    assert keys(model, NOW + MINUTE) == []
    assert keys(model, NOW + MINUTE + 3) == ["a", "c"]
    model.apply([lock(4, "a", "x", 60), lock(5, "c", None)])
    assert keys(model, NOW + 9 * MINUTE) == []


def test_an_older_revision_changes_nothing_and_a_reset_takes_all() -> None:
    model = fresh()
    model.apply([lock(5, "a", "x")])
    model.apply([lock(4, "a", "y", 60), lock(3, "a", None)])
    assert keys(model, NOW + 9 * MINUTE) == ["a"]
    model.apply([epoch(6), lock(7, "b", "x")])
    assert keys(model, NOW + 9 * MINUTE) == ["b"]


def test_what_was_found_is_not_noted_if_the_index_has_heard_of_a_change_meanwhile() -> None:
    model = fresh()
    model.apply([lock(1, "a", "x"), lock(2, "b", "y"), lock(3, "c", "z")])
    first, second, third = suspects(model.db, NOW + 9 * MINUTE, 9)
    model.apply([lock(4, "a", "x")])
    settle(model.db, first, "held", NOW)
    settle(model.db, second, "held", NOW)
    settle(model.db, third, "gone", NOW)
    assert suspects(model.db, NOW + 9 * MINUTE, 9) == [Suspect("a", 4, NOW + 4 + MINUTE)]


def test_one_that_was_let_go_is_looked_at_again_if_nothing_is_heard_of_it() -> None:
    model = fresh()
    model.apply([lock(1, "a", "x")])
    (suspect,) = suspects(model.db, NOW + 2 * MINUTE, 9)
    settle(model.db, suspect, "let go", NOW + 3 * MINUTE)
    assert keys(model, NOW + 2 * MINUTE) == []
    assert keys(model, NOW + 3 * MINUTE) == ["a"]


def test_a_record_that_is_no_lock_stops_nothing() -> None:
    model = fresh()
    model.apply([Seen(Record("unique", 1, NOW, "a", b"{}", None), None), lock(2, "b", "x")])
    assert keys(model, NOW + 9 * MINUTE) == ["b"]


def test_rows_of_locks_that_have_left_are_forgotten() -> None:
    model = fresh()
    model.apply([lock(1, "a", "x", 60)])
    model.forget(NOW + MINUTE)
    assert model.db.execute("SELECT count(*) FROM locks").fetchone() == (1,)
    model.forget(NOW + 2 * MINUTE)
    assert model.db.execute("SELECT count(*) FROM locks").fetchone() == (0,)
