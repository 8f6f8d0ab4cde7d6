from __future__ import annotations

import json
from typing import Any

from ojs_api.bulk import PushedBatch
from ojs_engine.wire.members import encode
from ojs_features.bulk.answers import pushed_batch
from ojs_features.bulk.dialects import SHAPES


def test_the_command_line_reads_how_many_jobs_of_a_batch_are_new() -> None:
    answer = pushed_batch([b'{"id":1}', b'{"id":2}'], [1], [])
    standard: dict[str, Any] = {"jobs": [{"id": 1}, {"id": 2}], "count": 2, "deduplicated": [1]}
    assert json.loads(encode(answer)) == standard
    assert json.loads(encode(SHAPES[PushedBatch]["cli"](answer))) == standard | {"enqueued": 1, "failed": 0}
