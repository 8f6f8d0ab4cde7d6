from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import Struct

from ojs_engine.domain.transitions import Moment
from ojs_engine.wire.dialects.readers import Reader
from ojs_engine.wire.members import bare, encode
from ojs_engine.wire.pages import Page
from ojs_features.workflows.advance import begin
from ojs_features.workflows.answers import (
    StepPage,
    cancelled_workflow,
    one_workflow,
    pages,
    workflow_page,
    workflow_progress,
)
from ojs_features.workflows.dialects import SHAPES
from ojs_features.workflows.graph import Graph
from ojs_features.workflows.index import WorkflowPage as FoundWorkflows
from ojs_features.workflows.index import WorkflowRow
from ojs_features.workflows.record import Workflow
from unit.workflows.definitions import batch, chain, group, job, parsed

WF = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


def read(answer: Struct, reader: Reader) -> Any:
    """Return an answer as a reader gets it."""
    shape = SHAPES.get(type(bare(answer)), {}).get(reader)
    return json.loads(encode(answer if shape is None else shape(answer)))


def begun(definition: Any) -> tuple[Graph, Workflow]:
    graph = parsed(definition).graph
    return graph, begin(graph, WF, "n", Moment(1_800_000_000_000, "op"))


def whole(definition: Any) -> Struct:
    graph, record = begun(definition)
    return one_workflow(graph, record, {}, pages(graph, StepPage(0, 10)))


@pytest.mark.parametrize(
    ("definition", "counted"),
    [(chain(job("a.b"), job("a.c")), "steps"), (group(job(), job()), "jobs"), (batch(job(), job(), on_complete=job()), "jobs")],
)
def test_members_are_counted_under_one_name(definition: Any, counted: str) -> None:
    workflow = read(whole(definition), "standard")["workflow"]
    numbers = {name: value for name, value in workflow.items() if name.endswith(("_total", "_completed"))}
    assert numbers == {f"{counted}_total": 2, f"{counted}_completed": 0}
    assert len(workflow["steps"]) == 2


@pytest.mark.parametrize(("make", "readers"), [(cancelled_workflow, ("sdk", "cli", "ui")), (workflow_progress, ("ui",))])
def test_official_clients_need_not_unwrap(make: Callable[[Graph, Workflow], Struct], readers: tuple[Reader, ...]) -> None:
    answer = make(*begun(chain(job(), job())))
    standard = read(answer, "standard")
    assert set(standard) == {"workflow"}
    for reader in readers:
        shown = read(answer, reader)
        assert shown.items() >= shown["workflow"].items()
        assert shown["workflow"].keys() >= standard["workflow"].keys()


def test_each_client_finds_its_names_in_a_workflow() -> None:
    answer = whole(chain(job("a.b"), group(job("a.c"), job("a.d"))))
    workflow = read(answer, "standard")["workflow"]
    assert read(answer, "cli") == {"workflow": workflow} | workflow
    assert read(answer, "sdk")["metadata"] == workflow["metadata"] | {"created_at": workflow["created_at"]}
    first, fan = read(answer, "ui")["steps"]
    assert first == workflow["steps"][0] | {"job_ids": [workflow["steps"][0]["job_id"]]}
    assert (fan["steps_total"], fan["jobs_total"]) == (2, 2)
    graph, record = begun(chain(job(), job()))
    assert read(cancelled_workflow(graph, record), "cli")["cancelled_steps"] == 0
    assert read(workflow_progress(graph, record), "ui")["workflow_id"] == WF


def test_sdks_find_callbacks_among_the_steps() -> None:
    answer = whole(batch(job("a.b"), job("a.c"), on_complete=job("c.d")))
    workflow = read(answer, "standard")["workflow"]
    assert ([step["type"] for step in workflow["steps"]], workflow["callbacks"]["on_complete"]["depends_on"]) == (
        ["a.b", "a.c"],
        [],
    )
    shown = read(answer, "sdk")
    called = shown["steps"][-1]
    assert shown["steps"] == shown["workflow"]["steps"] == [*workflow["steps"], called]
    assert (called["id"], called["type"], called["depends_on"]) == ("on_complete", "c.d", ["0", "1"])


def test_a_list_counts_as_each_client_does() -> None:
    rows = [WorkflowRow(id=WF, name="n", kind="group", state="running", steps=3, steps_completed=1, created_at=1)]
    page = workflow_page(FoundWorkflows(workflows=rows, total=1), Page())
    standard = read(page, "standard")
    [row] = standard["workflows"]
    assert (row["jobs_total"], row["jobs_completed"], set(standard)) == (3, 1, {"workflows", "pagination"})
    assert read(page, "cli") == standard | {"workflows": [row | {"step_count": 3}], "total": 1}
    assert read(page, "ui") == standard | {"items": [row | {"steps_total": 3, "steps_completed": 1}]}
