"""The line of each transition, and that nobody pays for it who doesn't read it."""

from __future__ import annotations

import io
import json
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec import Raw
from msgspec.structs import replace

from ojs_engine.domain.job import Membership
from ojs_engine.domain.transitions.result import Transition
from ojs_engine.store.records.commit import Committer
from ojs_engine.telemetry import transitions
from ojs_runtime import logs
from unit.domain.transitions.samples import active, available, dead_letter

pytestmark = pytest.mark.usefixtures("logging_kept")


def configured(level: str) -> io.StringIO:
    out = io.StringIO()
    logs.configure(service="gateway", instance="host:1", log_format="json", level=level, stream=out)
    return out


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def stored(job: Any) -> None:
    """What a committer does once a transition is stored."""
    Committer.stored(cast("Committer", SimpleNamespace()), Transition(job), job.transitions[-1].op)


def test_a_transition_is_told_in_the_fields_of_the_specification() -> None:
    out = configured("debug")
    secret = Raw(b'"hunter2"')
    member = Membership(id="wf", node=1, kind="chain", step="s", index=1, size=3)
    stored(active(args=secret, meta=Raw(b'{"trace_id":"t","own":"hunter2"}'), workflow=member))
    [line] = lines(out)
    assert line["timestamp"].endswith("Z")
    told = {name: line[name] for name in ("severity", "severity_number", "message", "category", "component", "ojs", "trace")}
    assert told == {
        "severity": "DEBUG",
        "severity_number": 5,
        "message": "job transition",
        "category": "lifecycle",
        "component": "server",
        "ojs": {
            "job_id": "job-1",
            "job_type": "test.job",
            "queue": "default",
            "attempt": 1,
            "state": "active",
            "worker_id": "w1",
            "workflow_id": "wf",
        },
        "trace": {"trace_id": "t"},
    }
    assert line["attributes"] == {"transition": "claimed"}
    assert "hunter2" not in out.getvalue()


def test_a_job_without_trace_worker_or_workflow_names_none() -> None:
    out = configured("debug")
    stored(available())
    [line] = lines(out)
    assert line["ojs"] == {"job_id": "job-1", "job_type": "test.job", "queue": "default", "attempt": 0, "state": "available"}
    assert "trace" not in line


def test_what_a_failure_said_is_not_logged() -> None:
    out = configured("debug")
    stored(dead_letter())
    [line] = lines(out)
    assert (line["ojs"]["state"], line["attributes"]) == ("discarded", {"transition": "failed"})


def test_a_record_that_is_written_without_a_transition_is_no_line() -> None:
    out = configured("debug")
    transitions.log_transition(available(), "another op")
    assert lines(out) == []


def test_at_info_no_line_is_made() -> None:
    unreadable = replace(available(), meta=cast("Raw", None))
    out = configured("info")
    stored(unreadable)
    assert out.getvalue() == ""
    configured("debug")
    with pytest.raises(TypeError):  # a line that is made needs what can't be read
        stored(unreadable)
