"""Jobs one by one."""

from __future__ import annotations

from typing import Final

from ojs_api import jobs as contract
from ojs_engine.api.common import (
    IDEMPOTENCY_KEY,
    PUSH_REFUSALS,
)
from ojs_engine.api.contract import part_of
from ojs_engine.api.envelope import ENVELOPE
from ojs_engine.api.route import Part, Route
from ojs_gateway.handlers.admin import AdminHandlers
from ojs_gateway.handlers.jobs import JobHandlers
from ojs_gateway.handlers.lists import ListHandlers

_OF_THE_CONTRACT: Final = part_of(
    contract.JOBS,
    (
        JobHandlers,
        {
            contract.GET: JobHandlers.read,
            contract.CANCEL: JobHandlers.cancel,
            contract.ACTIVATE: JobHandlers.activate,
            contract.REPRIORITISE: JobHandlers.reprioritise,
            contract.RESULT: JobHandlers.result,
            contract.RESULTS: JobHandlers.results,
        },
    ),
    (
        AdminHandlers,
        {
            contract.ADMIN_CANCEL: AdminHandlers.cancel,
            contract.RETRY: AdminHandlers.retry,
            contract.RUN: AdminHandlers.run,
        },
    ),
    (
        ListHandlers,
        {
            contract.LIST: ListHandlers.jobs,
            contract.ADMIN_LIST: ListHandlers.admin_jobs,
            contract.DETAIL: ListHandlers.detail,
        },
    ),
)

JOBS: Final = Part(
    "Jobs",
    "Jobs one by one",
    (
        Route(
            JobHandlers,
            JobHandlers.push,
            ("POST /jobs createJob",),
            "enqueue",
            "Push a job",
            {
                201: contract.EnqueuedJob,
                200: contract.PushedJob,
            },
            body=ENVELOPE,
            query=(IDEMPOTENCY_KEY,),
            errors=PUSH_REFUSALS,
            narrowing="body",
            by_queue=True,
        ),
        *_OF_THE_CONTRACT.routes,
    ),
)
