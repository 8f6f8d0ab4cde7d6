from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from ojs_engine.base.errors import OjsError
from ojs_engine.base.payload_limits import DEFAULT_LIMITS
from ojs_engine.domain.job import State
from ojs_features.workflows.requests import parse_workflow, workflow_id_of
from support.tables import each
from unit.workflows.definitions import NOW, batch, chain, dag, group, job, parsed, tree

ALL = ["step-0", "step-1"]


def python_batch() -> dict[str, Any]:
    called = [
        {"id": name, **job(name.replace("_", "-")), "depends_on": ALL, "options": {"callback_type": name, "queue": "back"}}
        for name in ("on_complete", "on_failure")
    ]
    return {"name": "b", "steps": [{"id": name, **job(), "depends_on": []} for name in ALL] + called}


def go_batch() -> dict[str, Any]:
    called = [{"id": name, **job(name), "depends_on": ["job-0", "job-1"]} for name in ("on-complete", "on-success")]
    members = [{"id": name, **job(), "depends_on": []} for name in ("job-0", "job-1")]
    return {"name": "b", "steps": members + called, "options": {"queue": "go"}}


@each(
    ("definition", "expected"),
    [
        (chain(job("x"), job("y")), ("chain", "x", "y")),
        (group(job("x"), job("y")), ("group", "x", "y")),
        (batch(job("x"), on_failure=job("f"), on_complete=job("c")), ("batch", "x", "c", "f")),
        (dag(a=""), ("chain", "a")),
        (dag(a="", b="a", c="b"), ("chain", "a", "b", "c")),
        (dag(a="", b="", c=""), ("group", "a", "b", "c")),
        (dag(a="", b="a", c="a", d="b c"), ("dag", "a", "b", "c", "d")),
        (dag(b="a", a=""), ("dag", "b", "a")),
        (python_batch(), ("batch", "a.b", "a.b", "on-complete", "on-failure")),
        ({"type": "group", "tasks": [job("x"), job("y")]}, ("group", "x", "y")),
        ({"type": "batch", "tasks": [job("x")], "on_complete": job("callback")}, ("batch", "x", "callback")),
        (go_batch(), ("batch", "a.b", "a.b", "on-complete", "on-success")),
        (chain(job("x"), group(job("y"), chain(job("z")))), ("chain", "x", ("group", "y", ("chain", "z")))),
        (chain(dag(a="", b="")), ("chain", ("group", "a", "b"))),
        (chain(job("chain"), job("group")), ("chain", "chain", "group")),
        ({"workflow": chain(job("x"))}, ("chain", "x")),
    ],
)
def test_every_dialect_becomes_the_same_graph(definition: Any, expected: Any) -> None:
    assert tree(parsed(definition).graph) == expected


def test_nesting_works_in_all_combinations_as_deep_as_is_documented() -> None:
    definition: Any = job("leaf")
    makers: list[Callable[[Any], Any]] = [
        chain,
        group,
        lambda inner: batch(inner, on_success=job("cb")),
        lambda inner: {"steps": [inner, job("n")]},
    ]
    for level in range(DEFAULT_LIMITS.max_workflow_depth):
        definition = makers[level % 4](definition)
    assert len(parsed(definition).graph.composites) == DEFAULT_LIMITS.max_workflow_depth >= 5
    refusal = refused(chain(definition))
    assert "nested deeper than" in refusal.message


@each(
    ("definition", "place", "words"),
    [
        ({}, "$.steps", "required"),
        ({"type": "saga", "steps": [job()]}, "$.type", "saga"),
        (chain(), "$.steps", "at least one"),
        (group(), "$.jobs", "at least one"),
        ({"steps": []}, "$.steps", "at least one"),
        ({"type": "chain", "steps": "x"}, "$.steps", "list"),
        (chain(7), "$.steps[0]", "object"),
        (chain(job("x"), group()), "$.steps[1].jobs", "at least one"),
        (batch(job()), "$.callbacks", "on_complete"),
        (batch(job(), on_end=job()), "$.callbacks.on_end", "no such callback"),
        (batch(job(), on_success=chain(job())), "$.callbacks.on_success", "must be a job"),
        (chain(job(), callbacks={"on_success": job()}), "$.callbacks", "only a batch"),
        (chain(job(depends_on=["a"])), "$.steps[0].depends_on", "leave type out"),
        (dag(a="b", b="c", c="a"), "$.steps[0].depends_on", "a -> b -> c -> a"),
        (dag(a="a"), "$.steps[0].depends_on", "a -> a"),
        (dag(a="", b="nobody"), "$.steps[1].depends_on[0]", "nobody"),
        ({"steps": [{"id": "a", **job()}, {"id": "a", **job()}]}, "$.steps[1].id", "taken by $.steps[0]"),
        (group({"id": "a", **job()}, {"id": "a", **job()}), "$.jobs[1].id", "taken"),
        ({"steps": [{"id": 7, **job()}]}, "$.steps[0].id", "text"),
        (
            {"steps": [{"id": "a", "options": {"callback_type": "on_end"}, **job()}]},
            "$.steps[0].options.callback_type",
            "on_end",
        ),
        ({"steps": [{"id": "a", "options": {"callback_type": "on_success"}, **job()}]}, "$", "only callbacks"),
        (chain(job("Upper")), "$.steps[0].type", "dotted names"),
        (chain({"type": "x"}), "$.steps[0].args", "args is required"),
        (chain(job(options={"retry": {"max_attempts": -1}})), "$.steps[0].options.retry.max_attempts", "max_attempts"),
        (chain(job(options={"queue": "_"})), "$.steps[0].options.queue", "queue"),
        (chain(job(), id="me"), "$.id", "UUIDv7"),
        (chain(job(), name=7), "$.name", "text"),
    ],
)
def test_refusals_name_the_place(definition: Any, place: str, words: str) -> None:
    error = refused(definition)
    assert (error.code, error.info.status) == ("invalid_workflow", 400)
    assert error.details["validation_errors"][0]["path"] == place
    assert words in error.message


def test_too_many_jobs_are_refused_wherever_they_are() -> None:
    limits = msgspec.structs.replace(DEFAULT_LIMITS, max_workflow_jobs=4)
    assert parsed(group(*[job()] * 4), limits).graph.jobs == 4
    for definition in (
        group(*[job()] * 5),
        group(group(*[job()] * 3), group(*[job()] * 2)),
        batch(*[job()] * 4, on_success=job()),
    ):
        with pytest.raises(OjsError) as caught:
            parsed(definition, limits)
        assert caught.value.code == "invalid_workflow"


def test_a_job_that_is_too_large_keeps_its_own_status() -> None:
    limits = msgspec.structs.replace(DEFAULT_LIMITS, max_envelope_bytes=500)
    with pytest.raises(OjsError) as caught:
        parsed(chain({"type": "x", "args": ["y" * 600]}), limits)
    assert caught.value.info.status == 413


def test_options_of_the_workflow_are_defaults_of_its_jobs() -> None:
    definition = chain(
        job("x"),
        job("y", options={"queue": "own"}),
        job("z", queue="flat"),
        group(job("n"), options={"priority": 7}),
        options={"queue": "all", "priority": 3},
    )
    jobs = list(parsed(definition).jobs.values())
    assert [(draft.type, draft.queue, draft.priority) for draft in jobs] == [
        ("x", "all", 3),
        ("y", "own", 3),
        ("z", "flat", 3),
        ("n", "all", 7),
    ]


def test_what_comes_after_a_step_has_its_priority_unless_told_otherwise() -> None:
    def priorities(definition: Any) -> dict[str, int]:
        return {draft.type: draft.priority for draft in parsed(definition).jobs.values()}

    first = job("a", options={"priority": 42})
    chained = chain(first, job("b"), job("c", options={"priority": 0}), group(job("d"), job("e", priority=5)))
    assert priorities(chained) == {"a": 42, "b": 42, "c": 0, "d": 42, "e": 5}
    assert priorities(chain(first, job("b"), options={"priority": 7})) == {"a": 42, "b": 7}
    assert priorities(chain(group(job("a"), options={"priority": 9}), job("b"))) == {"a": 9, "b": 9}
    assert priorities(group(first, job("b"))) == {"a": 42, "b": 0}
    steps = [first | {"id": "1"}, *(job(name) | {"id": name, "depends_on": ["1"]} for name in ("b", "c"))]
    assert priorities({"steps": steps}) == {"a": 42, "b": 42, "c": 42}


def test_the_marks_of_a_dialect_do_not_reach_the_jobs() -> None:
    definition = parsed(python_batch())
    assert all(not draft.extra for draft in definition.jobs.values())
    assert [draft.queue for draft in definition.jobs.values()] == ["default", "default", "back", "back"]
    assert {draft.queue for draft in parsed(go_batch()).jobs.values()} == {"go"}


def test_camel_case_retry_of_the_js_sdk_is_read() -> None:
    draft = next(iter(parsed(chain(job(options={"retry": {"maxAttempts": 7}}))).jobs.values()))
    assert (draft.retry.max_attempts, draft.state) == (7, State.AVAILABLE)


def test_step_ids_are_places_and_no_job_ids() -> None:
    definition = parsed({"steps": [{"id": "first", **job()}, {"id": "second", **job(), "depends_on": ["first"]}]})
    assert [definition.graph.root.step_id(position) for position in (0, 1)] == ["first", "second"]
    assert all(draft.id.startswith(definition.id[:13]) for draft in definition.jobs.values())


def test_a_callback_in_a_dag_may_stand_for_some_of_its_steps() -> None:
    definition = dag(a="", b="a", c="a")
    definition["steps"].append({"id": "alarm", **job("alarm"), "depends_on": ["b"], "options": {"callback_type": "on_failure"}})
    root = parsed(definition).graph.root
    assert (root.kind, root.roles, root.depends_on(3)) == ("dag", ("on_failure",), (1,))


def test_ids_are_taken_with_and_without_their_prefix() -> None:
    name = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"
    assert parsed(chain(job(), id=name)).id == parsed(chain(job(), id=f"wf_{name}")).id == name
    assert workflow_id_of(f"wf_{name.upper()}") == name
    assert workflow_id_of("nonsense") is None


def test_a_body_that_is_no_object_is_an_invalid_payload() -> None:
    for body in (b"", b"[]", b"{"):
        with pytest.raises(OjsError) as caught:
            parse_workflow(body, NOW, DEFAULT_LIMITS)
        assert caught.value.code == "invalid_payload"


def refused(definition: Any) -> OjsError:
    with pytest.raises(OjsError) as caught:
        parse_workflow(json.dumps(definition).encode(), NOW, DEFAULT_LIMITS)
    return caught.value
