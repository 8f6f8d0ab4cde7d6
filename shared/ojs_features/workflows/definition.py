"""A workflow before it begins."""

from __future__ import annotations

from msgspec import Struct

from ojs_engine.domain.job import Job
from ojs_features.workflows.graph import Graph


class Definition(Struct, frozen=True):
    """A workflow as it was asked for. `jobs` has a draft for each node that is a job, its id being that of its first run;
    `places` says where it stands in the request.
    """

    id: str
    name: str
    graph: Graph
    jobs: dict[int, Job]
    places: dict[int, str]
