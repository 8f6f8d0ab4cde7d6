"""The operations of workflows with their handlers (docs/workflows.md)."""

from __future__ import annotations

from typing import Final

from ojs_api.workflows import CANCEL, CREATE, GET, LIST, PROGRESS, RETRY, WORKFLOWS
from ojs_engine.api.contract import part_of
from ojs_features.workflows.dialects import SHAPES
from ojs_features.workflows.handlers import WorkflowHandlers

PART: Final = part_of(
    WORKFLOWS,
    (
        WorkflowHandlers,
        {
            CREATE: WorkflowHandlers.create,
            LIST: WorkflowHandlers.list,
            GET: WorkflowHandlers.read,
            PROGRESS: WorkflowHandlers.progress,
            CANCEL: WorkflowHandlers.cancel,
            RETRY: WorkflowHandlers.retry,
        },
    ),
)._replace(shapes=SHAPES)
