from __future__ import annotations

import json
from typing import Any

from ojs_api.dead_letters import RetriedDeadLetters
from ojs_engine.wire.members import encode
from ojs_features.dead_letters.answers import retried_dead_letters
from ojs_features.dead_letters.changes import DeadLettersChanged
from ojs_features.dead_letters.dialects import SHAPES


def test_the_admin_ui_reads_of_dead_letters_what_it_reads_of_other_jobs() -> None:
    answer = retried_dead_letters(DeadLettersChanged(matched=5, done=2, skipped=1, errors=[("j", "why")]))
    errors = [{"job_id": "j", "error": "why"}]
    standard: dict[str, Any] = {"total_matched": 5, "skipped": 1, "remaining": 2, "errors": errors, "retried": 2}
    summary = {"action": "retry", "matched": 3, "succeeded": 2, "failed": 1}
    assert json.loads(encode(answer)) == standard
    assert json.loads(encode(SHAPES[RetriedDeadLetters]["ui"](answer))) == standard | summary
