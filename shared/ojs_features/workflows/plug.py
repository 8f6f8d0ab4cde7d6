"""The places where workflows are plugged into the server."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from ojs_engine.api.job_extras import Inputs
from ojs_engine.domain.job import Job
from ojs_engine.store.store import Store
from ojs_features.plug import Feature, Process
from ojs_features.workflows.backup import BACKUP
from ojs_features.workflows.definitions import part_reader
from ojs_features.workflows.events import creation, events_of_member, source
from ojs_features.workflows.grants import GRANTS
from ojs_features.workflows.index import QUESTION, TABLE, WorkflowsAsk, workflows
from ojs_features.workflows.records import workflow_reader
from ojs_features.workflows.repairs import WorkflowRepairs
from ojs_features.workflows.results import ParentResults, result_reader
from ojs_features.workflows.routes import PART
from ojs_features.workflows.store import Workflows
from ojs_index.followed import Followed, Owner, Question


async def _inputs(store: Store, job: Job) -> ParentResults:
    """Return the results of earlier steps for a member. Raises OjsError backend_unavailable."""
    found = await store.of(Workflows).results.inputs([job])
    return found.get(job.id, ParentResults())


async def _wanted(_store: Store) -> bool:
    """Return True: any client may create a workflow."""
    return True


WORKFLOWS: Final = Feature(
    name="workflows",
    parts=(PART,),
    capabilities=("workflows",),
    inputs=Inputs(asks=attrgetter("workflow"), of=_inputs, what="what earlier steps hand on to it"),
    records=(workflow_reader, result_reader, part_reader),
    followed=(
        Followed(
            reader=workflow_reader,
            table=TABLE,
            events=source,
            owner=Owner(asks=attrgetter("workflow"), id=attrgetter("workflow.id"), events=events_of_member, creation=creation),
            repairs=WorkflowRepairs,
            questions={QUESTION: Question(WorkflowsAsk, workflows)},
        ),
    ),
    backup=BACKUP,
    grants=GRANTS,
    processes=(Process(role="coordinator", without="workflows do not go on", wanted=_wanted),),
)
