"""Each plain member of a job is read, checked and shown as the table says; a new row is tested without a new test."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.job import Job
from ojs_engine.wire.jobs.enqueue import parse_enqueue
from ojs_engine.wire.jobs.job import job_view
from ojs_engine.wire.members import encode
from support.plain_members import PLAIN, REFUSED, SENT, plain, stored
from support.tables import each


def parsed(**members: Any) -> Job:
    return parse_enqueue(encode({"type": "a", "args": []} | members), 0, DEFAULT_LIMITS)


@each("flat", [True, False])
def test_it_is_stored_and_shown_as_it_was_sent(flat: bool) -> None:
    job = parsed(**plain(SENT)) if flat else parsed(options=plain(SENT))
    assert {name: getattr(job, name) for name in PLAIN} == stored(SENT)
    assert job.extra == {}
    shown = msgspec.json.decode(encode(job_view(job)))
    assert {name: shown[name] for name in PLAIN} == plain(SENT)


@each("name, value", [(name, value) for name, kind in PLAIN.items() for value in REFUSED[kind]])
@each("within", ["", "options."])
def test_a_value_of_another_kind_is_refused_by_the_members_name(name: str, value: Any, within: str) -> None:
    with pytest.raises(OjsError, match=re.escape(f"{within}{name}")) as refused:
        parsed(**({"options": {name: value}} if within else {name: value}))
    assert refused.value.code == "invalid_request"
