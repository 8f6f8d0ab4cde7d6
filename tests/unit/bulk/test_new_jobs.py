from __future__ import annotations

from collections.abc import Callable

import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS, PayloadLimits
from ojs_features.bulk.requests import JobList, parse_batch, parse_bulk_enqueue
from support.tables import each


@each("parse", [parse_batch, parse_bulk_enqueue])
@each("body", [b"{}", b'{"jobs":[]}', b'{"jobs":null}', b'{"jobs":{}}'])
def test_jobs_that_are_no_list_of_some_are_refused_by_name(
    parse: Callable[[bytes, PayloadLimits], JobList], body: bytes
) -> None:
    with pytest.raises(OjsError) as refused:
        parse(body, DEFAULT_LIMITS)
    assert (refused.value.code, refused.value.details["field"]) == ("invalid_request", "jobs")
