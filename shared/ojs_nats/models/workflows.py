"""Workflows and their steps."""

from __future__ import annotations

from ojs_api.workflows import (
    CancelledWorkflow,
    MemberCounts,
    StepProgress,
    StepsPagination,
    Workflow,
    WorkflowError,
    WorkflowHead,
    WorkflowMetadata,
    WorkflowOutcome,
    WorkflowProgress,
    WorkflowStep,
)

__all__ = [
    "CancelledWorkflow",
    "MemberCounts",
    "StepProgress",
    "StepsPagination",
    "Workflow",
    "WorkflowError",
    "WorkflowHead",
    "WorkflowMetadata",
    "WorkflowOutcome",
    "WorkflowProgress",
    "WorkflowStep",
]
