from __future__ import annotations

from typing import Any

from ojs_features.workflows.inputs import has_inputs, inputs_of, leaves, needed
from unit.workflows.definitions import batch, chain, dag, group, job, parsed


def by_index(definition: Any, node: int) -> Any:
    graph = parsed(definition).graph
    found = inputs_of(graph, node)
    assert bool(found) is has_inputs(graph, node)
    assert all(needed(graph, leaf) for leaf in leaves(found.values())), "what is given must have been kept"
    return found


def inputs(definition: Any, node: int) -> Any:
    return list(by_index(definition, node).values())


def test_a_step_of_a_chain_gets_the_results_of_all_before_it() -> None:
    assert inputs(chain(job(), job(), job()), 1) == []
    assert inputs(chain(job(), job(), job()), 3) == [1, 2]


def test_members_of_a_group_get_nothing_from_each_other() -> None:
    assert inputs(group(job(), job()), 2) == []


def test_callbacks_get_the_results_of_all_members() -> None:
    assert inputs(batch(job(), job(), on_complete=job(), on_success=job()), 3) == [1, 2]
    assert inputs(batch(job(), job(), on_complete=job(), on_success=job()), 4) == [1, 2]


def test_a_step_of_a_dag_gets_what_it_depends_on_in_that_order() -> None:
    definition = dag(a="", b="", c="b a")
    assert inputs(definition, 3) == [2, 1]
    assert by_index(definition, 3) == {1: 2, 0: 1}


def test_each_result_has_the_index_of_its_step() -> None:
    assert by_index(chain(job(), group(job(), job()), job()), 3) == {0: 1, 1: [4, 5]}
    assert by_index(batch(job(), job(), on_complete=job()), 3) == {0: 1, 1: 2}
    assert by_index(dag(a="", b="", c="b"), 3) == {1: 2}


def test_a_group_in_a_chain_is_a_list() -> None:
    definition = chain(job(), group(job(), job()), job())
    assert inputs(definition, 3) == [1, [4, 5]]
    assert inputs(definition, 4) == [1], "its members get what the group gets"


def test_a_nested_chain_is_the_result_of_its_last_step() -> None:
    definition = chain(chain(job(), job()), job())
    assert inputs(definition, 2) == [4]
    assert inputs(definition, 4) == [3]


def test_a_nested_dag_is_one_result_by_step() -> None:
    definition = chain(dag(a="", b="a", c="a"), job())
    assert inputs(definition, 2) == [{"a": 3, "b": 4, "c": 5}]


def test_only_results_that_somebody_is_given_are_kept() -> None:
    graph = parsed(chain(job(), batch(job(), on_success=job()))).graph
    assert [needed(graph, node) for node in (1, 3, 4)] == [True, True, False]
    assert not needed(parsed(group(job(), job())).graph, 1)
    graph = parsed(dag(a="", b="a", c="")).graph
    assert [needed(graph, node) for node in (1, 2, 3)] == [True, False, False]
