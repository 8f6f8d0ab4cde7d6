"""What a channel has the hub bring, and what it tells of that."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.domain.events.envelope import Event
from ojs_engine.domain.events.vocabulary import ENTERED
from ojs_engine.jetstream.event_reader import EventFilter, StoredEvent
from ojs_engine.wire.members import encode
from ojs_features.events.channels import channel_of, cursor_of, ends, resumed
from support.tables import each

JOB = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


def event(event_type: str, sequence: int = 41, queue: str = "q", job_type: str = "t", **states: str) -> StoredEvent:
    data: dict[str, Any] = {"job_id": JOB, "job_type": job_type, "queue": queue, **states}
    body = encode(Event(id="evt_1", type=event_type, time="T", subject=JOB, data=data))
    return StoredEvent(sequence, event_type, queue, JOB, body)


STARTED = event("job.started", state="active", previous_state="available")
FAILED = event("job.failed", state="available", previous_state="active")
RETRYING = event("job.retrying", state="available", previous_state="active")
BACK = event("job.enqueued", state="available", previous_state="active")
PUSHED = event("job.enqueued", state="available")
MOVED = event("job.enqueued", state="available", previous_state="available")
OLD = event("job.started")
BEAT = event("job.heartbeat", 0)


def told(channel: str, given: StoredEvent, **query: str) -> list[tuple[str, str]]:
    return [(one.type, one.id) for one in channel_of(channel, query).messages(given, 40)]


@pytest.mark.parametrize("channel", [f"job:{JOB}", "queue:q", "all"])
def test_a_change_of_state_comes_ahead_of_its_event_with_an_id_that_leads_to_both(channel: str) -> None:
    assert told(channel, STARTED) == [("job.state_changed", "40.5"), ("job.started", "41")]
    assert cursor_of("40.5", "x") == 40
    assert told(channel, STARTED, types="job.state_changed") == [("job.state_changed", "41")]
    assert told(channel, STARTED, event_types="job.started") == [("job.started", "41")]
    assert told(channel, STARTED, type="job.failed") == []


@pytest.mark.parametrize("channel", [f"job:{JOB}", "queue:q", "all"])
def test_a_client_that_has_got_a_change_of_state_goes_on_with_its_event(channel: str) -> None:
    def after(last_event_id: str) -> list[str]:
        return [one.id for one in resumed(channel_of(channel, {}), last_event_id).messages(STARTED, 40)]

    assert after("40.5") == ["41"], "the change of state isn't told again"
    assert after("40") == ["40.5", "41"]
    assert after("39.5") == ["40.5", "41"]


def test_a_change_of_state_says_what_the_specification_asks_for() -> None:
    [change, _] = channel_of("all", {}).messages(STARTED, 40)
    assert json.loads(change.data) == {
        "job_id": JOB,
        "queue": "q",
        "type": "t",
        "from": "available",
        "to": "active",
        "timestamp": "T",
    }


def test_of_the_events_of_one_entry_one_tells_the_change() -> None:
    changes = [told("all", one, types="job.state_changed") for one in (FAILED, RETRYING, BACK)]
    assert changes == [[], [], [("job.state_changed", "41")]]


@pytest.mark.parametrize("given", [PUSHED, MOVED, OLD])
def test_what_changes_no_state_or_does_not_say_it_is_no_change(given: StoredEvent) -> None:
    assert told("all", given) == [(given.type, "41")]


@each(
    ("channel", "types", "heard"),
    [
        ("all", "", True),
        ("all", "job.*", True),
        ("all", "job.completed", False),
        (f"job:{JOB}", "", True),
        ("queue:q", "worker.*,job.heartbeat", True),
        ("events", "", False),
        ("events", "job.*", False),
        ("events", "job.heartbeat", True),
    ],
)
def test_live_events_are_in_the_channels_of_realtime_and_elsewhere_by_name(channel: str, types: str, heard: bool) -> None:
    followed = channel_of(channel, {"types": types})
    assert followed.hears is heard
    assert [(one.type, one.id) for one in followed.messages(BEAT, 40)] == ([("job.heartbeat", "40")] if heard else [])


def test_a_live_event_has_its_data_beside_it_too() -> None:
    [beat] = channel_of("all", {}).messages(BEAT, 40)
    body = json.loads(beat.data)
    assert body == json.loads(BEAT.body) | {"job_id": JOB, "job_type": "t", "queue": "q", "timestamp": "T"}


def test_the_hub_is_asked_for_what_changes_are_made_of() -> None:
    assert set(channel_of("all", {"types": "job.state_changed"}).source.types) == {"job.state_changed", *ENTERED}
    assert channel_of("events", {"types": "job.failed"}).source == EventFilter(types=("job.failed",))
    assert channel_of("queue:q", {}).source == EventFilter(queues=("q",))


def test_of_a_job_everything_is_needed_to_see_its_end_and_what_fits_is_sent() -> None:
    query = {"types": "job.started", "queues": "other", "job_types": "t"}
    assert channel_of(f"job:{JOB}", query).source == EventFilter(subject_id=JOB)
    assert told(f"job:{JOB}", STARTED, **query) == []
    assert told(f"job:{JOB}", STARTED, **query | {"queues": "q"}) == [("job.started", "41")]


def test_a_job_ends_in_a_terminal_state() -> None:
    ended = {event_type for event_type in ENTERED if ends(event_type)}
    assert ended == {"job.completed", "job.cancelled", "job.discarded"}
    assert ends("job.started") is False
    assert ends("result.stored") is None


@pytest.mark.parametrize("name", ["", "job:", "queue:", "jobs", "ALL", "queue:a b"])
def test_other_channels_are_refused(name: str) -> None:
    with pytest.raises(OjsError) as refused:
        channel_of(name, {})
    assert refused.value.code == "invalid_request"


@pytest.mark.parametrize("text", ["", "-1", "1.4", "40.55", "evt_1", "1" * 19])
def test_what_is_no_cursor_is_refused(text: str) -> None:
    with pytest.raises(OjsError):
        cursor_of(text, "after")
