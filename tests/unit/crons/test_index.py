from __future__ import annotations

from typing import Final, cast

import msgspec
import pytest
from msgspec.structs import replace

from ojs_engine.jetstream.feed import Record
from ojs_engine.store.store import Store
from ojs_features.crons.index import overdue
from ojs_features.crons.plug import CRONS
from ojs_features.crons.record import Cron, CronTimer
from ojs_index.relaying.event_sources import EventSources
from ojs_index.sqlite.model import Model, Seen
from unit.crons.samples import entry, fired
from unit.index.samples import NOW, STREAM, epoch

ENTRY = entry()


told_of: Final = EventSources(cast("Store", None), CRONS.followed).of


def seen_cron(sequence: int, token: str, cron: Cron | None) -> Seen:
    data = b"" if cron is None else msgspec.json.encode(cron)
    return Seen(Record("cron", sequence, NOW + sequence, token, data, None), None, cron)


def fresh() -> Model:
    model = Model(None, followed=CRONS.followed)
    model.attach(STREAM, 0)
    return model


def due(time: int) -> Cron:
    return replace(ENTRY, timer=CronTimer("op", time))


def test_overdue_entries_come_in_portions_by_name() -> None:
    model = fresh()
    model.apply([seen_cron(n, token, due(NOW + n)) for n, token in enumerate("cabd", 1)])
    assert overdue(model.db, NOW + 4, "", 2) == ["a", "b"]
    assert overdue(model.db, NOW + 4, "b", 2) == ["c"]
    assert overdue(model.db, NOW + 1, "", 2) == []


@pytest.mark.parametrize("after", [None, replace(ENTRY, timer=None)], ids=["it left", "it was paused"])
def test_an_entry_that_wants_nothing_is_never_overdue(after: Cron | None) -> None:
    model = fresh()
    model.apply([seen_cron(1, "a", due(NOW)), seen_cron(2, "b", due(NOW))])
    model.apply([seen_cron(3, "a", after)])
    assert overdue(model.db, NOW + 1, "", 9) == ["b"]


def test_an_older_revision_is_passed_over_and_a_reset_forgets() -> None:
    model = fresh()
    model.apply([seen_cron(5, "a", due(NOW + 50))])
    model.apply([seen_cron(4, "a", due(NOW))])
    model.apply([seen_cron(4, "a", None)])
    assert overdue(model.db, NOW + 10, "", 9) == []
    assert overdue(model.db, NOW + 99, "", 9) == ["a"]
    model.apply([epoch(6)])
    assert overdue(model.db, NOW + 99, "", 9) == []


def test_the_relay_is_told_by_encoded_name_from_the_first_entry_that_is_kept() -> None:
    cron = replace(fired(ENTRY, 0).record, name="a.b")
    told = told_of(seen_cron(1, "a=2Eb", cron))
    assert told is not None
    assert (told.id, told.scope, told.created_at, told.first) == ("a=2Eb", "cron", cron.created_at, 1)
    assert [event.type for event in told.events(told.entries[0])] == ["cron.triggered"]
    cut = told_of(seen_cron(2, "a=2Eb", replace(cron, log=(replace(cron.log[0], n=7),))))
    empty = told_of(seen_cron(3, "a=2Eb", replace(cron, log=())))
    assert cut is not None
    assert empty is not None
    assert (cut.first, empty.first) == (7, 0)
