"""Push jobs to an OJS server, and run them: what users import, beside `answers`, `middleware` and `testing`. Whatever has a
name that begins with an underscore is internal.

```python
app = App()

@app.job("email.send", queue="email", retry=Retry(5), timeout="30s")
async def send_email(ctx: JobContext, to: str, template: str = "welcome") -> dict[str, str]: ...

handle = await send_email.push("ada@example.org")
print(await handle.result(timeout="1m"))
```

`ojs-nats worker app.jobs` runs what the modules that it is given define. Guide: docs/python.md.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ojs_nats._api.dead_letters import DeadLetterFilter
    from ojs_nats._api.jobs import JobFilter
    from ojs_nats._api.queues import Prevention, QueueOptions
    from ojs_nats._api.workflows import WorkflowHandle
    from ojs_nats._app import App
    from ojs_nats._client import Client, JobHandle
    from ojs_nats._definitions import JobDefinition
    from ojs_nats._dependencies import Depends
    from ojs_nats._errors import (
        Conflict,
        Duplicate,
        InvalidRequest,
        JobCancelled,
        JobDropped,
        JobFailed,
        Missing,
        NotFound,
        NotYet,
        OjsError,
        PermissionDenied,
        QueueClosed,
        QueueFull,
        RateLimited,
        Refused,
        ResultGone,
        ResultTimeout,
        ServerFailed,
        TooLarge,
        Unauthorized,
        Unavailable,
        Unsupported,
        WorkflowCancelled,
        WorkflowFailed,
    )
    from ojs_nats._jobs import Job, JobError, NewJob
    from ojs_nats._options import Options, Rate, RateLimit, Retry, Unique
    from ojs_nats._sync import SyncClient, SyncJobHandle, SyncWorkflowHandle
    from ojs_nats._tls import Tls
    from ojs_nats._webhooks import verify_webhook
    from ojs_nats._worker.context import JobContext
    from ojs_nats._worker.outcome import DeadLetter, Discard, RetryLater, Snooze, SoftTimeout
    from ojs_nats._worker.worker import Worker
    from ojs_nats._workflows import Batch, Chain, Dag, Flow, Group, batch, chain, group

__all__ = [
    "App",
    "Batch",
    "Chain",
    "Client",
    "Conflict",
    "Dag",
    "DeadLetter",
    "DeadLetterFilter",
    "Depends",
    "Discard",
    "Duplicate",
    "Flow",
    "Group",
    "InvalidRequest",
    "Job",
    "JobCancelled",
    "JobContext",
    "JobDefinition",
    "JobDropped",
    "JobError",
    "JobFailed",
    "JobFilter",
    "JobHandle",
    "Missing",
    "NewJob",
    "NotFound",
    "NotYet",
    "OjsError",
    "Options",
    "PermissionDenied",
    "Prevention",
    "QueueClosed",
    "QueueFull",
    "QueueOptions",
    "Rate",
    "RateLimit",
    "RateLimited",
    "Refused",
    "ResultGone",
    "ResultTimeout",
    "Retry",
    "RetryLater",
    "ServerFailed",
    "Snooze",
    "SoftTimeout",
    "SyncClient",
    "SyncJobHandle",
    "SyncWorkflowHandle",
    "Tls",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
    "Unique",
    "Unsupported",
    "Worker",
    "WorkflowCancelled",
    "WorkflowFailed",
    "WorkflowHandle",
    "batch",
    "chain",
    "group",
    "verify_webhook",
]

_PLACES = {
    "_api.dead_letters": ("DeadLetterFilter",),
    "_api.jobs": ("JobFilter",),
    "_api.queues": (
        "Prevention",
        "QueueOptions",
    ),
    "_api.workflows": ("WorkflowHandle",),
    "_app": ("App",),
    "_client": (
        "Client",
        "JobHandle",
    ),
    "_definitions": ("JobDefinition",),
    "_dependencies": ("Depends",),
    "_errors": (
        "Conflict",
        "Duplicate",
        "InvalidRequest",
        "JobCancelled",
        "JobDropped",
        "JobFailed",
        "Missing",
        "NotFound",
        "NotYet",
        "OjsError",
        "PermissionDenied",
        "QueueClosed",
        "QueueFull",
        "RateLimited",
        "Refused",
        "ResultGone",
        "ResultTimeout",
        "ServerFailed",
        "TooLarge",
        "Unauthorized",
        "Unavailable",
        "Unsupported",
        "WorkflowCancelled",
        "WorkflowFailed",
    ),
    "_jobs": (
        "Job",
        "JobError",
        "NewJob",
    ),
    "_options": (
        "Options",
        "Rate",
        "RateLimit",
        "Retry",
        "Unique",
    ),
    "_sync": (
        "SyncClient",
        "SyncJobHandle",
        "SyncWorkflowHandle",
    ),
    "_tls": ("Tls",),
    "_webhooks": ("verify_webhook",),
    "_worker.context": ("JobContext",),
    "_worker.outcome": (
        "DeadLetter",
        "Discard",
        "RetryLater",
        "Snooze",
        "SoftTimeout",
    ),
    "_worker.worker": ("Worker",),
    "_workflows": (
        "Batch",
        "Chain",
        "Dag",
        "Flow",
        "Group",
        "batch",
        "chain",
        "group",
    ),
}
"""Where the names are defined. A module is imported when one of its names is used: what starts `ojs-nats` needs none."""
_MODULES = ("answers", "middleware", "testing")

if not TYPE_CHECKING:  # type checkers know each name by its import

    def __getattr__(name: str) -> object:
        from importlib import import_module  # noqa: PLC0415  # here, since it takes longer than all the rest

        if name in _MODULES:
            return import_module(f"ojs_nats.{name}")
        for place, names in _PLACES.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f"ojs_nats.{place}"), name)
                return found
        raise AttributeError(f"module 'ojs_nats' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
