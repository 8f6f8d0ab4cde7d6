from __future__ import annotations

import pytest
from msgspec import Raw

from ojs_engine.base.errors import OjsError
from ojs_engine.store.workers.notes import Directive
from ojs_engine.store.workers.presence import WorkerRecord
from ojs_engine.wire.members import written
from ojs_index.asking.messages import WorkerRow
from ojs_index.lists.fleet import parse_wish, worker_answer

NOW = 1_800_000_000_000


def test_a_worker_that_fetches_without_its_name_still_says_what_it_has() -> None:
    record = WorkerRecord(id="w", active_jobs=4, labels=Raw(b'{"zone":"a"}'), seen_at=NOW)
    answer = worker_answer(WorkerRow(record=record), None)
    assert (answer.active_jobs, answer.labels, answer.directive) == (4, record.labels, "none")
    assert answer.directive_at is None
    assert worker_answer(WorkerRow(record=record, held=2), None).active_jobs == 2


def test_a_stale_worker_is_shown_as_such_with_what_it_was_told() -> None:
    row = WorkerRow(record=WorkerRecord(id="w", state="quiet", seen_at=NOW), stale=True)
    answer = worker_answer(row, Directive("terminate", NOW))
    assert (answer.state, answer.directive) == ("stale", "terminate")
    assert answer.directive_at == written("2027-01-15T08:00:00.000Z")
    assert answer.labels is None


@pytest.mark.parametrize("body", [b"", b'{"directive":"QUIET"}'])
def test_an_unknown_directive_is_refused(body: bytes) -> None:
    with pytest.raises(OjsError) as refused:
        parse_wish(body)
    assert refused.value.details["field"] == "directive"
