from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from ojs_engine.operations.dead_letters import DeadLettersChanged
from ojs_engine.wire.dialects.layer import answer_body
from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.jobs.bulk import pushed_batch
from ojs_engine.wire.jobs.dead_letters import retried_dead_letters


def read(answer: Struct, reader: Reader) -> Any:
    return json.loads(answer_body(answer, reader))


def test_the_command_line_reads_how_many_jobs_of_a_batch_are_new() -> None:
    answer = pushed_batch([b'{"id":1}', b'{"id":2}'], [1], [])
    assert read(answer, "standard") == {"jobs": [{"id": 1}, {"id": 2}], "count": 2, "deduplicated": [1]}
    assert read(answer, "cli") == read(answer, "standard") | {"enqueued": 1, "failed": 0}


def test_the_admin_ui_reads_of_dead_letters_what_it_reads_of_other_jobs() -> None:
    outcome = DeadLettersChanged(matched=5, done=2, skipped=1, errors=[("j", "why")])
    standard = {"total_matched": 5, "skipped": 1, "remaining": 2, "errors": [{"job_id": "j", "error": "why"}]}
    summary = {"matched": 3, "succeeded": 2, "failed": 1}
    assert read(retried_dead_letters(outcome), "standard") == standard | {"retried": 2}
    assert read(retried_dead_letters(outcome), "ui") == standard | {"retried": 2, "action": "retry"} | summary
