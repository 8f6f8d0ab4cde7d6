"""Definitions to read, and the names of what is in a graph."""

from __future__ import annotations

import json
from typing import Any, Final

from ojs_engine.base.payload_limits import DEFAULT_LIMITS, PayloadLimits
from ojs_features.workflows.definition import Definition
from ojs_features.workflows.graph import Graph
from ojs_features.workflows.requests import parse_workflow

NOW: Final = 1_800_000_000_000


def job(name: str = "a.b", **more: Any) -> dict[str, Any]:
    return {"type": name, "args": [], **more}


def chain(*steps: Any, **more: Any) -> dict[str, Any]:
    return {"type": "chain", "steps": list(steps), **more}


def group(*jobs: Any, **more: Any) -> dict[str, Any]:
    return {"type": "group", "jobs": list(jobs), **more}


def batch(*jobs: Any, **callbacks: Any) -> dict[str, Any]:
    return {"type": "batch", "jobs": list(jobs), "callbacks": callbacks}


def dag(**needs: str) -> dict[str, Any]:
    """`dag(a="", b="a", c="a b")`: steps by id with what they depend on."""
    steps = [{"id": name, **job(name), "depends_on": on.split()} for name, on in needs.items()]
    return {"name": "dag", "steps": steps}


def parsed(definition: Any, limits: PayloadLimits = DEFAULT_LIMITS) -> Definition:
    return parse_workflow(json.dumps(definition).encode(), NOW, limits)


def tree(graph: Graph, node: int = 0) -> Any:
    """A graph as nested text: a job's type, or a workflow's kind with what is in it."""
    composite = graph.composite(node)
    if composite is None:
        return graph.type_of(node)
    children = [tree(graph, child) for child in range(composite.first, composite.end)]
    return (composite.kind, *children)
