from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ojs_engine.base.errors import OjsError
from ojs_engine.base.ids import is_job_id
from ojs_engine.domain.transitions import Moment
from ojs_features.workflows.advance import (
    CREATED_AT_ONCE,
    StepOutcome,
    advance,
    begin,
    cancel,
    cancelled,
    checked,
    created,
    retry,
    started,
)
from ojs_features.workflows.graph import Graph
from ojs_features.workflows.record import MAX_RUNS, StepError, Workflow, counts, expand, job_id, membership, run_of
from support.examples import costly
from unit.workflows.definitions import batch, chain, dag, group, job, parsed
from unit.workflows.model import Model

WF = "019461a8-1a2b-7c3d-8e4f-5a6b7c8d9e0f"


class Clock:
    def __init__(self) -> None:
        self.at = 1_800_000_000_000

    def __call__(self) -> Moment:
        self.at += 7
        return Moment(self.at, f"op{self.at}")


def open_jobs(record: Workflow) -> list[int]:
    return [node for node, letter in enumerate(record.states) if letter == "q"]


def ended(record: Workflow, node: int, good: bool) -> StepOutcome:
    error = None if good else StepError(node=node, code="no", message="it failed", attempt=1, at=5)
    return StepOutcome("c" if good else "f", run_of(record, node), 1_800_000_000_000, error)


def step(graph: Graph, record: Workflow, clock: Clock, **ends: bool) -> Workflow:
    """Advance by what became of jobs: `n3=True`."""
    outcomes = {int(name[1:]): ended(record, int(name[1:]), good) for name, good in ends.items()}
    new = advance(graph, record, outcomes, clock())
    assert new is not None
    return new


def run(definition: Any) -> tuple[Graph, Workflow, Clock]:
    clock = Clock()
    graph = parsed(definition).graph
    return graph, begin(graph, WF, "name", clock()), clock


# Random workflows against the plain model

jobs = st.builds(job)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=4)
    roles = st.lists(st.sampled_from(["on_complete", "on_success", "on_failure"]), min_size=1, max_size=3, unique=True)
    batches = st.builds(lambda members, called: batch(*members, **{role: job() for role in called}), some, roles)
    return st.one_of(some.map(lambda steps: chain(*steps)), some.map(lambda steps: group(*steps)), batches, dags(inner))


@st.composite
def dags(draw: st.DrawFn, inner: st.SearchStrategy[Any]) -> Any:
    steps = []
    for index in range(draw(st.integers(1, 6))):
        ids = [f"s{other}" for other in range(index)]
        needs = draw(st.lists(st.sampled_from(ids), unique=True, max_size=3)) if ids else []
        steps.append({"id": f"s{index}", **draw(inner), "depends_on": needs})
    ids = [one["id"] for one in steps]
    for role in draw(st.lists(st.sampled_from(["on_complete", "on_success", "on_failure"]), max_size=2, unique=True)):
        needs = draw(st.lists(st.sampled_from(ids), unique=True, min_size=1))
        steps.append({"id": role, **job(), "depends_on": needs, "options": {"callback_type": role}})
    for index in range(draw(st.integers(0, 2))):  # steps behind callbacks
        needs = draw(st.lists(st.sampled_from([one["id"] for one in steps]), unique=True, min_size=1, max_size=3))
        steps.append({"id": f"behind{index}", **draw(inner), "depends_on": needs})
    # A nested workflow's own type must not hide that its place is in a DAG: the order of keys is no matter.
    return {"steps": draw(st.permutations(steps))}


definitions = st.recursive(jobs, nested, max_leaves=15).filter(lambda d: "args" not in d)


@costly
@given(definition=definitions, data=st.data())
def test_whatever_ends_in_whatever_order_the_states_are_those_of_the_model(definition: Any, data: st.DataObject) -> None:
    graph, record, clock = run(definition)
    ends: dict[int, bool] = {}
    born = list(expand(graph, record.to_create))
    assert record.states == Model(graph, ends).letters
    while waiting := open_jobs(record):
        some = data.draw(st.lists(st.sampled_from(waiting), min_size=1, unique=True))
        for node in some:
            ends[node] = data.draw(st.booleans())
        news = {node: ended(record, node, ends[node]) for node in some}
        new = advance(graph, record, news, clock())
        assert new is not None
        assert advance(graph, new, news, clock()) is None, "news that are known change nothing"
        record = new
        born += expand(graph, record.to_create)
        assert record.states == Model(graph, ends).letters
    assert sorted(born) == sorted(set(born)) == sorted(ends), "every job is created once, and none that wasn't to run"
    assert record.state == {"C": "completed", "F": "failed"}[record.states[0]]
    assert record.timer is not None
    numbers = counts(graph, record)
    assert numbers.jobs_completed + numbers.jobs_failed + numbers.jobs_cancelled == numbers.jobs


@costly
@given(definition=definitions, data=st.data())
def test_what_is_retried_until_all_is_well_completes_and_redoes_no_job_that_had(definition: Any, data: st.DataObject) -> None:
    graph, record, clock = run(definition)
    completed: set[int] = set()
    for round_ in range(6):
        while waiting := open_jobs(record):
            node = data.draw(st.sampled_from(waiting))
            assert node not in completed
            if round_ < 3 and data.draw(st.integers(0, 9)) == 0:
                break
            good = round_ >= 3 or data.draw(st.booleans())
            record = step(graph, record, clock, **{f"n{node}": good})
            if good:
                completed.add(node)
        if record.state == "running":
            told = cancelled(cancel(graph, record, clock()), clock())
            assert told is not None
            record = told
            for node in open_jobs(record):  # their jobs are called off, and say so
                late = advance(graph, record, {node: StepOutcome("x", run_of(record, node))}, clock())
                assert late is not None
                record = late
            assert record.state == "cancelled"
        if record.state == "completed":
            break
        record = retry(graph, record, clock())
        assert record.run == round_ + 1
    assert record.state == "completed"


# The rules one by one


def test_a_chain_goes_step_by_step_and_counts_what_completed() -> None:
    graph, record, clock = run(chain(job(), job(), job()))
    assert (record.states, record.to_create) == ("Rq..", ((1, 1),))
    record = step(graph, record, clock, n1=True)
    assert (record.states, record.to_create, record.state) == ("Rcq.", ((2, 2),), "running")
    record = step(graph, record, clock, n2=False)
    assert (record.states, record.to_create, record.state) == ("Fcfx", (), "failed")
    assert counts(graph, record).steps_completed == 1
    assert [entry.event for entry in record.log] == ["created", "started", "failed"]
    assert record.errors[0].message == "it failed"


def test_a_group_waits_for_all_before_it_fails() -> None:
    graph, record, clock = run(group(job(), job(), job()))
    assert record.to_create == ((1, 3),)
    record = step(graph, record, clock, n1=False)
    assert record.state == "running"
    record = step(graph, record, clock, n2=True, n3=True)
    assert (record.state, record.states) == ("failed", "Ffcc")


def test_a_batch_with_a_failed_job_and_good_callbacks_is_completed() -> None:
    graph, record, clock = run(batch(job(), job(), on_complete=job(), on_success=job(), on_failure=job()))
    record = step(graph, record, clock, n1=True, n2=False)
    assert (record.states, record.to_create) == ("Rcfqsq", ((3, 3), (5, 5)))
    record = step(graph, record, clock, n3=True, n5=True)
    assert record.state == "completed"
    assert counts(graph, record).jobs_failed == 1


def test_a_batch_whose_callback_fails_is_failed_and_retried_from_there() -> None:
    graph, record, clock = run(batch(job(), on_complete=job(), on_success=job()))
    record = step(graph, record, clock, n1=True)
    record = step(graph, record, clock, n2=False, n3=True)
    assert record.state == "failed"
    record = retry(graph, record, clock())
    assert (record.state, record.states, record.to_create) == ("running", "Rcqc", ((2, 2),))
    assert [run_of(record, node) for node in (1, 2, 3)] == [0, 1, 0]
    assert job_id(WF, 2, 1) != job_id(WF, 2, 0)


def test_a_batch_without_a_callback_for_what_happened_is_completed() -> None:
    graph, record, clock = run(batch(job(), on_success=job()))
    record = step(graph, record, clock, n1=False)
    assert (record.state, record.states) == ("completed", "Cfs")


def test_a_cancelled_job_counts_as_failed_while_the_workflow_runs() -> None:
    graph, record, clock = run(chain(job(), job()))
    new = advance(graph, record, {1: StepOutcome("x", 0)}, clock())
    assert new is not None
    assert (new.state, new.states) == ("failed", "Ffx")


def test_news_of_another_run_are_none() -> None:
    graph, record, clock = run(chain(job(), job()))
    record = retry(graph, step(graph, record, clock, n1=False), clock())
    assert advance(graph, record, {1: StepOutcome("c", 0)}, clock()) is None
    assert advance(graph, record, {1: StepOutcome("c", 1)}, clock()) is not None


def test_a_diamond_joins_once() -> None:
    graph, record, clock = run(dag(a="", b="a", c="a", d="b c"))
    record = step(graph, record, clock, n1=True)
    assert record.to_create == ((2, 3),)
    record = step(graph, record, clock, n2=True)
    assert record.to_create == ()
    record = step(graph, record, clock, n3=True)
    assert record.to_create == ((4, 4),)


def test_a_failed_step_of_a_dag_leaves_other_branches_alone() -> None:
    graph, record, clock = run(dag(a="", b="a", c="", d="c"))
    record = step(graph, record, clock, n1=False)
    assert (record.state, record.states) == ("running", "Rfxq.")
    record = step(graph, record, clock, n3=True)
    record = step(graph, record, clock, n4=True)
    assert record.state == "failed"


def test_a_callback_that_was_passed_over_is_called_when_a_retry_gives_it_reason() -> None:
    definition = dag(a="", b="")
    definition["steps"].append({"id": "yes", **job(), "depends_on": ["a"], "options": {"callback_type": "on_success"}})
    graph, record, clock = run(definition)
    record = step(graph, record, clock, n1=False, n2=False)
    assert (record.state, record.states) == ("failed", "Fffs")
    record = retry(graph, record, clock())
    assert record.states == "Rqq."
    record = step(graph, record, clock, n1=True)
    assert record.states == "Rcqq"


def test_cancelling_leaves_jobs_that_exist_to_be_told() -> None:
    graph, record, clock = run(chain(job(), group(job(), job())))
    record = cancel(graph, record, clock())
    assert (record.state, record.states, record.cancelling) == ("cancelled", "XqXxx", True)
    with pytest.raises(OjsError) as caught:
        cancel(graph, record, clock())
    assert (caught.value.code, caught.value.details["current_state"]) == ("conflict", "cancelled")
    late = advance(graph, record, {1: StepOutcome("c", 0)}, clock())
    assert late is not None
    assert (late.state, late.states, late.to_create) == ("cancelled", "XcXxx", ()), "an active job may end, and nothing follows"


def test_many_new_jobs_are_created_under_the_timer() -> None:
    clock = Clock()
    graph = parsed(group(*[job()] * (CREATED_AT_ONCE + 1))).graph
    record = begin(graph, WF, "", clock())
    assert (record.to_create, record.creating) == ((), ((1, CREATED_AT_ONCE + 1),))
    assert record.timer is not None
    assert record.timer.at - clock.at > 5_000
    done = created(record, clock())
    assert done is not None
    assert (done.creating, created(done, clock())) == ((), None)
    assert done.timer is not None
    assert done.timer.op != record.timer.op


def test_looks_at_a_running_workflow_grow_rarer_with_its_age() -> None:
    graph, record, _ = run(chain(job()))
    del graph
    waits = []
    for age_h in (0, 1, 48):
        now = record.created_at + age_h * 3_600_000
        timer = checked(record, Moment(now, "op"), complete=True).timer
        assert timer is not None
        waits.append((timer.at - now) // 60_000)
    assert waits == [5, 60, 360]


def test_the_first_start_is_noted_once() -> None:
    _, record, clock = run(group(job(), job()))
    first = started(record, 42, clock())
    assert first is not None
    assert (first.started_at, first.log[-1].event, first.log[-1].at) == (42, "started", 42)
    assert started(first, 43, clock()) is None


def test_the_log_keeps_all_entries_of_one_change_together() -> None:
    graph, record, clock = run(group(*[chain(job())] * 100))
    leaves = open_jobs(record)
    record = step(graph, record, clock, **{f"n{node}": True for node in leaves})
    assert [entry.event for entry in record.log] == ["started", *["job_completed"] * 100, "completed"]
    assert record.log[-1].n == 103


def test_a_workflow_is_retried_only_so_often() -> None:
    graph, record, clock = run(chain(job()))
    for number in range(MAX_RUNS):
        record = retry(graph, step(graph, record, clock, n1=False), clock())
        assert run_of(record, 1) == number + 1
    record = step(graph, record, clock, n1=False)
    with pytest.raises(OjsError, match="retried less than"):
        retry(graph, record, clock())


@pytest.mark.parametrize("state", ["running", "completed"])
def test_only_what_failed_or_was_cancelled_is_retried(state: str) -> None:
    graph, record, clock = run(chain(job()))
    if state == "completed":
        record = step(graph, record, clock, n1=True)
    with pytest.raises(OjsError) as caught:
        retry(graph, record, clock())
    assert caught.value.code == "conflict"


def test_members_know_their_place_and_have_ids_that_follow_from_it() -> None:
    graph, record, _ = run(chain(job(), batch(job("x"), on_success=job("y"))))
    first, inner, callback = (membership(graph, record, node) for node in (1, 3, 4))
    assert (first.opens, first.index, first.size, first.kind, first.inputs) == (2, 0, 2, "chain", False)
    assert (inner.opens, inner.step, inner.kind, inner.inputs) == (0, "0", "batch", True)
    assert (callback.callback, callback.step, callback.inputs) == ("on_success", "on_success", True)
    ids = {job_id(WF, node, again) for node in range(50) for again in range(3)}
    assert len(ids) == 150
    assert all(is_job_id(name) for name in ids)
