"""The rules of results: those that a job is given, and those that are kept for that (ojs-workflows §7).

A chain's step gets the results of all steps before it, a callback those of all members, a DAG's step those of what it
depends on. A job without such predecessors gets the results that the workflow around it gets.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Raw

from ojs_features.workflows.graph import Composite, Graph

Source = int | list["Source"] | dict[str, "Source"]
"""Where a result comes from: a job's node, or the members of a nested workflow, those of a DAG by their ids."""


def inputs_of(graph: Graph, node: int) -> dict[int, Source]:
    """Return the sources of a job's `parent_results` in order, each by the index of its step."""
    while node:
        parent = graph.parent(node)
        needs = _predecessors(parent, node - parent.first)
        if needs:
            return {position: _result_of(graph, parent.first + position) for position in needs}
        node = parent.node
    return {}


def has_inputs(graph: Graph, node: int) -> bool:
    while node:
        parent = graph.parent(node)
        position = node - parent.first
        if parent.role(position) is not None or (parent.kind == "chain" and position):
            return True
        if parent.needs and parent.needs[position]:
            return True
        node = parent.node
    return False


def _predecessors(parent: Composite, position: int) -> tuple[int, ...]:
    if parent.kind == "chain":
        return tuple(range(position))
    return parent.depends_on(position)


def _result_of(graph: Graph, node: int) -> Source:
    composite = graph.composite(node)
    if composite is None:
        return node
    if composite.kind == "chain":
        return _result_of(graph, composite.last_member)
    members = [_result_of(graph, composite.first + position) for position in range(composite.members)]
    if composite.kind == "dag":
        return {composite.step_id(position): member for position, member in enumerate(members)}
    return members


def leaves(sources: Iterable[Source]) -> list[int]:
    """The nodes of the jobs in some sources, in order."""
    found: list[int] = []
    for source in sources:
        if isinstance(source, int):
            found.append(source)
        else:
            found += leaves(source if isinstance(source, list) else source.values())
    return found


def needed(graph: Graph, node: int) -> bool:
    """Whether a later step may be given the result of the job at `node`."""
    while node:
        parent = graph.parent(node)
        position = node - parent.first
        if parent.role(position) is not None:
            return False
        match parent.kind:
            case "chain":
                if position < parent.members - 1:
                    return True
            case "batch":
                return True
            case "dag":
                if graph.dependents(parent)[position]:
                    return True
            case "group":
                pass
        node = parent.node
    return False


def reference(job_id: str) -> Raw:
    """Where to get a result for which there was no room."""
    return Raw(msgspec.json.encode({"$ref": f"/ojs/v1/jobs/{job_id}/result"}))
