"""What compositions become, and what their results are."""

from __future__ import annotations

from datetime import date
from typing import Any, Unpack

import pytest

from ojs_nats import OjsError, _flows, batch, chain, group
from ojs_nats._hooks import ClientHooks
from ojs_nats._results import Results
from ojs_nats.jobs import JobRequest
from ojs_nats.models.workflows import WorkflowStep
from ojs_nats.options import Options
from ojs_nats.workflows import Dag, Flow

PLAIN = Results(ClientHooks())


def a(*args: Any, **options: Unpack[Options]) -> JobRequest[Any]:
    return JobRequest("t.a", args, options)


def job(*args: Any, **options: Any) -> dict[str, Any]:
    return {"type": "t.a", "args": list(args), "options": options}


def ended(name: str = "0", result: Any = None, state: str = "completed", **nested: Any) -> WorkflowStep:
    return WorkflowStep(id=name, index=0, type="t", state=state, depends_on=[], result=result, **nested)


@pytest.mark.parametrize(
    ("flow", "wire"),
    [
        (chain(a(1), a(2, queue="q")), {"type": "chain", "steps": [job(1), job(2, queue="q")]}),
        (group(a(1)).named("some"), {"type": "group", "jobs": [job(1)], "name": "some"}),
        (
            batch(a(1), a(2), on_failure=a(3)),
            {"type": "batch", "jobs": [job(1), job(2)], "callbacks": {"on_failure": job(3)}},
        ),
        (
            chain(a(1), group(a(2), chain(a(3), a(4)))),
            {
                "type": "chain",
                "steps": [job(1), {"type": "group", "jobs": [job(2), {"type": "chain", "steps": [job(3), job(4)]}]}],
            },
        ),
    ],
)
def test_a_composition_is_what_the_server_takes(flow: Flow[Any], wire: dict[str, Any]) -> None:
    assert _flows.wire(flow) == wire


def test_a_dag_names_what_its_steps_come_after() -> None:
    flow = Dag("report")
    first, second = flow.add(a(1)), flow.add(group(a(2), a(3)), id="both")
    flow.add(a(4), after=[first, second])
    flow.add(a(5), after=[first], when="failure")
    assert _flows.wire(flow) == {
        "name": "report",
        "steps": [
            job(1) | {"id": "0"},
            {"type": "group", "jobs": [job(2), job(3)], "id": "both"},
            job(4) | {"id": "2", "depends_on": ["0", "both"]},
            job(5, callback_type="on_failure") | {"id": "3", "depends_on": ["0"]},
        ],
    }
    both = ended("both", jobs_total=2, steps=[ended("0", 2), ended("1", 3)])
    assert _flows.read(flow, [ended("0", 1), both, ended("2", 6)], PLAIN) == {"0": 1, "both": [2, 3], "2": 6}


def test_results_have_the_shape_and_the_types_of_the_composition() -> None:
    day: JobRequest[date] = JobRequest("t.day", returns=date)
    assert _flows.read(chain(a(1), day), [ended("0", 1), ended("1", "2026-11-24")], PLAIN) == date(2026, 11, 24)
    assert _flows.read(batch(a(1), a(2), on_complete=a(3)), [ended("0", 1), ended("1", state="failed")], PLAIN) == [1, None]
    nested = ended("1", steps_total=2, steps=[ended("0", 2), ended("1", 3)])
    assert _flows.read(group(a(1), chain(a(2), a(3))), [ended("0", 1), nested], PLAIN) == [1, 3]
    with pytest.raises(OjsError, match="more steps nested"):
        _flows.read(group(chain(a(1), a(2))), [ended("0", steps_total=2, steps=[ended("0", 1)])], PLAIN)


def test_what_can_t_be_a_workflow_is_told_where_it_is_written() -> None:
    flow, other = Dag(), Dag()
    first = flow.add(a(1), id="x")
    for wrong in (
        lambda: flow.add(a(2), id="x"),
        lambda: other.add(a(2), after=[first]),
        lambda: flow.add(chain(a(1)), when="success"),
        lambda: batch(a(1)),
        lambda: _flows.wire(other),
        lambda: chain(*list[JobRequest[Any]]()),
        group,
    ):
        with pytest.raises(ValueError, match=r"already|no step|must be a job|needs"):
            wrong()
