from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from msgspec import Struct

from ojs_api.crons import DeletedCron, OneCron, TriggeredCron
from ojs_engine.base.payload_limits import PayloadLimits
from ojs_engine.domain.transitions import Moment
from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.members import encode
from ojs_engine.wire.pages import Page
from ojs_features.crons.answers import cron_answer, cron_history, cron_page
from ojs_features.crons.changes import register, switch
from ojs_features.crons.dialects import SHAPES
from ojs_features.crons.requests import parse_registration
from ojs_gateway.dialects.layer import answer_body

NOW = 1_800_000_000_000
BODY = {"name": "n", "cron": "* * * * *", "type": "a.b", "args": [1], "queue": "q", "meta": {"m": 1}}
CRON = register(None, parse_registration(json.dumps(BODY).encode(), PayloadLimits()), Moment(NOW, "op")).record
ENTRY = cron_answer(CRON)
TEMPLATE = {"type": "a.b", "args": [1], "options": {"queue": "q"}, "meta": {"m": 1}}
FOR_SDK = {**TEMPLATE, "cron": "* * * * *", "status": "active"}
FOR_UI = {**TEMPLATE, "id": "n", "schedule": "* * * * *", "queue": "q"}


def read(answer: Struct, reader: Reader) -> Any:
    shape = SHAPES.get(type(answer), {}).get(reader)
    return json.loads(answer_body(answer, reader) if shape is None else encode(shape(answer)))


@pytest.mark.parametrize(
    ("answer", "readers"),
    [
        (OneCron(ENTRY), ("sdk", "cli", "ui")),
        (DeletedCron(ENTRY, deleted=True), ("cli", "ui")),
        (TriggeredCron(job_id="j", cron=ENTRY), ("cli",)),
    ],
)
def test_one_entry_is_dressed_for_each_client_that_asks_for_it(answer: Struct, readers: tuple[str, ...]) -> None:
    standard = read(answer, "standard")
    entry = standard["cron"]
    dressed = {
        "sdk": standard | {"cron": entry | FOR_SDK, "cron_job": entry | FOR_SDK},
        "cli": entry | standard,
        "ui": entry | FOR_UI | standard,
    }
    for reader in get_args(Reader):
        assert read(answer, reader) == (dressed[reader] if reader in readers else standard), reader


def test_a_list_has_every_clients_name() -> None:
    page = cron_page([CRON], Page())
    standard = read(page, "standard")
    [entry] = standard["crons"]
    assert read(page, "sdk") == standard | {name: [entry | FOR_SDK] for name in ("crons", "cron_jobs")}
    assert read(page, "cli") == standard | {"cron_jobs": [entry]}
    assert read(page, "ui") == standard | {"items": [entry | FOR_UI]}


def test_the_command_line_reads_one_state_of_a_run() -> None:
    paused = switch(CRON, False, Moment(NOW + 60_000, "op2"))
    assert paused is not None
    history = cron_history(paused.record, {}, 50)
    [run] = read(history, "standard")["executions"]
    assert read(history, "cli")["executions"] == [run | {"state": "skipped"}]
