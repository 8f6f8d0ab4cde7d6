from __future__ import annotations

import msgspec

from ojs_engine.base.ids import is_job_id
from ojs_engine.domain.job import State
from ojs_features.crons.changes import switch
from ojs_features.crons.events import events_of_cron
from unit.crons.samples import MINUTE, at, entry, fired


def test_a_run_is_cron_triggered() -> None:
    record = fired(entry(), 123).record
    (event,) = events_of_cron(record, record.log[0])
    assert (event.type, event.subject, event.time) == ("cron.triggered", "nightly", "2027-01-15T08:00:00.123Z")
    assert event.data == {
        "cron_name": "nightly",
        "cron_expr": "* * * * *",
        "timezone": "UTC",
        "job_type": "test.job",
        "queue": "default",
        "scheduled_at": "2027-01-15T08:00:00.000Z",
        "job_id": record.last_job,
        "run_count": 1,
        "actual_time": "2027-01-15T08:00:00.123Z",
        "manual": False,
    }


def test_an_occurrence_in_the_way_of_another_is_cron_skipped() -> None:
    record = fired(fired(entry(), 0).record, MINUTE, State.ACTIVE).record
    (event,) = events_of_cron(record, record.log[-1])
    assert event.type == "cron.skipped"
    assert event.data["reason"] == "overlap_skip"
    assert event.data["existing_job_id"] == record.last_job
    assert event.data["scheduled_at"] == "2027-01-15T08:01:00.000Z"


def test_what_a_pause_takes_along_is_cron_skipped() -> None:
    step = switch(entry(), False, at(5))
    assert step is not None
    (event,) = events_of_cron(step.record, step.record.log[-1])
    assert (event.type, event.data["reason"]) == ("cron.skipped", "disabled")
    assert "existing_job_id" not in event.data


def test_an_events_id_is_its_own_and_stays() -> None:
    first = fired(entry(), 0).record
    second = fired(first, MINUTE, State.COMPLETED).record
    ids = [event.id for run in second.log for event in events_of_cron(second, run)]
    assert ids[0] == events_of_cron(first, first.log[0])[0].id
    assert len(set(ids)) == 2
    assert all(is_job_id(id_.removeprefix("evt_")) for id_ in ids)
    assert msgspec.json.decode(msgspec.json.encode(events_of_cron(first, first.log[0])[0]))["specversion"] == "1.0"
