"""A sound body for each operation that takes one: what is sent where nothing, or an empty object, says too little.

`{queue}`, `{job_id}`, `{attempt}`, `{worker}` (who holds the job) and `{worker_id}` (who reports) stand for what a test has.
An operation that isn't here is asked as `support.contract` says, from which every wrong request is made, or with `{}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from support import contract

_PLACE: Final = re.compile(r"\{(\w+)\}")
_FILTER: Final = {"filter": {"queue": "{queue}"}, "confirm": True}
_HELD: Final = {"job_id": "{job_id}", "worker_id": "{worker}", "attempt": "{attempt}"}
_HOLDER: Final = {"worker_id": "{worker}", "attempt": "{attempt}"}
_STATE: Final = {"state": 1, **_HOLDER}
_JOB: Final = {"type": "a.b", "args": [], "options": {"queue": "{queue}"}}
BODIES: Final[dict[str, Any]] = {
    "createJob": _JOB,
    "createJobBatch": {"jobs": [_JOB]},
    "bulkCreateJobs": {"jobs": [_JOB]},
    "createWorkflow": {"type": "group", "name": "w", "jobs": [_JOB, _JOB]},
    "registerCronJob": {"name": "{queue}", "cron": "0 0 1 1 *", "job_template": _JOB},
    "createQueue": {"name": "{queue}"},
    "deleteQueue": {},  # one that moves jobs is about another queue as well
    "setQueueConfig": {"max_size": 5},
    "setQueueRateLimit": {"concurrency": 2},
    "adminPurgeQueue": {"states": ["available"], "confirm": True},
    "fetchJobs": {"queues": ["{queue}"], "worker_id": "{worker}", "wait_ms": 0},
    "ackJob": _HELD,
    "ackJobs": {"jobs": [_HELD]},
    "nackJob": {**_HELD, "error": {"message": "no", "rate_limit_until": "2999-01-01T00:00:00Z"}},
    "workerHeartbeat": {"worker_id": "{worker_id}"},
    "registerWorker": {"worker_id": "{worker_id}"},
    "deregisterWorker": {"worker_id": "{worker_id}"},
    "directWorker": {"directive": "running"},
    "directAllWorkers": {"directive": "running"},
    "setMaintenance": {"enabled": False},
    "putPool": {"queues": ["{queue}"]},
    "createWebhookSubscription": {"url": "https://hooks.invalid/ojs", "events": ["queue.deleted"]},
    "bulkCancelJobs": {"job_ids": ["{job_id}"]},
    "bulkRetryJobs": {"job_ids": ["{job_id}"]},
    "bulkDeleteJobs": {"job_ids": ["{job_id}"]},
    "bulkReprioritiseJobs": {"job_ids": ["{job_id}"], "priority": 1},
    "adminBulkReprioritise": {**_FILTER, "priority": 1},
    "adminBulkCancel": _FILTER,
    "adminBulkRetry": _FILTER,
    "adminBulkDelete": _FILTER,
    "getJobResults": {"ids": ["{job_id}"]},
    "bulkRetryDeadLetter": _FILTER,
    "adminBulkRetryDeadLetter": _FILTER,
    "clearDeadLetter": _FILTER,
    "purgeDeadLetter": _FILTER,
    "putJobCheckpoint": _STATE,
    "putCheckpoint": _STATE,
    "saveJobCheckpoint": _STATE,
    "saveCheckpoint": _STATE,
    "reportJobProgress": {"progress": 0.5, **_HOLDER},
    "reportProgress": {"progress": 0.5, **_HELD},
    "updateJobPriority": {"priority": 1},
}


def body_of(name: str, values: Mapping[str, Any]) -> Any:
    """Return the body of an operation, with these values in their places. A place without one stays as it is."""
    known = name.partition("At")[0]
    return _filled(BODIES.get(known, contract.BODIES.get(known, {})), values)


def _filled(body: Any, values: Mapping[str, Any]) -> Any:
    match body:
        case dict():
            return {name: _filled(value, values) for name, value in body.items()}
        case list():
            return [_filled(value, values) for value in body]
        case str() if (place := _PLACE.fullmatch(body)) is not None:
            return values.get(place[1], body)
        case _:
            return body
