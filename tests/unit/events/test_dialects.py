from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from ojs_api.events import EventPage
from ojs_engine.domain.events.envelope import Event
from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.members import encode, written
from ojs_features.events.dialects import SHAPES, event_body

STORED = encode(Event(id="evt_1", type="job.started", time="T", subject="j", data={"job_id": "j", "queue": "q", "attempt": 1}))
MORE: dict[Reader, dict[str, Any]] = {
    "standard": {},
    "sdk": {"event": "job.started", "timestamp": "T"},
    "cli": {"event": "job.started", "job_id": "j", "queue": "q"},
    "ui": {"timestamp": "T"},
}


@pytest.mark.parametrize("reader", MORE)
def test_an_event_is_dressed_for_each_client(reader: Reader) -> None:
    assert json.loads(event_body(STORED, reader)) == json.loads(STORED) | MORE[reader]


def test_an_event_of_before_that_has_both_names_has_them_once() -> None:
    before = STORED[:-1] + b',"event":"job.started","timestamp":"T"}'
    assert event_body(before, "sdk").count(b'"timestamp"') == 1


def test_an_event_that_is_about_no_job_has_none_to_lift() -> None:
    stored = encode(Event(id="evt_1", type="worker.started", time="T", subject="w", data={"worker_id": "w"}))
    assert json.loads(event_body(stored, "cli")) == json.loads(stored) | {"event": "worker.started"}


def test_the_admin_ui_finds_the_list_under_its_name() -> None:
    page = EventPage(events=written([Raw(STORED)]), cursor="1", has_more=False)
    body = json.loads(encode(SHAPES[EventPage]["ui"](page)))
    assert body["items"] == body["events"] == [json.loads(STORED) | MORE["ui"]]
