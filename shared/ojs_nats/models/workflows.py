"""Workflows and their steps."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ojs_nats.jobs import JobError

__all__ = [
    "CancelledWorkflow",
    "StepProgress",
    "StepsPagination",
    "Workflow",
    "WorkflowError",
    "WorkflowHead",
    "WorkflowMetadata",
    "WorkflowProgress",
    "WorkflowStep",
]


class WorkflowMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of a workflow's jobs, those of nested workflows included, callbacks not."""

    job_count: int
    completed_count: int
    failed_count: int
    cancelled_count: int


class WorkflowError(msgspec.Struct, frozen=True, kw_only=True):
    """The error of a failed job of a workflow.

    Attributes:
        callback: The name of the callback, if the job is one.
    """

    job_id: str
    step_id: str
    code: str
    message: str
    attempt: int
    occurred_at: datetime
    callback: str | None = None


class WorkflowStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a workflow: a job, or a workflow with steps of its own.

    Attributes:
        index: The position of the step, from 0.
        depends_on: The ids of the steps that have to complete before it.
    """

    id: str
    index: int
    type: str
    state: str
    depends_on: list[str]
    steps_total: int | None = None
    steps_completed: int | None = None
    jobs_total: int | None = None
    jobs_completed: int | None = None
    job_id: str | None = None
    job_state: str | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    result: Any = None
    error: JobError | None = None
    name: str | None = None
    steps: list[WorkflowStep] = []
    callbacks: dict[str, WorkflowStep] = {}


class WorkflowHead(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow without its steps."""

    id: str
    type: str
    name: str
    state: str
    created_at: datetime
    steps_total: int | None = None
    steps_completed: int | None = None
    jobs_total: int | None = None
    jobs_completed: int | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    cancelled_at: datetime | None = None


class StepsPagination(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a workflow's own steps that an answer has."""

    total: int
    offset: int
    limit: int
    has_more: bool


class Workflow(WorkflowHead, frozen=True, kw_only=True):
    """A workflow with its steps."""

    metadata: WorkflowMetadata
    steps: list[WorkflowStep]
    retries: int | None = None
    errors: list[WorkflowError] = []
    failed_step_index: int | None = None
    failed_step_id: str | None = None
    callbacks: dict[str, WorkflowStep] = {}
    steps_pagination: StepsPagination | None = None


class StepProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of one of a workflow's own steps, from 0 to 1."""

    id: str
    state: str
    progress: float


class WorkflowProgress(WorkflowHead, frozen=True, kw_only=True):
    """The progress of a workflow, from 0 to 1, with the first of its own steps."""

    metadata: WorkflowMetadata
    progress: float
    steps: list[StepProgress]


class CancelledWorkflow(WorkflowHead, frozen=True, kw_only=True):
    """A workflow after it was cancelled."""

    metadata: WorkflowMetadata
    steps_cancelled: int
    steps_already_completed: int
    retries: int | None = None
    errors: list[WorkflowError] = []
    failed_step_index: int | None = None
    failed_step_id: str | None = None
